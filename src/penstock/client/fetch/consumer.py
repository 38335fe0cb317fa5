"""The consumer for asyncio: partitions, assigned by hand or by a group, read as records or Arrow batches.

`fetched_records` returns fetched records; this module assigns partitions, seeks, commits, and waits for
records. Fetching begins with the first poll: `assign`, `subscribe` and `seek` do no I/O.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Self, Unpack

from penstock.client.arguments import (
    by_partition,
    checked,
    column_names,
    flag,
    function,
    optional,
    poll_ms,
    time_ms,
    topic_name,
    topic_partition,
    topic_partitions,
    whole,
)
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.instance_id import HasInstanceId
from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.cursors import Cursor, FetchSettings
from penstock.client.fetch.fetched_records import BY_AGE, COMMITTED, NO_POSITION, FetchedRecords
from penstock.client.fetch.fetcher import Fetcher
from penstock.client.fetch.offsets import fetch_known_offsets, fetch_offsets
from penstock.client.group.offsets import Committable, GroupMetadata, OffsetAndMetadata
from penstock.client.group.session import Callback, Callbacks, GroupSession
from penstock.clock import Clock, SystemClock
from penstock.common.extras import need_arrow
from penstock.common.hints import with_hints
from penstock.errors import ConfigError, NetworkError, PenstockError
from penstock.model import COLUMN_NAMES, EARLIEST, LATEST, K, Record, TopicPartition, V

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from penstock.client.fetch.cursors import FetchedPart
    from penstock.client.options import ConsumerOptions
    from penstock.client.statistics import Statistics

BREATH_S = 0.02
"""The time in seconds after which ``async for`` lets other tasks of the event loop run."""

ITERATION_POLL_S = 1.0
INNER = ("fetched_bytes", "iterate_now", "poll_arrow_now", "poll_limit", "poll_now", "wait")
"""Methods that `with_hints` does not wrap, because they are called for each record or poll, and only by the
consumer classes themselves.
"""
ARROW_BATCH_BYTES = 4 << 20
THREADED_BYTES_MIN = 128 << 10
"""The size in bytes from which fetched records are decoded in another thread. The first fetched records
always are."""


WhenDone = Callable[[Committable, "PenstockError | None"], object]
"""A function that gets the offsets of a commit in the background, and its error or None."""


@with_hints("AsyncConsumer", leave=INNER)
class AsyncConsumer(HasInstanceId, Generic[K, V]):
    """Reads records of partitions that the application assigns, or that the consumer's group assigns to it.

    >>> async with AsyncConsumer("localhost:9092", group_id="billing") as consumer:
    ...     consumer.subscribe("orders")
    ...     async for record in consumer:
    ...         await bill(record)

    >>> async with AsyncConsumer("localhost:9092") as consumer:
    ...     consumer.assign([TopicPartition("orders", 0)])
    ...     consumer.seek_to_beginning()
    ...     records = await consumer.poll(timeout_ms=1000)

    Options are keywords, or stand in `config` under Kafka's dotted names. Those that most programs set:

        group_id: the group that shares topics and keeps offsets; without it, partitions are assigned by call.
        auto_offset_reset: the start without a committed offset: ``latest`` (default) or ``earliest``.
        enable_auto_commit: whether positions are committed in the background; True by default.
        isolation_level: ``read_uncommitted`` (the default) or ``read_committed``.
        max_poll_records, max_poll_interval_ms, session_timeout_ms: 500; 300,000; 45,000.
        security_protocol, sasl_mechanism, sasl_username, sasl_password, ssl_cafile: TLS and logins.

    `penstock.client.ConsumerOptions` describes all of them.

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
        self.config = ConsumerConfig.of(
            config,
            options,
            bootstrap_servers=bootstrap_servers,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )
        self._clock: Clock = SystemClock()
        self._paused: set[TopicPartition] = set()
        self._client = AsyncClient(self.config)
        self._fetched: FetchedRecords[K, V] = FetchedRecords(self.config, self._client.cluster)
        self._is_closed = False
        self._group = GroupSession(self._client, self.config, self) if self.config.group_id else None
        self._starting: asyncio.Task[None] | None = None
        self._columns_read: set[tuple[str, ...]] = set()
        """The columns that were decoded before. Their decoders are already imported and compiled."""
        self._client.begin_reports(self.stats)

    def __repr__(self) -> str:
        group = "" if self.config.group_id is None else f", group {self.config.group_id}"
        count = len(self._fetched.positions)
        return f"<{type(self).__name__} of {self.config.described}{group}, {count} partitions>"

    async def start(self) -> Self:
        """Connect to the cluster. This call is optional: the first `poll` connects if necessary.

        Raises:
            NetworkError: no bootstrap server answers.
        """
        if self._is_closed:
            raise NetworkError("this consumer is closed")
        await self._client.bootstrap()
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, exc_type: object, exc: object, traceback: object) -> None:
        await self.close(has_failed=exc_type is not None)

    @checked(has_failed=flag)
    async def close(self, *, has_failed: bool = False) -> None:
        """Leave the group, stop fetching and close the connections.

        An automatic commit includes the records that were returned last, unless the application `has_failed`.
        A static member (``group.instance.id``) does not leave: it keeps its partitions until its session
        ends.
        """
        if not self._is_closed:
            try:
                await self._leave(has_failed)
            finally:
                await self.let_go()

    async def _leave(self, has_failed: bool = False) -> None:
        if self.is_in_group:
            await self.begin_leaving(has_failed)
            await self._attend()
            await self.end_leaving()

    @property
    def is_in_group(self) -> bool:
        return self._group is not None

    async def begin_leaving(self, has_failed: bool = False) -> None:
        """Commit if commits are automatic. After that, `notice` returns callbacks that are still due.

        If the application `has_failed`, positions are first set back before the records that were returned
        last.
        """
        if self._group is not None:
            if has_failed:
                self._fetched.positions.update(self._fetched.finished())
            await self._group.begin_leaving(self.consumed())

    async def end_leaving(self) -> None:
        """Wait a short time for the response to the LeaveGroup request."""
        if self._group is not None:
            await self._group.end_leaving()

    async def let_go(self) -> None:
        """Stop fetching and close the connections, without leaving the group."""
        self._is_closed = True
        self._stop_starting()
        if self._group is not None:
            await self._group.close()
        if self._fetched.fetcher is not None:
            await self._fetched.fetcher.close()
        await self._client.close()

    # -- what to read

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others. Partitions that were assigned before keep their positions.

        With a ``group.id``, reading begins at its committed offsets; the consumer does not join the group.

        Raises:
            ConfigError: topics are subscribed to, or an item is no partition.
        """
        if self._group is not None and self._group.is_subscribed:
            raise ConfigError("assign() and subscribe() exclude each other: unsubscribe() first")
        wanted = topic_partitions(partitions, "assign()")
        self._fetched.assign(wanted, self._fetched.reset_marker if self._group is None else COMMITTED)
        self.needs_attention = self._group is not None
        self._paused &= set(wanted)

    @checked(on_assigned=optional(function), on_revoked=optional(function), on_lost=optional(function))
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
        ``^``, which the broker matches with ``group.protocol=consumer`` (KIP-848). Subscribing again replaces
        the topics and the callbacks.

        Callbacks get a list of partitions and run inside `poll`, or any other call that waits for records;
        they may be coroutine functions. The list has the partitions that change with
        ``group.protocol=consumer``, or with ``cooperative-sticky`` as the only assignor; otherwise all
        partitions. `on_revoked` is the last chance to commit. When partitions are lost, it is too late to
        commit: `on_lost` is called, or `on_revoked` if there is no `on_lost`.

        Raises:
            ConfigError: no ``group.id``; no topic; an invalid pattern; partitions are assigned.
        """
        if self._group is None:
            raise ConfigError('subscribe() needs the option "group.id": which group shares the topics?')
        if self._fetched.positions and not self._group.is_subscribed:
            raise ConfigError("assign() and subscribe() exclude each other: assign([]) first")
        self._group.subscribe(topics, Callbacks(on_assigned, on_revoked, on_lost))

    async def unsubscribe(self) -> None:
        """Leave the group. If commits are automatic, commit first."""
        await self._leave()

    @property
    def member_id(self) -> str:
        """The id of this consumer in its group, or an empty string before the consumer has joined."""
        return self._group.member_id if self._group is not None else ""

    # -- what the group gives and takes (see `penstock.client.group.session.Holder`)

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Read more partitions, beginning at the group's committed offsets. The group calls this method."""
        for tp in partitions:
            self._fetched.positions[tp] = COMMITTED

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading partitions that the group has taken away. The group calls this method."""
        gone = set(partitions)
        # What is being looked up may be old by the time the partition comes back.
        self._stop_starting()
        self._fetched.release(gone)
        self._paused -= gone

    @property
    def needs_attention(self) -> bool:
        """True if the group has changes to process before the consumer returns more records."""
        return self._fetched.needs_attention

    @needs_attention.setter
    def needs_attention(self, needs_attention: bool) -> None:
        self._fetched.needs_attention = needs_attention

    def consumed(self) -> dict[TopicPartition, int]:
        """Return the position of each partition, if known: the next offset to read.

        Partitions of topics that were deleted and created anew are left out.
        """
        return self._fetched.consumed()

    def progress(self) -> object:
        """Return a value that changes with each call that returns records to the application.

        The group compares it with an earlier value to detect that the application takes records.
        """
        return self._fetched.progress()

    def wake_up(self) -> None:
        """Wake a call that waits for records, so that it checks `needs_attention`. The group calls it."""
        if self._fetched.fetcher is not None:
            self._fetched.fetcher.buffer.announce()

    async def notice(
        self,
    ) -> tuple[Callable[[], object] | None, Callable[[], Coroutine[None, None, None]]] | None:
        """Return the callback for the group's next pending change, or None, and a function to await after it.

        Returns None instead of the pair if no change is pending. Raises as `poll`.
        """
        self._fetched.come_back()
        group = self._group
        found = await group.next_notice() if group is not None else None
        if group is None or found is None:
            return None
        callback, partitions = found.callback, list(found.change.partitions)
        return (
            None if callback is None else lambda: callback(partitions),
            lambda: group.confirm(found),
        )

    async def _attend(self) -> None:
        """Process pending rebalances of the group, and call or await the application's callbacks."""
        while (notice := await self.notice()) is not None:
            call, confirm = notice
            try:
                outcome = call() if call is not None else None
                if inspect.isawaitable(outcome):
                    await outcome
            finally:
                await confirm()

    # -- offsets

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that this consumer will return. Raises as `poll`."""
        tp = self._assigned(partition)
        if self._fetched.positions[tp] < 0:
            await self._look_up_positions()
        return self._fetched.positions[tp]

    async def lag(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """Return the number of offsets from each partition's position to its end. Raises as `poll`."""
        wanted = self.assignment() if partitions is None else topic_partitions(partitions, "lag()")
        for tp in wanted:
            self._assigned(tp)
        ends = await self.end_offsets(wanted)
        return {tp: max(0, ends[tp] - await self.position(tp)) for tp in wanted}

    async def _look_up_positions(self) -> None:
        for marker in (COMMITTED, BY_AGE, EARLIEST, LATEST):
            unknown = self._fetched.at(marker)
            if unknown:
                self._fetched.found(marker, await self._look_up(marker, unknown))
        nowhere = self._fetched.at(NO_POSITION)
        if nowhere:
            raise ConfigError(f"partition {nowhere[0]} has no position: seek(), or set auto.offset.reset")

    def stats(self) -> Statistics:
        """Return a snapshot of this consumer's counters and positions. Any thread may call this method.

        To get snapshots at intervals, set ``statistics.interval.ms`` and ``stats_cb``.
        """
        from penstock.client.fetch.consumer_statistics import consumer_statistics

        group = self._group
        return consumer_statistics(
            self._client,
            self.config,
            self._fetched.positions.copy(),
            {} if self._fetched.fetcher is None else self._fetched.fetcher.cursors.copy(),
            self._fetched.counted,
            self._fetched.counted_in_all,
            {} if group is None else group.known_offsets(),
            None if group is None else group.statistics(len(self._fetched.positions)),
            self.fetched_bytes,
        )

    # -- records

    async def poll(self, timeout_ms: float = 1_000.0, max_records: int | None = None) -> list[Record[K, V]]:
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
        limit = self.poll_limit(max_records)
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        if self._group is not None:
            # Records may be there for many polls to come: heartbeats must go on meanwhile.
            await asyncio.sleep(0)
        while True:
            if self.needs_attention:
                await self._attend()
            records = self.poll_now(limit)
            if records or not await self.wait(deadline):
                return records

    def poll_limit(self, max_records: int | None) -> int:
        """Return how many records one poll may return at most.

        Raises:
            ConfigError: `max_records` is not a whole number.
        """
        return self.config.max_poll_records if max_records is None else whole(max_records, "max_records")

    async def poll_arrow(
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
        names = column_names(columns, COLUMN_NAMES)
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        while True:
            if self.needs_attention:
                await self._attend()
            size = self.fetched_bytes
            if size >= THREADED_BYTES_MIN or (size and names not in self._columns_read):
                batch = await self._poll_arrow_in_thread(names, batch_bytes)
            else:
                batch = self.poll_arrow_now(names, batch_bytes)
            if batch is not None or not await self.wait(deadline):
                return batch

    async def _poll_arrow_in_thread(
        self, columns: tuple[str, ...], batch_bytes: int
    ) -> pa.RecordBatch | None:
        """Run `poll_arrow_now` in another thread, and return its result.

        If the call is cancelled, positions are set back to those before the call. The first batch may take
        seconds, while modules are loaded and compiled; meanwhile, heartbeats continue.
        """
        group = self._group
        if group is not None:
            group.poll_begins()
        decoding = asyncio.ensure_future(asyncio.to_thread(self.poll_arrow_now, columns, batch_bytes))
        try:
            batch = await asyncio.shield(decoding)
            if batch is not None:
                self._columns_read.add(columns)
            return batch
        except asyncio.CancelledError:
            # A thread cannot be stopped; what it takes must be given back.
            while not decoding.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([decoding])
            if not decoding.cancelled() and decoding.exception() is None and decoding.result() is not None:
                self._fetched.give_back()
            raise
        finally:
            if group is not None:
                group.poll_ends()

    def poll_now(self, limit: int) -> list[Record[K, V]]:
        """Return records that have been fetched already. Any thread may call this method.

        Raises as `poll`.
        """
        return self._fetched.poll_now(limit)

    def poll_arrow_now(self, columns: Sequence[str], batch_bytes: int) -> pa.RecordBatch | None:
        """Return fetched records as an Arrow batch, or None, in any thread. Raises as `poll_arrow`."""
        return self._fetched.poll_arrow_now(columns, batch_bytes)

    def part_now(self) -> FetchedPart | None:
        """Return one partition's fetched record batches as bytes, or None. Any thread may call this method.

        The first batch may begin before the consumer's position, which is the `start` of the result. Raises
        as `poll`.
        """
        return self._fetched.part_now()

    def iterate_now(self) -> Iterator[Record[K, V]]:
        """Yield the records that have been fetched already, one by one.

        The iteration ends when the application seeks, or the group has changes to process.
        """
        return self._fetched.iterate_now()

    @property
    def fetched_bytes(self) -> int:
        """The size in bytes of fetched records that `poll` has not returned."""
        return self._fetched.fetched_bytes

    async def wait(self, deadline: float) -> bool:
        """Fetch at every position, and wait for records; return False if none have come by the `deadline`.

        Returns True at once when the group `needs_attention`.
        """
        await self.start()
        if self._fetched.fetcher is None:
            self._fetched.fetcher = Fetcher(self._client, FetchSettings.of_consumer(self.config))
        fetcher, group = self._fetched.fetcher, self._group
        if not self._fetched.positions and not (group is not None and group.is_subscribed):
            raise ConfigError(
                "nothing is assigned: call assign() first"
                if group is None
                else "nothing to read: call subscribe() or assign() first"
            )
        if group is not None and (self.needs_attention or self._fetched.has_rows):
            return True
        if group is not None:
            group.poll_begins()
        try:
            # Looking up positions may take its time: neither the deadline nor the group waits for it.
            if self._starting is None and self._missing_cursors():
                self._starting = asyncio.create_task(self._start_cursors())
                self._starting.add_done_callback(lambda done: done.cancelled() or done.exception())
                self._starting.add_done_callback(lambda done: fetcher.buffer.announce())
            await fetcher.wait(deadline - time.monotonic(), self._must_look)
        finally:
            if group is not None:
                group.poll_ends()
        if self._starting is not None and self._starting.done():
            done, self._starting = self._starting, None
            done.result()
        return len(fetcher.buffer) > 0 or self.needs_attention or time.monotonic() < deadline

    def _must_look(self) -> bool:
        return self.needs_attention or (self._starting is not None and self._starting.done())

    def _stop_starting(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None

    def _missing_cursors(self) -> list[TopicPartition]:
        cursors = self._fetched.fetcher.cursors if self._fetched.fetcher is not None else {}
        return [tp for tp in self._fetched.positions if tp not in cursors and tp not in self._paused]

    async def _start_cursors(self) -> None:
        missing = self._missing_cursors()
        if not missing or self._fetched.fetcher is None:
            return
        if self._fetched.is_out_of_range:
            await self._client.refresh()
            self._fetched.is_out_of_range = False
        await self._client.topics_with(missing)
        self._fetched.leave_former_topics(missing)
        await self._look_up_positions()
        with self._fetched.position_lock:
            for tp in missing:
                position = self._fetched.positions.get(tp, NO_POSITION)
                if position >= 0 and tp not in self._paused:
                    topic_id = self._fetched.topic_ids.get(tp) or NO_TOPIC_ID
                    size_max = self.config.max_partition_fetch_bytes
                    self._fetched.fetcher.start(Cursor(tp, position, None, size_max, topic_id))

    async def __aiter__(self) -> AsyncIterator[Record[K, V]]:
        """Yield records for ever, and wait for new ones. The position moves with each record."""
        clock = time.monotonic
        breathe_at = clock() + BREATH_S
        while True:
            if self.needs_attention:
                await self._attend()
            for record in self.iterate_now():
                yield record
                # Looked at after every record: one may have taken so long that others have the partition.
                if breathe_at < clock():
                    await asyncio.sleep(0)
                    breathe_at = clock() + BREATH_S
            await self.wait(clock() + ITERATION_POLL_S)

    # -- the partitions that are assigned

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that this consumer reads now."""
        return list(self._fetched.positions)

    def subscription(self) -> set[str]:
        """Return the subscribed topics; for a pattern, the matching topics in the client's metadata."""
        return set() if self._group is None else self._group.subscription()

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Set the position of a partition to an offset, or to `EARLIEST` or `LATEST`.

        Raises:
            ConfigError: the partition is not assigned, or the offset is negative.
        """
        tp = self._assigned(partition)
        offset = whole(offset, "the offset")
        if offset < 0 and offset not in (EARLIEST, LATEST):
            raise ConfigError(f"offset {offset}: offsets begin at 0")
        self._fetched.seek(tp, offset)
        if self._group is not None:
            self._group.sought(tp)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Set the positions of some partitions, by default all, to their first records. Raises as `seek`."""
        for tp in partitions or self.assignment():
            self.seek(tp, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Set the positions of some partitions, by default all, after their last records.

        Raises as `seek`.
        """
        for tp in partitions or self.assignment():
            self.seek(tp, LATEST)

    def seek_to_committed(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Set the positions of some partitions, by default all, to the group's committed offsets.

        After an aborted transaction, this makes the consumer return its records again. For a partition
        without a committed offset, ``auto.offset.reset`` decides on the position.

        Raises:
            ConfigError: a partition is not assigned, or there is no ``group.id``.
        """
        group = self._group_of("seek_to_committed()")
        for tp in [self._assigned(partition) for partition in partitions] or self.assignment():
            self._fetched.seek(tp, COMMITTED)
            group.sought(tp)

    def pause(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Return no records of some partitions until `resume`. Raises ConfigError if one is not assigned."""
        self._set_paused(topic_partitions(partitions, "pause()"), True)

    def resume(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Continue to read paused partitions from their positions. Raises as `pause`."""
        self._set_paused(topic_partitions(partitions, "resume()"), False)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused."""
        return set(self._paused)

    def _set_paused(self, partitions: Iterable[TopicPartition], is_paused: bool) -> None:
        for tp in partitions:
            self._assigned(tp)
            if not is_paused:
                self._paused.discard(tp)
                continue
            with self._fetched.position_lock:
                # What has been fetched is dropped and fetched again later: a paused partition must
                # not fill the buffer.
                self._fetched.forget([tp])
                self._paused.add(tp)

    def _assigned(self, partition: TopicPartition | tuple[str, int]) -> TopicPartition:
        tp = topic_partition(partition)
        if tp not in self._fetched.positions:
            raise ConfigError(f"partition {tp} is not assigned")
        return tp

    # -- offsets that the cluster has

    async def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partition numbers of a topic.

        Raises:
            KafkaError: the topic does not exist, or the client is not authorized to describe it.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        name = topic_name(topic)
        known = await self._client.retrying(
            f"getting to know topic {name!r}", lambda: self._client.topic(name)
        )
        return set(known.partitions)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition.

        Raises:
            KafkaError: a partition does not exist, or the client is not authorized for its topic.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return await fetch_known_offsets(
            self._client, topic_partitions(partitions, "beginning_offsets()"), EARLIEST
        )

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset that the next record of each partition will get.

        With ``isolation.level=read_committed``, this is the last stable offset.

        Raises:
            KafkaError: a partition does not exist, or the client is not authorized for its topic.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        isolation = self.config.isolation_level
        return await fetch_known_offsets(
            self._client, topic_partitions(partitions, "end_offsets()"), LATEST, isolation=isolation
        )

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int | datetime]
    ) -> dict[TopicPartition, int | None]:
        """Return the offset of each partition's first record at or after a time, or None if there is none.

        Times are milliseconds since 1970, or datetimes (without a zone: local time).

        Raises:
            KafkaError: a partition does not exist, or the client is not authorized for its topic.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        questions = by_partition(times, "offsets_for_times()")
        for tp, moment in questions.items():
            questions[tp] = time_ms(moment, f"the time for {tp}")
        found = await fetch_offsets(self._client, questions)
        return {tp: None if at is None else at.offset for tp, at in found.items()}

    async def _look_up(self, marker: int, unknown: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's offset for a marker such as `COMMITTED`, and store topic ids."""
        client = self._client
        if marker != COMMITTED:
            topics = {tp.topic for tp in unknown}
            await client.bootstrap()
            await client.retrying("looking up offsets", lambda: client.topics_of(topics))
        # Before the answer: a topic that is created anew meanwhile is seen to be another one then.
        self._fetched.topic_ids.update((tp, client.cluster.topic_id(tp.topic)) for tp in unknown)
        if marker == LATEST:
            return await self.end_offsets(unknown)
        if marker == EARLIEST:
            return await self.beginning_offsets(unknown)
        if marker == BY_AGE:
            begin_ms = self._clock.now_ms() - (self.config.reset_age_ms or 0)
            young = await self.offsets_for_times(dict.fromkeys(unknown, begin_ms))
            return {tp: LATEST if offset is None else offset for tp, offset in young.items()}
        stored = await self.committed(unknown)
        return {tp: self._fetched.reset_marker if at is None else at.offset for tp, at in stored.items()}

    # -- offsets that the group has

    async def commit(self, offsets: Committable | None = None) -> None:
        """Commit `offsets` (the next offset to read of each partition), by default the positions.

        Values of `offsets` are numbers, or `OffsetAndMetadata`. A position is the offset after the last
        record that the consumer has returned.

        Raises:
            KafkaError: the group has removed this member (22, 25, 82 or 113), or refuses.
            ConfigError: no ``group.id``, or a negative offset.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        await self._group_of("commit()").commit(offsets)

    @checked(when_done=optional(function))
    def commit_async(
        self,
        offsets: Committable | None = None,
        when_done: WhenDone | None = None,
    ) -> None:
        """Commit in the background, in the order of the calls. `when_done` gets offsets and error.

        The event loop calls `when_done`. Raises ConfigError without ``group.id``.
        """
        self._group_of("commit_async()").begin_commit(offsets, when_done or (lambda offsets, error: None))

    async def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, or None where the group has committed none.

        Raises:
            KafkaError: the client is not authorized for the group.
            ConfigError: no ``group.id``.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return await self._group_of("committed()").committed(topic_partitions(partitions, "committed()"))

    def group_metadata(self) -> GroupMetadata:
        """Return the member's current id and generation, for `send_offsets` of a producer (KIP-447).

        Raises:
            KafkaError: the group has removed this member (25), or the member has not joined yet.
            ConfigError: no ``group.id``.
        """
        return self._group_of("group_metadata()").metadata()

    def positions(self) -> dict[TopicPartition, int]:
        """Return each assigned partition's next offset to read, which follows the last record returned.

        Partitions from which nothing has been read yet are left out. Raises ConfigError without ``group.id``.
        """
        return dict(self._group_of("positions()").positions())

    def _group_of(self, what: str) -> GroupSession:
        if self._group is None:
            raise ConfigError(f'{what} needs the option "group.id"')
        return self._group
