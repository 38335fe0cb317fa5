"""The blocking consumer: that for asyncio, on the background loop."""

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
    """Reads records of partitions, those of its choice or those that its group gives it.

    >>> with Consumer("localhost:9092", group_id="billing") as consumer:
    ...     consumer.subscribe("orders")
    ...     for record in consumer:
    ...         bill(record)

    >>> with Consumer("localhost:9092") as consumer:
    ...     consumer.assign([TopicPartition("orders", 0)])
    ...     consumer.seek_to_beginning()
    ...     records = consumer.poll(timeout_ms=1000)

    Options are keywords, or stand in `config` under Kafka's dotted names. Those that most programs set:

        group_id: the group that shares the topics and keeps offsets; without it, partitions are assigned.
        auto_offset_reset: where to begin without a position: ``latest`` (the default) or ``earliest``.
        enable_auto_commit: whether positions are committed in the background; True by default.
        isolation_level: ``read_uncommitted`` (the default) or ``read_committed``.
        max_poll_records, max_poll_interval_ms, session_timeout_ms: 500; 300,000; 45,000.
        security_protocol, sasl_mechanism, sasl_username, sasl_password, ssl_cafile: TLS and logins.

    `penstock.client.ConsumerOptions` describes all of them.

    For one thread at a time; heartbeats go on in the background. Callbacks of `subscribe` run in the
    thread that polls.

    Keys and values are bytes, or what `key_deserializer` and `value_deserializer` make of them. These are
    functions of one argument, such as ``bytes.decode``; None is never given to them. `poll_arrow` is not
    concerned.
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
        """Return what this consumer has done since it was made, and what it has in hand. From any thread.

        ``statistics.interval.ms`` and ``stats_cb`` have it reported again and again.
        """
        return self._consumer.stats()

    # -- what to read

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others. Positions of those that stay are kept.

        With a ``group.id``, reading begins where the group has committed; it does not join the group.

        Raises:
            ConfigError: topics are subscribed to, or something is no partition.
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
        """Share the partitions of these topics with the other members of the group.

        `topics` are names, or a pattern that must fit whole names: compiled, or text beginning with
        ``^``, which the broker matches with ``group.protocol=consumer`` (KIP-848). Subscribing again replaces
        the topics and the callbacks. Callbacks get a list of partitions and run inside `poll`, or any other
        call that waits for records. They get what changes with ``group.protocol=consumer``,
        or with ``cooperative-sticky`` alone; otherwise everything each time. `on_revoked` is the last chance
        to commit; when partitions are lost it is too late for that (without `on_lost`, `on_revoked` is
        called then, too).

        Raises:
            ConfigError: no ``group.id``; no topic; a pattern that is none; partitions are assigned.
        """
        self._consumer.subscribe(topics, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read."""
        return self._consumer.assignment()

    def subscription(self) -> set[str]:
        """Return the topics that are subscribed to; of a pattern, those that fit as far as they are known."""
        return self._consumer.subscription()

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the numbers of a topic's partitions.

        Raises:
            KafkaError: the topic does not exist, or may not be seen.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._consumer.partitions_for_topic(topic))

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on at an offset, or at `EARLIEST` or `LATEST`.

        Raises:
            ConfigError: the partition is not assigned, or the offset is negative.
        """
        self._consumer.seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the first record of some partitions, of all by default. Raises as `seek`."""
        self._consumer.seek_to_beginning(*partitions)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on behind the last record of some partitions, of all by default. Raises as `seek`."""
        self._consumer.seek_to_end(*partitions)

    def seek_to_committed(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go back to what the group has committed, for some partitions, for all by default.

        What an aborted transaction has read comes again. Where nothing is committed, ``auto.offset.reset``
        decides.

        Raises:
            ConfigError: a partition is not assigned, or there is no ``group.id``.
        """
        self._consumer.seek_to_committed(*partitions)

    def pause(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Hand out no records of some partitions until `resume`.

        Raises:
            ConfigError: a partition is not assigned.
        """
        self._consumer.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Go on with paused partitions, where they were. Raises as `pause`."""
        self._consumer.resume(partitions)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused."""
        return self._consumer.paused()

    # -- records

    def poll(self, timeout_ms: float = 1_000.0, max_records: int | None = None) -> list[Record[K, V]]:
        """Return the next records, of one partition or several: what is there at once, at most
        `max_records` (default ``max.poll.records``); wait up to `timeout_ms` for the first.

        Raises:
            KafkaError: a topic does not exist, or the position is outside the log and
                ``auto.offset.reset`` is none.
            CorruptRecordError: a batch is damaged. Its partition stays where it is: `seek` past it.
            DeserializationError: a deserializer has raised. The error has the record, which counts as handed
                out: the next poll goes on behind it, unless you `seek` to it.
            NetworkError: no broker has been reached so far.
            PenstockError: the group refuses the member, or an assignor of one's own has failed.
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

        About `batch_bytes` large, or less; None when nothing comes within `timeout_ms`. Raises as `poll`.
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
        """Return what one answer holds of one partition, as whole batches of bytes; None after `timeout_ms`.

        Nothing is decoded or checked: there may be control batches, aborted ones (the part says which), and
        records before its `start`. For copies of batches as they are. Raises as `poll`.
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
        """Yield every record, for ever. The position follows record by record."""
        while True:
            if self._consumer.needs_attention:
                self._attend()
            yield from self._consumer.iterate_now()
            self._run(self._consumer.wait(time.monotonic() + ITERATION_POLL_S))

    def _attend(self) -> None:
        """Do the group's pending work, and call the callbacks in this thread."""
        consumer = self._consumer
        while (notice := self._run(consumer.notice())) is not None:
            call, confirm = notice
            try:
                if call is not None:
                    call()
            finally:
                self._run(confirm())

    def unsubscribe(self) -> None:
        """Leave the group. Commits before, if commits are automatic."""
        self._leave(False)

    def commit(self, offsets: Committable | None = None) -> None:
        """Commit `offsets`, the next to read of each partition; by default where every partition is.

        Values are numbers, or `OffsetAndMetadata`. By default that is behind the last record returned.

        Raises:
            KafkaError: the group has gone on without this member (22, 25, 82 or 113), or refuses.
            ConfigError: no ``group.id``, or a negative offset.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        self._run(self._consumer.commit(offsets))

    def commit_async(
        self,
        offsets: Committable | None = None,
        when_done: WhenDone | None = None,
    ) -> None:
        """Commit in the background, in the order of the calls; `when_done` gets the offsets and the error.

        That function runs in the background thread; the error is None where there was none. Raises
        ConfigError without ``group.id``.
        """
        self._run(_on_loop(lambda: self._consumer.commit_async(offsets, when_done)))

    def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the offset that the group has committed for each partition; None for nothing.

        Raises:
            KafkaError: the group may not be read.
            ConfigError: no ``group.id``.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._consumer.committed(partitions))

    def group_metadata(self) -> GroupMetadata:
        """Return the member's present id and generation: what `send_offsets` of a producer takes (KIP-447).

        Raises:
            KafkaError: the group has gone on without this member (25), or it has not joined yet.
            ConfigError: no ``group.id``.
        """
        return self._run(_on_loop(self._consumer.group_metadata))

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset to read of each assigned partition: behind the last record returned.

        A partition is left out until something was read from it. Raises ConfigError without ``group.id``.
        """
        return self._run(_on_loop(self._consumer.positions))

    def lag(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """Return how many offsets lie between the position of each partition and its end. Raises as
        `poll`.
        """
        return self._run(self._consumer.lag(partitions))

    @property
    def member_id(self) -> str:
        """The id of this consumer in its group; empty before it has one."""
        return self._consumer.member_id

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record to be handed out. Raises as `poll`."""
        return self._run(self._consumer.position(partition))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition.

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._consumer.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset that the next record of each partition will get.

        With ``isolation.level=read_committed``, where the first open transaction begins.

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._consumer.end_offsets(partitions))

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int | datetime]
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset whose record is not older than the given time, or None.

        Times are milliseconds since 1970, or datetimes (without a zone: local time).

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._consumer.offsets_for_times(times))

    def __exit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        self.close(has_failed=exc_type is not None, timeout=closing_patience_s(exc_type))

    @checked(has_failed=flag, timeout=seconds)
    def close(self, *, has_failed: bool = False, timeout: float | None = None) -> None:
        """Leave the group, stop fetching and close the connections.

        Automatic commits include what has been handed out last; unless the application `has_failed`,
        so that those records come again. A static member keeps its place until its session ends.

        Committing and leaving are given up after `timeout` seconds each; the group then notices at the end
        of ``session.timeout.ms``. The end of a `with` block waits half a second at most when the program
        is interrupted.
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
    """Await `work` for so many seconds at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            await work


async def _on_loop(action: Callable[[], T]) -> T:
    return action()
