"""The blocking share consumer, which runs the asyncio share consumer on the background loop."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Unpack

from penstock.client.arguments import checked, column_names, flag, poll_ms, seconds, size
from penstock.client.blocking.base import Blocking
from penstock.client.closing import closing_patience_s
from penstock.client.share.acknowledgements import AcknowledgementCallback, AcknowledgeType
from penstock.client.share.consumer import ARROW_BATCH_BYTES, ITERATION_POLL_S, AsyncShareConsumer
from penstock.client.share.readings import SHARE_COLUMN_NAMES
from penstock.common.extras import need_arrow
from penstock.common.hints import with_hints
from penstock.errors import ConfigError
from penstock.model import K, ShareRecord, TopicPartition, V

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.cluster.instance_id import HasInstanceId
    from penstock.client.options import ShareConsumerOptions
    from penstock.client.share.workers import Handler, OnError, PoolSummary
    from penstock.client.statistics import Statistics
    from penstock.errors import PenstockError


@with_hints("ShareConsumer")
class ShareConsumer(Blocking, Generic[K, V]):
    """Reads records from topics as from a queue: a share group gives each record to one of its members.

    >>> with ShareConsumer("localhost:9092", group_id="thumbnails") as consumer:
    ...     consumer.subscribe("images")
    ...     consumer.run(make_thumbnail, workers=8)

    >>> with ShareConsumer("localhost:9092", group_id="mail") as consumer:
    ...     consumer.subscribe("letters")
    ...     for record in consumer:
    ...         send(record)

    Options are keywords, or stand in `config` under Kafka's dotted names. Those that most programs set:

        group_id: the share group; it must have no consumers of other types.
        share_acknowledgement_mode: ``implicit`` (the default), or ``explicit`` to `acknowledge` each record.
        share_acquire_mode: ``batch_optimized`` (default), or ``record_limit``: never more than requested.
        max_poll_records, max_poll_interval_ms: 500; 300,000.
        security_protocol, sasl_mechanism, sasl_username, sasl_password, ssl_cafile: TLS and logins.

    `penstock.client.ShareConsumerOptions` describes all of them. The offset at which a group begins, how long
    a record is locked and how often it is delivered are settings of the group: `share.auto.offset.reset`,
    `share.record.lock.duration.ms`, `share.delivery.count.limit`.

    Only one thread may use a share consumer at a time; heartbeats continue in the background. Share groups
    (KIP-932) need Kafka 4.2 or newer.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: ShareConsumerOptions | Mapping[str, object] | None = None,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **options: Unpack[ShareConsumerOptions],
    ) -> None:
        super().__init__()
        self._consumer = AsyncShareConsumer[K, V](
            bootstrap_servers,
            config,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            **options,
        )

    def _twin(self) -> HasInstanceId:
        return self._consumer

    def _start(self) -> None:
        self._run(self._consumer.start())

    def stats(self) -> Statistics:
        """Return a snapshot of this consumer's counters. Any thread may call this method."""
        return self._consumer.stats()

    @property
    def member_id(self) -> str:
        """The id of this consumer in its group, which is also the key of its share sessions."""
        return self._consumer.member_id

    # -- what to read

    def subscribe(
        self, topics: str | Iterable[str], *, on_acknowledged: AcknowledgementCallback | None = None
    ) -> None:
        """Join the share group, and read records of these topics together with its other members.

        Subscribing again replaces the topics and the callback. `on_acknowledged` is called after brokers have
        answered acknowledgements, with ranges of offsets by partition, and the error or None. It runs inside
        `poll`, `commit` or `close`, in the thread that calls these; within `run` on the background loop.
        Share groups do not support patterns.

        Raises:
            ConfigError: no topic, or a pattern.
        """
        self._consumer.subscribe(topics, on_acknowledged=on_acknowledged)

    def subscription(self) -> set[str]:
        """Return the topics that this consumer is subscribed to."""
        return self._consumer.subscription()

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that the group has assigned to this member; others may have them, too."""
        return self._consumer.assignment()

    def unsubscribe(self) -> None:
        """Send acknowledgements as `close` does, and leave the group."""
        self._run(self._consumer.unsubscribe())

    # -- records

    def poll(self, timeout_ms: float = 1_000.0, max_records: int | None = None) -> list[ShareRecord[K, V]]:
        """Return the next records, at most `max_records`; wait up to `timeout_ms` for the first.

        The default of `max_records` is ``max.poll.records``. In implicit mode this call accepts the records
        of the last poll. Records whose locks were renewed are returned before any new records.

        Raises:
            ConfigError: a record of the last poll has no acknowledgement (explicit mode); no subscription.
            KafkaError: the group refuses the member, or the client is not authorized for a topic.
            CorruptRecordError: a batch is damaged. Its records are rejected.
            DeserializationError: a deserializer has raised. The error has the record, which is released.
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError: the client has not reached any broker so far.
        """
        consumer = self._consumer
        limit = consumer.poll_limit(max_records)
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        if self._begin_poll(deadline):
            return consumer.rows_again()
        while True:
            records = consumer.poll_now(limit)
            if records or not self._run(consumer.wait(deadline, limit)):
                self._notify()
                return records

    def poll_arrow(
        self,
        timeout_ms: float = 1_000.0,
        *,
        columns: Sequence[str] = SHARE_COLUMN_NAMES,
        batch_bytes: int = ARROW_BATCH_BYTES,
    ) -> pa.RecordBatch | None:
        """Return the next records of one partition as an Arrow batch with the given columns, in that order.

        ``deliveryCount`` is how often each record was delivered. `acknowledge` takes the batch, or slices and
        filtered parts of it, as long as they have the columns topic, partition and offset. The batch has
        about `batch_bytes` bytes, or less. Returns None if no records come within `timeout_ms`. Raises as
        `poll`.
        """
        need_arrow("poll_arrow")
        consumer = self._consumer
        names = column_names(columns, SHARE_COLUMN_NAMES)
        size(batch_bytes, "batch_bytes")
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        if self._begin_poll(deadline):
            return consumer.batch_again()
        while True:
            batch = consumer.poll_arrow_now(names, batch_bytes)
            if batch is not None or not self._run(consumer.wait(deadline, consumer.config.max_poll_records)):
                self._notify()
                return batch

    def _begin_poll(self, deadline: float) -> bool:
        """In implicit mode, accept the last poll's records; else check that each is acknowledged.

        Also send lock renewals. Returns True if the next poll must return the renewed records again.
        """
        consumer = self._consumer
        consumer.begin_poll()
        again = consumer.holdings.has_renewed and self._run(consumer.renewed(deadline))
        self._notify()
        return again

    def _notify(self) -> None:
        """Call `on_acknowledged` in this thread with the outcomes that have arrived."""
        for call in self._consumer.notices():
            call()

    def __iter__(self) -> Iterator[ShareRecord[K, V]]:
        """Yield records for ever, and wait for new ones.

        In implicit mode, asking for the next record accepts the one before.
        """
        consumer = self._consumer
        while True:
            if self._begin_poll(time.monotonic() + ITERATION_POLL_S):
                yield from consumer.rows_again()
                continue
            records = consumer.poll_now(1)
            if records:
                yield records[0]
            else:
                self._run(
                    consumer.wait(time.monotonic() + ITERATION_POLL_S, consumer.config.max_poll_records)
                )

    # -- acknowledgements

    def acknowledge(self, what: Any, type: AcknowledgeType | str = AcknowledgeType.ACCEPT) -> None:
        """Acknowledge a record of the last poll, several of them, or rows of an Arrow batch.

        `what` is a record, an iterable of records, or a record batch or table with the columns topic,
        partition and offset: the batch, or a slice or a filtered part of it. The acknowledgement is sent with
        the next poll, `commit` or `close`; until then a later one replaces it. ``renew`` prolongs the lock,
        and the next poll returns the records again.

        Raises:
            ConfigError: the mode is implicit, the consumer has no lock on a record, or there is no such type.
        """
        self._consumer.acknowledge(what, type)

    def acknowledge_offsets(
        self,
        partition: TopicPartition | tuple[str, int],
        first: int,
        last: int,
        type: AcknowledgeType | str = AcknowledgeType.ACCEPT,
    ) -> None:
        """Acknowledge the offsets from `first` to `last`, both inclusive.

        This consumer must hold the locks of all these offsets.

        Use it for rows of an Arrow batch without the columns that `acknowledge` needs. ``renew`` is not
        possible this way. Raises as `acknowledge`.
        """
        self._consumer.acknowledge_offsets(partition, first, last, type)

    def commit(self, timeout_ms: float | None = None) -> dict[TopicPartition, PenstockError | None]:
        """Send acknowledgements and wait for the responses; return a dict from partition to error or None.

        In implicit mode this accepts the records of the last poll. The call waits for `timeout_ms` at most,
        by default ``default.api.timeout.ms``.

        Raises:
            RequestTimeoutError: a broker has not answered in time; its records may be delivered again.
        """
        results = self._run(self._consumer.commit_now(timeout_ms))
        self._notify()
        return results

    def commit_async(self) -> None:
        """Send acknowledgements in the background; `on_acknowledged` is called with their outcomes.

        In implicit mode this accepts the records of the last poll.
        """
        self._consumer.commit_async()

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """The lock duration of this group's records in milliseconds; None before the first fetch."""
        return self._consumer.acquisition_lock_timeout_ms

    # -- a pool of workers

    def run(
        self,
        handler: Handler,
        workers: int = 8,
        *,
        on_error: OnError | None = None,
        idle_ms: float | None = None,
    ) -> PoolSummary:
        """Run threads that process records until `stop` is called, or no record has come for `idle_ms`.

        Each thread calls `handler` with one record at a time. A record is accepted when `handler` returns,
        and released when it raises; `handler` may return another type, such as ``"reject"``. After an
        exception, `on_error` is called with the record and the exception, and may return a type as well.
        Locks of records that are being processed are renewed in time. Both modes of acknowledgement work.
        Ctrl-C ends the call at once: records that are being processed are delivered again.

        Returns:
            How many records were accepted, released and rejected, and how many acknowledgements were refused.

        Raises:
            ConfigError: no subscription, records of a poll are not acknowledged, or an argument is wrong.
            PenstockError: as `poll`.
        """
        if inspect.iscoroutinefunction(handler):
            raise ConfigError("handler is a coroutine function: use AsyncShareConsumer, or a plain one")
        return self._run(self._consumer.run(handler, workers, on_error=on_error, idle_ms=idle_ms))

    def stop(self) -> None:
        """Make `run` return once its workers have finished their current records.

        Any thread may call this.
        """
        self._consumer.stop()

    # -- the end

    def __exit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        self.close(has_failed=exc_type is not None, timeout=closing_patience_s(exc_type))

    @checked(has_failed=flag, timeout=seconds)
    def close(self, *, has_failed: bool = False, timeout: float | None = None) -> None:
        """Send acknowledgements, release all other records, leave the group, and close the connections.

        In implicit mode, the records of the last poll are accepted, unless the application `has_failed`: then
        they are delivered again. In explicit mode, records without an acknowledgement are delivered again.
        The call waits for `timeout` seconds at most, by default 30; at the end of a `with` block that an
        interrupt has left, half a second.
        """
        if self._process is Blocking._this_process and not self._is_closed:
            self._is_closed = True
            try:
                self._run(self._consumer.close_now(has_failed=has_failed, timeout=timeout))
                self._notify()
            finally:
                self._run(self._consumer.let_go())
