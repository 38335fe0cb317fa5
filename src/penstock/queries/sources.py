"""Sources of records: a topic, or a log directory; each reads only the requested ranges.

A source yields every record in the requested `Wanted` set that exists when reading begins, and perhaps
others: its caller filters the batches again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.client.background_loop import background_loop, finish, run
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ConsumerConfig, Partitioner
from penstock.client.fetch.offsets import fetch_offsets
from penstock.client.fetch.ranges import BATCH_BYTES, FETCH_BYTES, RangeReader, decode_part
from penstock.errors import ConfigError, UnsupportedVersionError
from penstock.model import OffsetRange, TopicPartition
from penstock.queries.pushdown.wanted import Wanted, on_topic
from penstock.queries.watching import StoppedError, Watch
from penstock.tables.reading import ReadPlan, plan_reading
from penstock.tables.spec import Bounds

if TYPE_CHECKING:
    import pyarrow as pa

SMALL_FETCH_BYTES = 64 << 10
LIKELY_RECORD_BYTES = 1 << 10
SYNTHETIC_ROWS = 1 << 16
"""The rows per batch if all columns are generated from offset ranges, without reading records."""

PLACE_COLUMNS = frozenset(("topic", "partition", "offset"))
"""The columns that can be generated from offset ranges alone, without reading records, if each offset has a
record.
"""


class Ask(NamedTuple):
    """A request from a query to a source: the set of records to read, and the columns.

    A request with `limit` or `newest` has no filter.
    """

    wanted: Wanted
    columns: tuple[str, ...]
    limit: int | None = None
    newest: int | None = None
    """The number of newest records of each partition that the query needs at least; None if it needs all."""


class Source(Protocol):
    """The interface of a source of records, with the columns of `penstock.model.COLUMN_NAMES`."""

    @property
    def title(self) -> str: ...

    @property
    def topic(self) -> str | None: ...

    def plan(self, ask: Ask) -> list[OffsetRange]: ...

    def batches(self, ask: Ask, watch: Watch) -> Generator[pa.RecordBatch, None, None]: ...


@dataclass(frozen=True)
class TopicSource:
    """A topic of a cluster, as a source of records for queries."""

    topic: str
    config: ConsumerConfig
    isolation: str = "read_uncommitted"
    max_lateness_ms: int | None = None
    """The most milliseconds by which a record may be older than an earlier record of its partition; None if
    unknown.
    """
    key_partitioner: Partitioner | None = None
    is_dense: bool = False
    """True if the caller promises that each offset has a record: no compaction and no transactions, ever."""
    batch_bytes: int = BATCH_BYTES

    @property
    def title(self) -> str:
        return f"topic {self.topic}"

    def plan(self, ask: Ask) -> list[OffsetRange]:
        """Return the offset ranges that `batches` would read now. Raises as `penstock.read_topic`."""
        if on_topic(ask.wanted, self.topic).is_nothing:
            return []

        async def planned() -> list[OffsetRange]:
            async with AsyncClient(self.config) as client:
                return (await self._plan(client, on_topic(ask.wanted, self.topic))).ranges

        return run(planned())

    def answers_without_reading(self, ask: Ask) -> bool:
        """Return True if the requested columns can be generated from offsets, without fetching records."""
        return self.is_dense and PLACE_COLUMNS.issuperset(ask.columns)

    async def _plan(self, client: AsyncClient, wanted: Wanted) -> ReadPlan:
        def numbers_of(topic: str, known: Iterable[int]) -> list[int]:
            numbers = wanted.partitions_among(known)
            if wanted.keys is not None and self.key_partitioner is not None:
                numbers &= self._partitions_of(wanted.keys, len(set(known)))
            return sorted(numbers)

        # The end comes before the times: what is written meanwhile lies behind it.
        bounds = Bounds("earliest", "latest", None, None)
        plan = await plan_reading(client, [self.topic], bounds, numbers_of, self.isolation)
        starts = {tp: max(start, wanted.offset_min) for tp, start in plan.starts.items()}
        ends = {TopicPartition(one.topic, one.partition): one.end for one in plan.ranges}
        if wanted.offset_end is not None:
            ends = {tp: min(end, wanted.offset_end) for tp, end in ends.items()}
        left = [tp for tp in ends if starts[tp] < ends[tp]]
        if wanted.time_min_ms is not None and wanted.time_min_ms >= 0:
            for tp, offset in (await self._at_time(client, left, wanted.time_min_ms)).items():
                starts[tp] = ends[tp] if offset is None else max(starts[tp], offset)
        if wanted.time_end_ms is not None and self.max_lateness_ms is not None:
            end_ms = max(0, wanted.time_end_ms + self.max_lateness_ms)
            for tp, offset in (await self._at_time(client, left, end_ms)).items():
                ends[tp] = ends[tp] if offset is None else min(ends[tp], offset)
        ranges = [OffsetRange(*tp, starts[tp], end) for tp, end in sorted(ends.items()) if starts[tp] < end]
        return plan._replace(ranges=ranges, may_begin_later=frozenset(ends))

    async def _at_time(
        self, client: AsyncClient, tps: Sequence[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset per partition with a record at `time_ms` or later, or None without one.

        Every record before that offset is older. The result is empty for brokers before 0.10.1, which cannot
        look up times.
        """
        try:
            found = await fetch_offsets(client, dict.fromkeys(tps, time_ms)) if tps else {}
        except UnsupportedVersionError:  # before 0.10.1
            return {}
        return {tp: None if at is None else at.offset for tp, at in found.items()}

    def _partitions_of(self, keys: Iterable[bytes], count: int) -> set[int]:
        chosen: set[int] = set()
        assert self.key_partitioner is not None  # asked for by the caller
        for key in keys:
            number = self.key_partitioner(key, count)
            if number is None:
                return set(range(count))
            chosen.add(number)
        return chosen

    def batches(self, ask: Ask, watch: Watch) -> Generator[pa.RecordBatch, None, None]:
        """Yield the records that `ask` selects.

        Raises as `penstock.read_topic`, and StoppedError if `watch` is stopped.
        """
        wanted = on_topic(ask.wanted, self.topic)
        if wanted.is_nothing or ask.limit == 0 or ask.newest == 0:
            return
        client = AsyncClient(self.config)
        fetching = _Fetching(self, client, ask, watch)
        watch.when_stopped(fetching.stop)
        try:
            plan = fetching.wait(lambda: self._plan(client, wanted))
            if self.answers_without_reading(ask):
                watch.planned(plan.ranges)
                yield from _known_rows(plan.ranges, ask, watch)
            else:
                yield from fetching.batches(plan)
        finally:
            watch.forget(fetching.stop)
            finish(client.close())


@dataclass
class _Fetching:
    """One read of a topic: fetches and decodes the records in offset ranges, in steps if there is a limit."""

    source: TopicSource
    client: AsyncClient
    ask: Ask
    watch: Watch
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        """End the read, from any thread."""
        background_loop().call_soon_threadsafe(self._stopped.set)

    def wait(self, begin: Callable[[], Any]) -> Any:
        """Run the coroutine that `begin` returns, and return its result. Raises StoppedError after `stop`."""

        async def race() -> Any:
            work = asyncio.ensure_future(begin())
            ending = asyncio.ensure_future(self._stopped.wait())
            try:
                await asyncio.wait({work, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    raise StoppedError(f"reading {self.source.title} was ended")
                return work.result()
            finally:
                for task in (work, ending):
                    if not task.done():
                        task.cancel()
                await asyncio.gather(work, ending, return_exceptions=True)

        return run(race())

    def batches(self, plan: ReadPlan) -> Generator[pa.RecordBatch, None, None]:
        if self.ask.newest is not None:
            yield from self._newest(plan, self.ask.newest)
        elif self.ask.limit is not None:
            yield from self._first(plan, self.ask.limit)
        else:
            yield from self._read(plan, plan.ranges, FETCH_BYTES)

    def _first(self, plan: ReadPlan, limit: int) -> Generator[pa.RecordBatch, None, None]:
        """Yield the first `limit` records that are found, partition by partition.

        First reads only as many offsets of each partition as records are needed; then the rest of them, if
        records are still missing because of gaps by compaction or transactions.
        """
        left = limit
        size = _fetch_size(limit)
        rest: list[OffsetRange] = []
        for one in plan.ranges:
            first = one._replace(end=min(one.end, one.start + left))
            rest.append(one._replace(start=first.end))
            for batch in self._read(plan, [first], size):
                taken = batch.slice(0, left)
                left -= taken.num_rows
                yield taken
                if not left:
                    return
        for one in rest:
            for batch in self._read(plan, [one] if one.size else [], FETCH_BYTES):
                taken = batch.slice(0, left)
                left -= taken.num_rows
                yield taken
                if not left:
                    return

    def _newest(self, plan: ReadPlan, count: int) -> Generator[pa.RecordBatch, None, None]:
        """Yield at least the newest `count` records of each partition, read backwards in growing steps."""
        for one in plan.ranges:
            end, step, left = one.end, count, count
            while left > 0 and end > one.start:
                start = max(one.start, end - step)
                for batch in self._read(plan, [one._replace(start=start, end=end)], _fetch_size(step)):
                    left -= batch.num_rows
                    yield batch
                end, step = start, step * 4

    def _read(
        self, plan: ReadPlan, ranges: list[OffsetRange], fetch_bytes: int
    ) -> Generator[pa.RecordBatch, None, None]:
        if not ranges:
            return
        source, watch = self.source, self.watch
        watch.planned(ranges)
        reader: RangeReader | None = None

        async def begin() -> RangeReader:
            opened = RangeReader(
                self.client,
                ranges,
                isolation=source.isolation,
                fetch_bytes=fetch_bytes,
                may_begin_later=plan.may_begin_later,
                topic_ids=plan.topic_ids,
            )
            await opened.start()
            return opened

        try:
            reader = self.wait(begin)
            while parts := self.wait(reader.next_parts):
                parts.reverse()
                while parts:
                    part = parts.pop()
                    watch.fetched(part.size)
                    decoded = decode_part(
                        part,
                        self.ask.columns,
                        source.batch_bytes,
                        check_crcs=source.config.check_crcs,
                        unpack=source.config.unpack_limits,
                    )
                    del part  # its buffer serves the next fetch once nothing refers to it
                    for batch in decoded:
                        watch.decoded(batch.num_rows)
                        yield batch
        finally:
            if reader is not None:
                finish(reader.close())


def _fetch_size(records: int) -> int:
    return min(FETCH_BYTES, max(SMALL_FETCH_BYTES, records * LIKELY_RECORD_BYTES))


def _known_rows(
    ranges: Iterable[OffsetRange], ask: Ask, watch: Watch
) -> Generator[pa.RecordBatch, None, None]:
    """Yield rows generated from offset ranges, without fetching: each offset has a record."""
    import numpy as np
    import pyarrow as pa

    from penstock.records.arrow import schema_for

    schema = schema_for(ask.columns)
    left = ask.limit
    for topic, partition, start, end in ranges:
        first = start if ask.newest is None else max(start, end - ask.newest)
        while first < end and left != 0:
            rows = min(SYNTHETIC_ROWS, end - first, SYNTHETIC_ROWS if left is None else left)
            made: dict[str, pa.Array] = {
                "topic": pa.repeat(pa.scalar(topic), rows),
                "partition": pa.repeat(pa.scalar(partition, pa.int32()), rows),
                "offset": pa.array(np.arange(first, first + rows, dtype=np.int64)),
            }
            yield pa.RecordBatch.from_arrays([made[name] for name in ask.columns], schema=schema)
            watch.decoded(rows)
            first += rows
            left = None if left is None else left - rows


@dataclass(frozen=True)
class LogSource:
    """A topic in a data directory, as a source of records for queries; no broker is needed."""

    directory: str
    topic: str | None
    isolation: str = "read_uncommitted"

    @property
    def title(self) -> str:
        return f"{self.topic or 'the log'} in {self.directory}"

    def plan(self, ask: Ask) -> list[OffsetRange]:
        """Return an empty list, since the ends of the logs are known only after reading the files."""
        return []

    def batches(self, ask: Ask, watch: Watch) -> Generator[pa.RecordBatch, None, None]:
        """Yield the records that `ask` selects. Raises as `penstock.scan_log`."""
        from penstock.tables.logs import scan_log

        wanted = ask.wanted if self.topic is None else on_topic(ask.wanted, self.topic)
        if wanted.is_nothing or ask.limit == 0 or ask.newest == 0:
            return
        bounds: dict[str, Any] = {"start": wanted.offset_min, "end": wanted.offset_end}
        if ask.newest is not None or not wanted.offset_min:
            bounds.pop("start")
        if wanted.offset_end is None:
            bounds.pop("end")
        scan = scan_log(
            self.directory,
            self.topic,
            partitions=self._there(wanted),
            columns=ask.columns,
            isolation=self.isolation,
            limit=ask.limit,
            **bounds,
        )
        with closing(scan) as batches:
            for batch in batches:
                if watch.is_stopped:
                    raise StoppedError(f"reading {self.title} was ended")
                watch.decoded(batch.num_rows)
                yield batch

    def _there(self, wanted: Wanted) -> list[int] | None:
        """Return the partitions in the directory that `wanted` selects, or None if `wanted` selects all."""
        if wanted.partitions is None and not wanted.partition_min and wanted.partition_end is None:
            return None
        from penstock.log.disk.data_directory import find_partitions

        try:
            found = find_partitions(self.directory)
        except Exception:  # one partition's own directory, or Kafka 0.7: nothing is left out
            return None
        known = {tp.partition for tp in found if self.topic in (None, tp.topic)}
        return sorted(wanted.partitions_among(known)) or None


def topic_names(bootstrap_servers: str | Sequence[str], config: Mapping[str, object]) -> list[str]:
    """Return the names of a cluster's topics, sorted, without Kafka's internal ones.

    Raises:
        NetworkError, RequestTimeoutError: no broker answers.
    """
    parsed = ConsumerConfig.parse(config, {"bootstrap_servers": bootstrap_servers})

    async def found() -> list[str]:
        async with AsyncClient(parsed) as client:
            await client.bootstrap()
            await client.retrying("listing topics", lambda: client.refresh(all_topics=True))
            topics = client.cluster.topics.values()
            return sorted(one.name for one in topics if not one.error_code and not one.is_internal)

    return run(found())


def checked_source(
    topic: str, bootstrap_servers: str | Sequence[str], config: Mapping[str, object] | None, **known: Any
) -> TopicSource:
    """Return a `TopicSource` for a topic, after checking the arguments. Raises ConfigError."""
    from penstock.client.arguments import one_of, topic_name
    from penstock.client.fetch.cursors import ISOLATION_LEVELS

    isolation = known.get("isolation", "read_uncommitted")
    one_of(*ISOLATION_LEVELS)(isolation, "isolation")
    if not isinstance(bootstrap_servers, (str, list, tuple)):
        raise ConfigError(f"bootstrap_servers is {bootstrap_servers!r}: host:port is needed, or a list of it")
    parsed = ConsumerConfig.parse(config, {"bootstrap_servers": bootstrap_servers})
    return TopicSource(topic_name(topic), parsed, **known)
