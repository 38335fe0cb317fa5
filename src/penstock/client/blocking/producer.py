"""The blocking producer, which runs the asyncio producer on the background loop.

`send` puts a record into the accumulator in the caller's thread, without a call on the loop. A client works
only in the process that made it: a forked child must make its own.
"""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
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
"""The maximum time in seconds that the exit of the interpreter waits for producers that were not closed."""


@with_hints("Producer", leave=("send",))
class Producer(Blocking, Generic[K, V]):
    """Writes records to topics.

    >>> with Producer(bootstrap_servers="localhost:9092") as producer:
    ...     delivery = producer.send("orders", b"two tickets", key=b"ada")
    ...     metadata = delivery.result(timeout=10)

    Options are keywords, or stand in `config` under Kafka's dotted names. Those that most programs set:

        acks: the replicas that must acknowledge a record: ``all`` in sync (default), 1 the leader, 0 none.
        linger_ms: how long a batch that is not full may wait for more records; 0 by default.
        compression_type: ``none`` (the default), gzip, snappy, lz4 or zstd.
        delivery_timeout_ms: how long a record may take to be acknowledged in all; 120,000 by default.
        transactional_id: the identity for transactions, the same after a restart; without it, there are none.
        security_protocol, sasl_mechanism, sasl_username, sasl_password, ssl_cafile: TLS and logins.

    `penstock.client.ProducerOptions` describes all of them. Producers are thread-safe.

    Keys and values are bytes, or what `key_serializer` and `value_serializer` turn into bytes. A serializer
    is a function of one argument, such as ``str.encode``, and is never called with None.
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
        self._lanes, self._key_lanes = self._producer.lanes, self._producer.key_lanes
        _unclosed.add(self)

    def _twin(self) -> HasInstanceId:
        return self._producer

    def _start(self) -> None:
        self._run(self._producer.start())

    def stats(self) -> Statistics:
        """Return a snapshot of this producer's counters and buffers. Any thread may call this method.

        To get snapshots at intervals, set ``statistics.interval.ms`` and ``stats_cb``.
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
        """Accept one record and return its delivery, whose `result()` has the record's partition and offset.

        This call waits only while ``buffer.memory`` is full or the topic's metadata are missing. `timestamp`
        is in milliseconds since 1970, or a datetime (without a zone: local time), by default now.

        `event` is a CloudEvent to send instead of `value`, in `mode` ``"binary"`` or ``"structured"`` (in
        `event_format`), with the event's headers before `headers`. `key` is the record's key, unless
        `key_mapper` returns another one for the event (see `partitionkey_mapper`).

        Raises:
            ConfigError: both a value and an event are given.
            InvalidEventError: no record of that mode can carry the event.
            SerializationError: a serializer has raised, or has not returned bytes.
            EncodeError: a key or value is not bytes, or a header is not (str, bytes or None).
            KafkaError: the topic does not exist, or the record is too large.
            NetworkError: no broker answers.
            RequestTimeoutError: the buffer is full, or metadata are missing, for ``max.block.ms``.
        """
        if topic is NOT_GIVEN or strays or others:
            refuse_strays(Producer.send, "Producer.send", (self, topic, value, *strays), others)
        if self._serializers is not None:
            key, value = self._serializers.apply(topic, key, value)
        if event is not None:
            key, value, headers = record_of(event, value, key, headers, mode, key_mapper, event_format)
        if self._process is Blocking._this_process:
            if partition is None and timestamp is None and not headers and type(topic) is str:
                noted: Delivery | None = None
                if key is None:
                    lane = self._lanes.get(topic)
                    if lane is not None:
                        noted = lane.note(value, self._producer.clock.now_ms())
                else:
                    lane = self._key_lanes.get(topic)
                    if lane is not None:
                        noted = lane.note(key, value, self._producer.clock.now_ms())
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
        """Accept a table and return its delivery, whose `result()` has the offsets of the rows.

        The columns are ``key``, ``value``, ``headers``, ``partition`` and ``timestamp``, each optional;
        `fields` maps these names to others. Keys and values are binary or string. Other columns are refused,
        since they would be lost (see `penstock.write_topic`). Pass one `delivery` to several calls to await
        all their tables together.

        A row with a partition goes to that partition, a row with a key to the partition that Java's client
        chooses; all other rows are spread over all partitions, one batch at a time. This thread encodes the
        rows, while the background loop sends.

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
        """Accept an encoded batch of magic 2, and add its outcome to `delivery`.

        The producer writes its producer id into the batch in place; the caller must not use the batch any
        more. The batch must have no producer id yet, and offset deltas of 0, 1, 2 and so on. The call waits
        only while ``buffer.memory`` is full, or metadata of the topic or partition are missing. Raises as
        `send`.
        """
        self._append(topic, [batch], delivery)

    @property
    def _block_s(self) -> float:
        return self._producer.config.max_block_ms / 1000

    def _append(self, topic: str, batches: Sequence[EncodedBatch], delivery: TableDelivery) -> None:
        producer = self._producer
        while batches := batches[producer.append_encoded(topic, batches, delivery) :]:
            deadline = time.monotonic() + self._block_s
            self._run(producer.get_ready(topic, deadline, batches[0].partition))

    def warn_of_retention(self, topic: str, oldest_ms: int | None) -> None:
        """Log a warning if the topic's retention will remove the records that were just written.

        `oldest_ms` is the timestamp of the oldest of them, in milliseconds since 1970, or None if no record
        has its own timestamp. A broker without DescribeConfigs (before 0.11) causes no warning.
        """
        self._run(self._producer.warn_of_retention(topic, oldest_ms))

    # -- transactions

    @property
    def transactional_id(self) -> str | None:
        """The ``transactional.id`` of this producer, or None if it has none."""
        return self._producer.config.transactional_id

    def at_once(self) -> AbstractContextManager[None]:
        """Return a transaction block, or a block that does nothing if there is no ``transactional.id``."""
        return nullcontext() if self.transactional_id is None else self.transaction()

    def transaction(self) -> BlockingTransactionBlock:
        """Return a ``with`` block that is a transaction: committed at its end, aborted after an exception.

        >>> with producer.transaction():
        ...     producer.send("orders", b"two tickets")
        ...     producer.send_offsets(consumer.positions(), consumer)

        Entering the block raises the errors of `begin_transaction`, leaving it those of `commit_transaction`.
        If the commit is refused with `TransactionAbortableError`, the block aborts the transaction, so that
        the producer stays usable.
        """
        self._producer.check_transactional_id()
        return BlockingTransactionBlock(self)

    def init_transactions(self) -> None:
        """Get the producer id of ``transactional.id``. This fences all earlier producers of that id.

        The coordinator aborts a transaction that such a producer has left open. The first `begin_transaction`
        makes this call if the application has not.

        Raises:
            TransactionRetriableError: not done within ``max.block.ms``; call it again.
            TransactionalIdAuthorizationError: the client may not use the id. The call may be repeated.
            TransactionFatalError: the producer cannot be used, for instance because its
                ``transaction.timeout.ms`` is above the broker's ``transaction.max.timeout.ms``.
            UnsupportedVersionError: the broker is older than Kafka 0.11.
            ConfigError: no ``transactional.id``.
            NetworkError: no bootstrap server answers.
        """
        self._run(self._producer.init_transactions())

    def begin_transaction(self) -> None:
        """Begin a transaction. All records sent from now on belong to it, until it is committed or aborted.

        Raises:
            TransactionStateError: a transaction is open already.
            TransactionAbortableError: the last transaction has failed, and must be aborted first.
            TransactionFatalError: the producer has failed permanently.
            PenstockError: the first call may raise the errors of `init_transactions`.
        """
        self._run(self._producer.begin_transaction())

    def send_offsets(self, offsets: Committable, group: GroupMetadata | GroupMember | str) -> None:
        """Add a group's offsets to the transaction: they are committed with the transaction or not at all.

        `offsets` has the next offset to read of each partition, as `Consumer.positions` returns them. `group`
        is the consumer, or its `group_metadata`: the coordinator then refuses the offsets of a member that
        the group has removed (KIP-447). If `group` is a name, membership is not checked.

        Raises:
            TransactionAbortableError: the group has removed the member, or refuses the offsets.
            TransactionRetriableError: not done within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed permanently, for instance because it is fenced.
            TransactionStateError: no transaction is open.
            ConfigError: an offset is negative, or the group has no name.
        """
        # On this thread: a blocking consumer waits for the loop.
        metadata = group if isinstance(group, (str, tuple)) else group_metadata_of(group)
        self._run(self._producer.send_offsets(offsets, metadata))

    def prepare_transaction(self) -> TransactionCoordinates:
        """Wait until all records are acknowledged, and return the ids to finish the transaction later.

        The result has transactional id, producer id and epoch. The producer accepts no more records. The
        transaction stays open, even after this producer is closed, until `commit_transaction` or
        `abort_transaction` of this producer, `Admin.end_transaction` of any client, or the end of
        ``transaction.timeout.ms``.

        Raises:
            TransactionAbortableError: a record was not accepted. Abort the transaction.
            TransactionRetriableError: not done within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed permanently.
            TransactionStateError: no transaction is open.
        """
        return self._run(self._producer.prepare_transaction())

    def commit_transaction(self) -> None:
        """Send all records, wait until they are acknowledged, and commit the transaction.

        Raises:
            TransactionAbortableError: nothing is committed, because a record was not accepted, or because the
                transaction's timeout has passed (with KIP-890). Abort the transaction, then do its work
                again.
            TransactionRetriableError: not done within ``max.block.ms``, and the outcome is not known yet:
                call it again. The producer accepts no other call before.
            TransactionFatalError: the producer has failed permanently. `ProducerFencedError`: another
                producer uses the id, or the transaction's timeout has passed. The client does not know
                whether the transaction was committed before that; a new producer continues from the committed
                state.
            TransactionStateError: no transaction is open.
        """
        self._run(self._producer.commit_transaction())

    def abort_transaction(self) -> None:
        """Drop records that were not sent, wait for those in flight, and abort the transaction.

        Raises:
            TransactionRetriableError: not done within ``max.block.ms``; call it again.
            TransactionFatalError: the producer has failed permanently; the coordinator aborts after the
                timeout.
            TransactionStateError: no transaction is open, or a commit is under way.
        """
        self._run(self._producer.abort_transaction())

    @property
    def transaction_coordinates(self) -> TransactionCoordinates:
        """The coordinates of the open transaction: its transactional id, producer id and epoch.

        Raises:
            TransactionStateError: the producer has no producer id yet.
        """
        return self._producer.transaction_coordinates

    def leave_transaction(self, exc: BaseException | None) -> None:
        """End the block of `transaction`: commit if `exc` is None, else abort. The caller raises `exc`."""
        self._run(self._producer.leave_transaction(exc))

    # -- the end

    def flush(self, timeout: float | None = None) -> None:
        """Send all batches now, and wait until every record is acknowledged or has failed.

        Failures are raised by the deliveries, not by this call. Failures of deliveries that the application
        does not read are logged.

        Raises:
            RequestTimeoutError: not done within `timeout` seconds.
        """
        self._run(self._producer.flush(timeout))

    @checked(timeout=seconds)
    def close(self, timeout: float | None = None) -> None:
        """Flush, then close. Records that are not acknowledged within `timeout` seconds fail.

        An open transaction is aborted, unless it is prepared.
        """
        _unclosed.discard(self)
        if self._process is Blocking._this_process:
            self._run(self._producer.close(timeout))


class BlockingTransactionBlock(AbstractContextManager[None]):
    """The context manager that `Producer.transaction` returns: a ``with`` block that is one transaction."""

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
    """Flush and close the producers that the program left open, when the interpreter exits."""
    deadline = time.monotonic() + EXIT_PATIENCE_S
    for producer in list(_unclosed):
        with contextlib.suppress(PenstockError):
            producer.close(max(0.0, deadline - time.monotonic()))
