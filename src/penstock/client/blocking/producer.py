"""The blocking clients: the asyncio ones, on one background loop.

What is fast happens in the caller's thread, without a word to the loop: records go straight into the
accumulator, and what has been fetched is decoded where it is wanted, while the loop fetches on.
A client belongs to the process that made it: after a fork, make another one.
"""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, Never, Unpack

from penstock.client.arguments import checked, instance_of, optional, seconds, topic_name
from penstock.client.blocking.base import Blocking
from penstock.client.closing import closing_patience_s
from penstock.client.produce.delivery import Delivery
from penstock.client.produce.events import record_of
from penstock.client.produce.group_members import group_metadata_of
from penstock.client.produce.producer import AsyncProducer
from penstock.common.extras import need_arrow
from penstock.common.hints import NOT_GIVEN, refuse_strays, with_hints, without_strays
from penstock.errors import PenstockError
from penstock.headers import Header
from penstock.model import K, V

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from penstock.client.cluster.instance_id import HasInstanceId
    from penstock.client.group.offsets import Committable, GroupMetadata
    from penstock.client.options import ProducerOptions
    from penstock.client.produce.encoded import EncodedBatch, TableDelivery
    from penstock.client.produce.group_members import GroupMember
    from penstock.client.statistics import Statistics
    from penstock.client.transactions.steps import TransactionCoordinates
    from penstock.cloudevents import Event
    from penstock.cloudevents.formats.registry import FormatName
    from penstock.cloudevents.headers import Mode
    from penstock.cloudevents.write_record import KeyMapper

EXIT_PATIENCE_S = 5.0
"""How long the end of the process may wait for producers that were not closed."""


@with_hints("Producer", leave=("send",))
class Producer(Blocking, Generic[K, V]):
    """Writes records to topics.

    >>> with Producer(bootstrap_servers="localhost:9092") as producer:
    ...     delivery = producer.send("orders", b"two tickets", key=b"ada")
    ...     metadata = delivery.result(timeout=10)

    Options are keywords, or stand in `config` under Kafka's dotted names. Those that most programs set:

        acks: ``all`` replicas in sync (the default), 1 the leader, 0 none.
        linger_ms: how long a batch that is not full may wait for more records; 0 by default.
        compression_type: ``none`` (the default), gzip, snappy, lz4 or zstd.
        delivery_timeout_ms: how long a record may take to be acknowledged in all; 120,000 by default.
        transactional_id: the name under which this producer has transactions; without it there are none.
        security_protocol, sasl_mechanism, sasl_username, sasl_password, ssl_cafile: TLS and logins.

    `penstock.client.ProducerOptions` describes all of them. Thread-safe.

    Keys and values are bytes, or what `key_serializer` and `value_serializer` make bytes of. These are
    functions of one argument, such as ``str.encode``; None is never given to them.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: ProducerOptions | Mapping[str, object] | None = None,
        *,
        key_serializer: Callable[[K], bytes | None] | None = None,
        value_serializer: Callable[[V], bytes | None] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        super().__init__()
        self._producer = AsyncProducer[K, V](
            bootstrap_servers,
            config,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            **options,
        )
        self._serializers = self._producer.serializers
        self._lanes = self._producer.lanes
        _unclosed.add(self)

    def _twin(self) -> HasInstanceId:
        return self._producer

    def _start(self) -> None:
        self._run(self._producer.start())

    def stats(self) -> Statistics:
        """Return what this producer has done since it was made, and what it has in hand. From any thread.

        ``statistics.interval.ms`` and ``stats_cb`` have it reported again and again.
        """
        return self._producer.stats()

    def __exit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        self.close(closing_patience_s(exc_type))

    @without_strays
    def send(
        self,
        topic: str,
        value: V | None = None,
        *strays: Never,
        key: K | None = None,
        partition: int | None = None,
        timestamp: int | datetime | None = None,
        headers: Sequence[Header] = (),
        event: Event | None = None,
        mode: Mode = "binary",
        key_mapper: KeyMapper | None = None,
        event_format: FormatName = "json",
        **others: Never,
    ) -> Delivery:
        """Accept one record and return its delivery: `result()` waits for it, to know where the record went.

        Waits only while ``buffer.memory`` is full or the topic is not known yet. `timestamp` is in
        milliseconds since 1970, or a datetime (without a zone: local time); now by default.

        `event` takes the place of `value`: a CloudEvent, sent in `mode` ``"binary"`` or ``"structured"``
        (in `event_format`), with the event's headers before the others. The key
        stays `key` unless `key_mapper` makes another of the event (`partitionkey_mapper` is one).

        Raises:
            ConfigError: there is a value as well as an event.
            InvalidEventError: no record of that mode can carry the event.
            SerializationError: a serializer has raised, or returned something else than bytes.
            EncodeError: a key or value is not bytes, or a header is not (str, bytes or None).
            KafkaError: the topic does not exist, or the record is too large.
            NetworkError: no broker answers.
            RequestTimeoutError: no room within ``max.block.ms``.
        """
        if topic is NOT_GIVEN or strays or others:
            refuse_strays(Producer.send, "Producer.send", (self, topic, value, *strays), others)
        if self._serializers is not None:
            key, value = self._serializers.apply(topic, key, value)
        if event is not None:
            key, value, headers = record_of(event, value, key, headers, mode, key_mapper, event_format)
        if self._process is Blocking._this_process:
            if key is None and partition is None and timestamp is None and not headers:
                lane = self._lanes.get(topic) if type(topic) is str else None
                if lane is not None:
                    noted: Delivery | None = lane.note(value, self._producer.clock.now_ms())
                    if noted is not None:
                        return noted
            accepted = self._producer.try_send(topic, value, key, partition, timestamp, headers)
            if accepted is not None:
                return accepted[0]
        return self._run(self._producer.send_when_possible(topic, value, key, partition, timestamp, headers))

    def send_arrow(
        self,
        topic: str,
        data: pa.Table | pa.RecordBatch,
        *,
        fields: Mapping[str, str] | None = None,
        delivery: TableDelivery | None = None,
    ) -> TableDelivery:
        """Accept a table and return its delivery: `result()` waits, and has the offsets of the rows.

        The columns ``key``, ``value``, ``headers``, ``partition`` and ``timestamp`` count, as far as they
        are there; `fields` maps these names to others. Keys and values are binary or string. Other columns
        are refused, since they would be lost (see `penstock.write_topic`). `delivery` collects several.

        Rows with a partition go there, those with a key where Java would send them, and the others are
        spread over all partitions, a batch's worth at a time. This thread encodes them, while the background
        loop sends.

        Raises: as `send`.
        """
        need_arrow("send_arrow")
        from penstock.client.produce.columns import TableDelivery, record_batches

        producer = self._producer
        given = optional(instance_of(TableDelivery))(delivery, "delivery")
        delivery = TableDelivery(topic) if given is None else given
        chunks = record_batches(data, fields or {})
        topic = topic_name(topic)
        self._run(producer.get_ready(topic, time.monotonic() + self._block_s))
        for chunk in chunks:
            self._append(topic, producer.encode_columns(topic, chunk), delivery)
        return delivery

    def send_encoded(self, topic: str, batch: EncodedBatch, delivery: TableDelivery) -> None:
        """Accept a batch of magic 2, whose bytes belong to the producer from now on: it stamps them.

        It has no producer id yet, and its offset deltas are 0, 1, 2 and so on. `delivery` collects it. Waits
        only while ``buffer.memory`` is full, or the topic or its partition is not known yet. Raises as
        `send`.
        """
        if not self._producer.append_encoded(topic, batch, delivery):
            deadline = time.monotonic() + self._block_s
            self._run(self._producer.get_ready(topic, deadline, batch.partition))
            self._producer.append_encoded(topic, batch, delivery, even_if_full=True)

    @property
    def _block_s(self) -> float:
        return self._producer.config.max_block_ms / 1000

    def _append(self, topic: str, batches: Iterable[EncodedBatch], delivery: TableDelivery) -> None:
        producer = self._producer
        for batch in batches:
            if not producer.append_encoded(topic, batch, delivery):
                self._run(producer.get_ready(topic, time.monotonic() + self._block_s))
                producer.append_encoded(topic, batch, delivery, even_if_full=True)

    def warn_of_retention(self, topic: str, oldest_ms: int | None) -> None:
        """Log a warning where the topic's retention removes records as old as `oldest_ms`, written just now.

        `oldest_ms` is in milliseconds since 1970; None where no record has a time of its own. Nothing is
        logged where the broker has no API for settings (before 0.11).
        """
        self._run(self._producer.warn_of_retention(topic, oldest_ms))

    # -- transactions

    @property
    def transactional_id(self) -> str | None:
        """The name under which this producer has transactions; None where it has none."""
        return self._producer.config.transactional_id

    def at_once(self) -> AbstractContextManager[None]:
        """Return a transaction where there is a transactional id; otherwise a block that changes nothing."""
        return nullcontext() if self.transactional_id is None else self.transaction()

    def transaction(self) -> BlockingTransactionBlock:
        """Return a transaction as a block: committed at its end, aborted where it is left by an exception.

        >>> with producer.transaction():
        ...     producer.send("orders", b"two tickets")
        ...     producer.send_offsets(consumer.positions(), consumer)

        Entering it raises as `begin_transaction`, leaving it as `commit_transaction`. A commit that is
        refused with `TransactionAbortableError` is followed by an abort, so that the producer can go on.
        """
        self._producer.check_transactional_id()
        return BlockingTransactionBlock(self)

    def init_transactions(self) -> None:
        """Get the producer id of ``transactional.id``, which fences all earlier producers of that id.

        What such a producer has left open is aborted. Optional: the first `begin_transaction` does it.

        Raises:
            TransactionRetriableError: not within ``max.block.ms``; call it again.
            TransactionalIdAuthorizationError: the id may not be used. It can be tried again.
            TransactionFatalError: the producer cannot be used, for instance with a ``transaction.timeout.ms``
                above the broker's ``transaction.max.timeout.ms``.
            UnsupportedVersionError: the broker is older than Kafka 0.11.
            ConfigError: no ``transactional.id``.
            NetworkError: no bootstrap server answers.
        """
        self._run(self._producer.init_transactions())

    def begin_transaction(self) -> None:
        """Open a transaction. All that is sent from here on belongs to it, until it is committed or aborted.

        Raises:
            TransactionStateError: one is open.
            TransactionAbortableError: the last one has failed, and must be aborted first.
            TransactionFatalError: the producer has failed for good.
            PenstockError: as `init_transactions`, the first time.
        """
        self._run(self._producer.begin_transaction())

    def send_offsets(self, offsets: Committable, group: GroupMetadata | GroupMember | str) -> None:
        """Make the offsets of a group part of the transaction: committed with it, or not at all.

        `offsets` are the next to read of each partition, as `Consumer.positions` has them. `group` is
        the consumer, or its `group_metadata`: the group then refuses a member that it has gone on without
        (KIP-447). The name of a group alone is not checked.

        Raises:
            TransactionAbortableError: the group has gone on without the member, or refuses the offsets.
            TransactionRetriableError: not within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed for good, for instance since it is fenced.
            TransactionStateError: no transaction is open.
            ConfigError: an offset is negative, or the group has no name.
        """
        # On this thread: a blocking consumer waits for the loop.
        metadata = group if isinstance(group, (str, tuple)) else group_metadata_of(group)
        self._run(self._producer.send_offsets(offsets, metadata))

    def prepare_transaction(self) -> TransactionCoordinates:
        """Wait until all is acknowledged, accept nothing more, and return what names the transaction.

        The transaction stays open, also when this producer is closed, until `commit_transaction` or
        `abort_transaction` here, `Admin.end_transaction` anywhere, or ``transaction.timeout.ms``.

        Raises:
            TransactionAbortableError: a record was not accepted. Abort.
            TransactionRetriableError: not within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed for good.
            TransactionStateError: no transaction is open.
        """
        return self._run(self._producer.prepare_transaction())

    def commit_transaction(self) -> None:
        """Send everything, wait until it is acknowledged, and commit.

        Raises:
            TransactionAbortableError: nothing is committed, since a record was not accepted, or since the
                transaction ran into its timeout (with KIP-890). Abort, then do its work again.
            TransactionRetriableError: not within ``max.block.ms``. Whether it is committed is not known yet:
                call it again. No other call is accepted before.
            TransactionFatalError: the producer has failed for good. `ProducerFencedError`: another one uses
                the id, or the transaction ran into its timeout. It is not known here whether it was
                committed before that; another producer goes on from what is committed.
            TransactionStateError: no transaction is open.
        """
        self._run(self._producer.commit_transaction())

    def abort_transaction(self) -> None:
        """Give up what was not sent, wait for what is under way, and abort.

        Raises:
            TransactionRetriableError: not within ``max.block.ms``; call it again.
            TransactionFatalError: the producer has failed for good; the coordinator aborts by the timeout.
            TransactionStateError: no transaction is open, or a commit is under way.
        """
        self._run(self._producer.abort_transaction())

    @property
    def transaction_coordinates(self) -> TransactionCoordinates:
        """What names the open transaction: its id, producer id and epoch.

        Raises:
            TransactionStateError: no producer id was given out yet.
        """
        return self._producer.transaction_coordinates

    def leave_transaction(self, exc: BaseException | None) -> None:
        """End the block of `transaction`: commit, or abort because of `exc`, which the caller raises."""
        self._run(self._producer.leave_transaction(exc))

    # -- the end

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now, and wait until every record accepted so far is settled.

        Failures are in the deliveries, not here; those of deliveries that are not read are logged.

        Raises:
            RequestTimeoutError: not within `timeout` seconds.
        """
        self._run(self._producer.flush(timeout))

    @checked(timeout=seconds)
    def close(self, timeout: float | None = None) -> None:
        """Flush, then close. What is not acknowledged within `timeout` seconds fails.

        An open transaction is aborted, unless it is prepared.
        """
        _unclosed.discard(self)
        if self._process is Blocking._this_process:
            self._run(self._producer.close(timeout))


class BlockingTransactionBlock(AbstractContextManager[None]):
    """A transaction for ``with``. Made by `Producer.transaction`."""

    def __init__(self, producer: Producer[Any, Any]) -> None:
        self._producer = producer

    def __enter__(self) -> None:
        self._producer.begin_transaction()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: object
    ) -> None:
        self._producer.leave_transaction(exc)


_unclosed: weakref.WeakSet[Producer[Any, Any]] = weakref.WeakSet()


@atexit.register
def _close_producers() -> None:
    """Flush producers that were not closed, so that no records are lost."""
    deadline = time.monotonic() + EXIT_PATIENCE_S
    for producer in list(_unclosed):
        with contextlib.suppress(PenstockError):
            producer.close(max(0.0, deadline - time.monotonic()))
