"""Read the records that a `ReadSpec` specifies: code that `read_topic`, `scan_topic` and others share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import no_such_partition
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.offsets import fetch_known_offsets, fetch_offsets
from penstock.client.fetch.ranges import FETCH_BYTES, fetch_ranges_async, scan_ranges
from penstock.errors import ConfigError, ProtocolViolationError
from penstock.model import EARLIEST, LATEST, OffsetRange, TopicPartition
from penstock.moments import moment_ms
from penstock.tables.progress import ProgressLine
from penstock.tables.spec import Bounds, KnownBound, KnownPoint, ReadSpec, RowLimit

if TYPE_CHECKING:
    import pyarrow as pa

KAFKA = "kafka"
PROTOCOLS = (KAFKA, "0.7")
"""The protocols of brokers: that of Kafka since 0.8, and the unrelated one of Kafka 0.7."""

SMALL_FETCH_BYTES = 64 << 10
LIKELY_RECORD_BYTES = 1 << 10
"""Assumed size of a record in bytes: a read with a limit fetches `limit` times this size."""

Place = tuple[int, int, int]
"""The sort key of a batch: (index of its topic, partition number, index of the batch in its partition)."""


class ReadPlan(NamedTuple):
    """The offset ranges to read, the topic ids, and the start offset of every partition, also of empty ones.

    Retention may remove the first records of a partition during the read. For the partitions in
    `may_begin_later`, whose start was not given as an offset, reading continues with the remaining records.
    """

    ranges: list[OffsetRange]
    may_begin_later: frozenset[TopicPartition]
    topic_ids: Mapping[str, bytes]
    starts: Mapping[TopicPartition, int]

    @property
    def offsets(self) -> int:
        """The number of offsets in the ranges: an upper bound of the number of records."""
        return sum(wanted.size for wanted in self.ranges)


@dataclass(frozen=True)
class CheckedRead:
    """A read with checked arguments: the `ReadSpec`, the brokers, and the client's configuration."""

    spec: ReadSpec
    servers: str | Sequence[str]
    config: ConsumerConfig
    protocol: str

    @classmethod
    def checked(
        cls,
        spec: ReadSpec,
        bootstrap_servers: str | Sequence[str],
        config: Mapping[str, object] | None,
        protocol: str = KAFKA,
    ) -> CheckedRead:
        """Check the brokers, configuration and protocol for reading `spec`.

        Raises:
            ConfigError: an argument is wrong; the message names it.
        """
        if protocol not in PROTOCOLS:
            raise ConfigError(f"protocol is {protocol!r}: it is one of {', '.join(PROTOCOLS)}")
        if not isinstance(bootstrap_servers, (str, list, tuple)):
            raise ConfigError(
                f"bootstrap_servers is {bootstrap_servers!r}: host:port is needed, or a list of it"
            )
        if protocol != KAFKA:
            _check_07(spec)
        # Of a client's settings few mean anything to 0.7; where its brokers are is said otherwise.
        servers = bootstrap_servers if protocol == KAFKA else "localhost:9092"
        parsed = ConsumerConfig.parse(config, {"bootstrap_servers": servers})
        return cls(spec, bootstrap_servers, parsed, protocol)

    def scan(
        self, batch_bytes: int, wants_progress: bool | None
    ) -> Generator[tuple[Place, pa.RecordBatch], None, None]:
        """Yield (sort key, batch), where the keys sort the batches by topic, partition and offset.

        Raises: as `penstock.read_topic`.
        """
        client = AsyncClient(self.config)
        places: dict[TopicPartition, int] = {}
        spec, limit = self.spec, RowLimit(self.spec.bounds.limit)
        try:
            plan = run(self.plan(client))
            topics = {topic: index for index, topic in enumerate(plan.topic_ids)}
            with ProgressLine(
                spec.title.partition(" ")[2], "records", self._expected(plan), wants_progress
            ) as progress:
                for ranges in self._rounds(plan):
                    for tp, decoded in scan_ranges(
                        client,
                        ranges,
                        spec.decoded,
                        isolation=spec.isolation,
                        batch_bytes=batch_bytes,
                        fetch_bytes=self._fetch_bytes,
                        check_crcs=self.config.check_crcs,
                        unpack=self.config.unpack_limits,
                        may_begin_later=plan.may_begin_later,
                        topic_ids=plan.topic_ids,
                    ):
                        if progress.is_wanted:
                            progress.add(decoded.num_rows, decoded.nbytes)
                        batch = limit.cut(spec.chosen(decoded))
                        if batch.num_rows:
                            place = places.get(tp, 0)
                            places[tp] = place + 1
                            yield (topics[tp.topic], tp.partition, place), batch
                        if limit.is_reached():
                            return
        finally:
            run(client.close())

    def scan07(self) -> Generator[tuple[Place, pa.RecordBatch], None, None]:
        """Yield (sort key, batch) of the messages of a topic of Kafka 0.7; see `scan`."""
        from penstock.tables.topics07 import scan_topic07

        spec, limit = self.spec, RowLimit(self.spec.bounds.limit)
        if limit.is_reached():
            return
        found = scan_topic07(
            spec.names[0],
            self.servers,
            start=spec.bounds.start,
            end=spec.bounds.end,
            columns=spec.columns,
            partitions=spec.partitions,
            check_crcs=self.config.check_crcs,
            unpack=self.config.unpack_limits,
        )
        for place, (partition, batch) in enumerate(found):
            yield (0, partition, place), limit.cut(batch)
            if limit.is_reached():
                return

    def batches(self, batch_bytes: int, wants_progress: bool | None) -> Generator[pa.RecordBatch, None, None]:
        """Yield batches of topics of any Kafka, 0.7 too. Raises as `penstock.read_topic`."""
        with closing(self.placed_batches(batch_bytes, wants_progress)) as found:
            for _, batch in found:
                yield batch

    def placed_batches(
        self, batch_bytes: int, wants_progress: bool | None
    ) -> Generator[tuple[Place, pa.RecordBatch], None, None]:
        return self.scan(batch_bytes, wants_progress) if self.protocol == KAFKA else self.scan07()

    async def scan_async(
        self, batch_bytes: int
    ) -> AsyncGenerator[tuple[TopicPartition, pa.RecordBatch], None]:
        """Yield (partition, batch); fetch on the running event loop, decode in another thread.

        Raises: as `penstock.read_topic`.
        """
        client = AsyncClient(self.config)
        spec, limit = self.spec, RowLimit(self.spec.bounds.limit)
        try:
            plan = await self.plan(client)
            for ranges in self._rounds(plan):
                batches = fetch_ranges_async(
                    client,
                    ranges,
                    spec.decoded,
                    isolation=spec.isolation,
                    batch_bytes=batch_bytes,
                    fetch_bytes=self._fetch_bytes,
                    check_crcs=self.config.check_crcs,
                    unpack=self.config.unpack_limits,
                    may_begin_later=plan.may_begin_later,
                    topic_ids=plan.topic_ids,
                )
                async with aclosing(batches):
                    async for tp, decoded in batches:
                        batch = limit.cut(spec.chosen(decoded))
                        if batch.num_rows:
                            yield tp, batch
                        if limit.is_reached():
                            return
        finally:
            await client.close()

    async def plan(self, client: AsyncClient) -> ReadPlan:
        """Resolve topics and bounds to offset ranges, as of now. Raises the errors of `plan_reading`."""
        spec = self.spec
        if spec.bounds.limit == 0:
            return ReadPlan([], frozenset(), {}, {})
        topics = await topics_of(client, spec)
        return await plan_reading(client, topics, spec.bounds, spec.numbers_of, spec.isolation)

    def _rounds(self, plan: ReadPlan) -> list[list[OffsetRange]]:
        """Group the offset ranges that are fetched in parallel: all of them, or one at a time with a limit.

        With a limit, one partition is read after another, so that every call returns the same records.
        """
        return [plan.ranges] if self.spec.bounds.limit is None else [[one] for one in plan.ranges]

    def _expected(self, plan: ReadPlan) -> int:
        limit = self.spec.bounds.limit
        return min(plan.offsets, limit) if limit is not None and self.spec.may_be_small else plan.offsets

    @property
    def _fetch_bytes(self) -> int:
        limit = self.spec.bounds.limit
        if limit is None or not self.spec.may_be_small:
            return FETCH_BYTES
        return min(FETCH_BYTES, max(SMALL_FETCH_BYTES, limit * LIKELY_RECORD_BYTES))


async def topics_of(client: AsyncClient, spec: ReadSpec) -> list[str]:
    """Return the topics to read: the named ones, or those that now fit the pattern, sorted.

    Raises:
        NetworkError, RequestTimeoutError: no broker answers.
    """
    if spec.pattern is None:
        return list(spec.names)
    await client.bootstrap()
    await client.retrying("listing topics", lambda: client.refresh(all_topics=True))
    topics = client.cluster.topics.values()
    return sorted(
        t.name for t in topics if t.partitions and not t.is_internal and spec.pattern.fullmatch(t.name)
    )


def _check_07(spec: ReadSpec) -> None:
    if spec.bounds.last is not None:
        raise ConfigError("last is a number of records, which Kafka 0.7 does not count: give start")
    if len(spec.names) != 1:
        raise ConfigError("of Kafka 0.7 one topic is read at a time: give its name")
    if spec.key is not None:
        raise ConfigError("key has no meaning with Kafka 0.7: its messages have no keys")
    if spec.is_following:
        raise ConfigError("follow is for brokers since Kafka 0.8: penstock mirror follows one of 0.7")


async def plan_reading(
    client: AsyncClient,
    topics: Sequence[str],
    bounds: Bounds,
    numbers_of: Callable[[str, Collection[int]], list[int]],
    isolation: str,
) -> ReadPlan:
    """Return the offset ranges to read: what the topics contain now between two bounds.

    `numbers_of(topic, existing partitions)` returns the numbers of the partitions to read.

    Raises:
        ConfigError: a topic does not have a partition that `numbers_of` returned.
        KafkaError: a topic does not exist.
        NetworkError, RequestTimeoutError: no broker answers.
        ProtocolViolationError: a broker answers that a log ends before it begins.
    """
    what = f"getting to know topic {', '.join(map(repr, topics))}"
    infos = await client.retrying(what, lambda: client.topics_of(topics))
    tps: list[TopicPartition] = []
    for topic in topics:
        known = infos[topic].partitions
        chosen = numbers_of(topic, known)
        for number in chosen:
            if number not in known:
                raise no_such_partition(TopicPartition(topic, number), len(known))
        for which, bound in (("start", bounds.start), ("end", bounds.end)):
            check_partitions(which, bound, chosen)
        tps += [TopicPartition(topic, number) for number in chosen]
    first = await fetch_known_offsets(client, tps, EARLIEST)
    last = await fetch_known_offsets(client, tps, LATEST, isolation=isolation)
    for tp in tps:
        if first[tp] > last[tp]:
            broker = client.address_of(await client.leader(tp))
            raise ProtocolViolationError(
                f"broker {broker} says that {tp} begins at {first[tp]} and ends at {last[tp]}"
            )
    ends = await _offsets_at(client, tps, bounds.end, "latest", first, last)
    if bounds.last is None:
        starts = await _offsets_at(client, tps, bounds.start, "earliest", first, last)
    else:
        starts = {tp: max(first[tp], ends[tp] - bounds.last) for tp in tps}
    return ReadPlan(
        [OffsetRange(*tp, starts[tp], ends[tp]) for tp in tps if starts[tp] < ends[tp]],
        frozenset(tp for tp in tps if not isinstance(point_of(bounds.start, tp.partition, "earliest"), int)),
        {topic: infos[topic].topic_id for topic in topics},
        starts,
    )


def check_partitions(which: str, bound: KnownBound, partitions: Collection[int]) -> None:
    """Raise ConfigError if a bound names a partition that is not read."""
    for partition in bound if isinstance(bound, Mapping) else ():
        if partition not in partitions:
            raise ConfigError(f"{which} names partition {partition}, which is not among those read")


def point_of(bound: KnownBound, partition: int, default: KnownPoint) -> KnownPoint:
    """Return the bound of one partition, or `default` if `bound` is a mapping without this partition."""
    return bound.get(partition, default) if isinstance(bound, Mapping) else bound


async def _offsets_at(
    client: AsyncClient,
    tps: Sequence[TopicPartition],
    bound: KnownBound,
    default: str,
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Resolve a bound to an offset within the log of each partition, for example by ListOffsets for a time.

    `default` ("earliest" or "latest") applies to partitions that are missing in a mapping.
    """
    known: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    for tp in tps:
        point = point_of(bound, tp.partition, default)
        if isinstance(point, datetime):
            times[tp] = moment_ms(point, 0)
        elif isinstance(point, str):
            known[tp] = first[tp] if point == "earliest" else last[tp]
        else:
            known[tp] = min(max(point, first[tp]), last[tp])
    for tp, found in (await fetch_offsets(client, times)).items() if times else ():
        known[tp] = last[tp] if found is None else min(found.offset, last[tp])
    return known
