"""The blocking consumer, which runs the asyncio consumer on the background loop."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from penstock.client.arguments import checked, column_names, flag, poll_ms, seconds
from penstock.client.blocking.base import Blocking
from penstock.client.closing import closing_patience_s
from penstock.client.fetch.consumer import ARROW_BATCH_BYTES, ITERATION_POLL_S, AsyncConsumer, WhenDone
from penstock.client.group.offsets import Committable, GroupMetadata, OffsetAndMetadata
from penstock.client.group.session import Callback
from penstock.common.extras import need_arrow
from penstock.common.hints import with_hints
from penstock.model import COLUMN_NAMES, K, Record, TopicPartition, V

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from penstock.client.cluster.instance_id import HasInstanceId
    from penstock.client.fetch.cursors import FetchedPart
    from penstock.client.options import ConsumerOptions
    from penstock.client.statistics import Statistics

T = TypeVar("T")


@with_hints("Consumer")
class Consumer(Blocking, Generic[K, V]):
    """Reads records of partitions that the application assigns, or that the consumer's group assigns to it.

    >>> with Consumer("localhost:9092", group_id="billing") as consumer:
    ...     consumer.subscribe("orders")
    ...     for record in consumer:
    ...         bill(record)

    >>> with Consumer("localhost:9092") as consumer:
    ...     consumer.assign([TopicPartition("orders", 0)])
    ...     consumer.seek_to_beginning()
    ...     records = consumer.poll(timeout_ms=1000)

    Options are keywords, or stand in `config` under Kafka's dotted names. Those that most programs set:

        group_id: the group that shares topics and keeps offsets; without it, partitions are assigned by call.
        auto_offset_reset: the start without a committed offset: ``latest`` (default) or ``earliest``.
        enable_auto_commit: whether positions are committed in the background; True by default.
        isolation_level: ``read_uncommitted`` (the default) or ``read_committed``.
        max_poll_records, max_poll_interval_ms, session_timeout_ms: 500; 300,000; 45,000.
        security_protocol, sasl_mechanism, sasl_username, sasl_password, ssl_cafile: TLS and logins.

    `penstock.client.ConsumerOptions` describes all of them.

    Only one thread may use a consumer at a time; heartbeats continue in the background. Callbacks of
    `subscribe` run in the thread that polls.

    Keys and values are bytes, or what `key_deserializer` and `value_deserializer` return for them. A
    deserializer is a function of one argument, such as ``bytes.decode``, and is never called with None.
    `poll_arrow` does not use deserializers.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: ConsumerOptions | Mapping[str, object] | None = None,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        super().__init__()
        self._consumer = AsyncConsumer[K, V](
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
        """Return a snapshot of this consumer's counters and positions. Any thread may call this method.

        To get snapshots at intervals, set ``statistics.interval.ms`` and ``stats_cb``.
        """
        return self._consumer.stats()

    # -- what to read

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others. Partitions that were assigned before keep their positions.

        With a ``group.id``, reading begins at its committed offsets; the consumer does not join the group.

        Raises:
            ConfigError: topics are subscribed to, or an item is no partition.
        """
        self._consumer.assign(partitions)

    def subscribe(
        self,
        topics: str | re.Pattern[str] | Iterable[str],
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Join the group, and read the partitions of these topics that the group assigns to this member.

        `topics` are names, or a pattern that must match whole names: compiled, or text that begins with
        ``^``. With ``group.protocol=consumer`` (KIP-848) the broker matches the text. Subscribing again
        replaces the topics and the callbacks.

        Callbacks get a list of partitions and run inside `poll`, or any other call that waits for records.
        With ``group.protocol=consumer``, or with ``cooperative-sticky`` as the only assignor, the list has
        the partitions that change; otherwise it has all of them at each rebalance. `on_revoked` is the last
        chance to commit. When partitions are lost, it is too late to commit: `on_lost` is called, or
        `on_revoked` if there is no `on_lost`.

        Raises:
            ConfigError: no ``group.id``; no topic; an invalid pattern; partitions are assigned.
        """
        self._consumer.subscribe(topics, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that this consumer reads now."""
        return self._consumer.assignment()

    def subscription(self) -> set[str]:
        """Return the subscribed topics; for a pattern, the matching topics in the client's metadata."""
        return self._consumer.subscription()

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partition numbers of a topic.

        Raises:
            KafkaError: the topic does not exist, or the client is not authorized to describe it.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._consumer.partitions_for_topic(topic))

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Set the position of a partition to an offset, or to `EARLIEST` or `LATEST`.

        Raises:
            ConfigError: the partition is not assigned, or the offset is negative.
        """
        self._consumer.seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Set the positions of some partitions, by default all, to their first records. Raises as `seek`."""
        self._consumer.seek_to_beginning(*partitions)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Set the positions of some partitions, by default all, after their last records.

        Raises as `seek`.
        """
        self._consumer.seek_to_end(*partitions)

    def seek_to_committed(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Set the positions of some partitions, by default all, to the group's committed offsets.

        After an aborted transaction, this makes the consumer return its records again. For a partition
        without a committed offset, ``auto.offset.reset`` decides on the position.

        Raises:
            ConfigError: a partition is not assigned, or there is no ``group.id``.
        """
        self._consumer.seek_to_committed(*partitions)

    def pause(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Return no records of some partitions until `resume`. Raises ConfigError if one is not assigned."""
        self._consumer.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Continue to read paused partitions from their positions. Raises as `pause`."""
        self._consumer.resume(partitions)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused."""
        return self._consumer.paused()

    # -- records

    def poll(self, timeout_ms: float = 1_000.0, max_records: int | None = None) -> list[Record[K, V]]:
        """Return the next records, of one or more partitions; wait up to `timeout_ms` for the first.

        The result has records that are fetched already, at most `max_records` (default ``max.poll.records``).

        Raises:
            KafkaError: a topic does not exist, or a position is outside the log and may not be reset.
            CorruptRecordError: a batch is damaged. The position stays before the batch: `seek` past it.
            DeserializationError: a deserializer has raised. The error has the record. The next poll continues
                after the record, unless you `seek` to it.
            NetworkError: the client has not reached any broker so far.
            PenstockError: the group refuses the member, or an assignor of the application has failed.
        """
        consumer = self._consumer
        limit = consumer.poll_limit(max_records)
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        while True:
            if consumer.needs_attention:
                self._attend()
            records = consumer.poll_now(limit)
            if records or not self._run(consumer.wait(deadline)):
                return records

    def poll_arrow(
        self,
        timeout_ms: float = 1_000.0,
        *,
        columns: Sequence[str] = COLUMN_NAMES,
        batch_bytes: int = ARROW_BATCH_BYTES,
    ) -> pa.RecordBatch | None:
        """Return the next records of one partition as an Arrow batch with the given columns, in that order.

        The batch has about `batch_bytes` bytes, or less. Returns None if no records come within `timeout_ms`.
        Raises as `poll`.
        """
        need_arrow("poll_arrow")
        columns = column_names(columns, COLUMN_NAMES)
        consumer = self._consumer
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        while True:
            if consumer.needs_attention:
                self._attend()
            batch = consumer.poll_arrow_now(columns, batch_bytes)
            if batch is not None or not self._run(consumer.wait(deadline)):
                return batch

    def poll_part(self, timeout_ms: float = 1_000.0) -> FetchedPart | None:
        """Return record batches of one partition as bytes, or None if none come within `timeout_ms`.

        The batches are from one Fetch response. The consumer neither decodes nor checks them. They may hold
        control batches, batches of aborted transactions (the result lists these transactions), and records
        before the result's `start`. Use this call to copy batches unchanged. Raises as `poll`.
        """
        consumer = self._consumer
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        while True:
            if consumer.needs_attention:
                self._attend()
            part = consumer.part_now()
            if part is not None or not self._run(consumer.wait(deadline)):
                return part

    def __iter__(self) -> Iterator[Record[K, V]]:
        """Yield records for ever, and wait for new ones. The position moves with each record."""
        while True:
            if self._consumer.needs_attention:
                self._attend()
            yield from self._consumer.iterate_now()
            self._run(self._consumer.wait(time.monotonic() + ITERATION_POLL_S))

    def _attend(self) -> None:
        """Process pending rebalances of the group, and call the application's callbacks in this thread."""
        consumer = self._consumer
        while (notice := self._run(consumer.notice())) is not None:
            call, confirm = notice
            try:
                if call is not None:
                    call()
            finally:
                self._run(confirm())

    def unsubscribe(self) -> None:
        """Leave the group. If commits are automatic, commit first."""
        self._leave(False)

    def commit(self, offsets: Committable | None = None) -> None:
        """Commit `offsets` (the next offset to read of each partition), by default the positions.

        Values of `offsets` are numbers, or `OffsetAndMetadata`. A position is the offset after the last
        record that the consumer has returned.

        Raises:
            KafkaError: the group has removed this member (22, 25, 82 or 113), or refuses.
            ConfigError: no ``group.id``, or a negative offset.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        self._run(self._consumer.commit(offsets))

    def commit_async(
        self,
        offsets: Committable | None = None,
        when_done: WhenDone | None = None,
    ) -> None:
        """Commit in the background, in the order of the calls. `when_done` gets offsets and error.

        The background thread calls `when_done`, with None as the error after a success. Raises ConfigError
        without ``group.id``.
        """
        self._run(_on_loop(lambda: self._consumer.commit_async(offsets, when_done)))

    def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, or None where the group has committed none.

        Raises:
            KafkaError: the client is not authorized for the group.
            ConfigError: no ``group.id``.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._consumer.committed(partitions))

    def group_metadata(self) -> GroupMetadata:
        """Return the member's current id and generation, for `send_offsets` of a producer (KIP-447).

        Raises:
            KafkaError: the group has removed this member (25), or the member has not joined yet.
            ConfigError: no ``group.id``.
        """
        return self._run(_on_loop(self._consumer.group_metadata))

    def positions(self) -> dict[TopicPartition, int]:
        """Return each assigned partition's next offset to read, which follows the last record returned.

        Partitions from which nothing has been read yet are left out. Raises ConfigError without ``group.id``.
        """
        return self._run(_on_loop(self._consumer.positions))

    def lag(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """Return the number of offsets from each partition's position to its end. Raises as `poll`."""
        return self._run(self._consumer.lag(partitions))

    @property
    def member_id(self) -> str:
        """The id of this consumer in its group, or an empty string before the consumer has joined."""
        return self._consumer.member_id

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that this consumer will return. Raises as `poll`."""
        return self._run(self._consumer.position(partition))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition.

        Raises:
            KafkaError: a partition does not exist, or the client is not authorized for its topic.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._consumer.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset that the next record of each partition will get.

        With ``isolation.level=read_committed``, this is the last stable offset.

        Raises:
            KafkaError: a partition does not exist, or the client is not authorized for its topic.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._consumer.end_offsets(partitions))

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int | datetime]
    ) -> dict[TopicPartition, int | None]:
        """Return the offset of each partition's first record at or after a time, or None if there is none.

        Times are milliseconds since 1970, or datetimes (without a zone: local time).

        Raises:
            KafkaError: a partition does not exist, or the client is not authorized for its topic.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._consumer.offsets_for_times(times))

    def __exit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        self.close(has_failed=exc_type is not None, timeout=closing_patience_s(exc_type))

    @checked(has_failed=flag, timeout=seconds)
    def close(self, *, has_failed: bool = False, timeout: float | None = None) -> None:
        """Leave the group, stop fetching and close the connections.

        An automatic commit includes the records that were returned last. If the application `has_failed`, the
        commit leaves them out, so that they are read again. A static member (``group.instance.id``) does not
        leave: its partitions stay with it until its session ends.

        The commit and the leave request each have `timeout` seconds at most; after that, the group removes
        the member at the end of ``session.timeout.ms``. At the end of a `with` block that an interrupt has
        left, the limit is half a second.
        """
        if self._process is Blocking._this_process and not self._is_closed:
            self._is_closed = True
            try:
                self._leave(has_failed, timeout)
            finally:
                self._run(self._consumer.let_go())

    def _leave(self, has_failed: bool, timeout: float | None = None) -> None:
        if self._consumer.is_in_group:
            self._run(_within(timeout, self._consumer.begin_leaving(has_failed)))
            self._attend()
            self._run(_within(timeout, self._consumer.end_leaving()))


async def _within(timeout: float | None, work: Coroutine[Any, Any, None]) -> None:
    """Await `work` for at most `timeout` seconds, then cancel it; None means no limit."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            await work


async def _on_loop(action: Callable[[], T]) -> T:
    return action()
