"""Topics read between two bounds: what `read_topic`, `scan_topic` and their asyncio twins have in common."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.client.arguments import column_names, one_of, partition_numbers, topic_name
from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.cursors import ISOLATION_LEVELS
from penstock.client.fetch.ranges import FETCH_BYTES, fetch_ranges_async, scan_ranges
from penstock.errors import ConfigError
from penstock.model import COLUMN_NAMES, TopicPartition
from penstock.tables.bounds import Bound, Bounds, Last, Plan, checked_bounds, plan_reading
from penstock.tables.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

KAFKA = "kafka"
PROTOCOLS = (KAFKA, "0.7")
"""The protocol of brokers: that of Kafka since 0.8, or that of 0.7, which shares nothing with it."""

SMALL_FETCH_BYTES = 64 << 10
LIKELY_RECORD_BYTES = 1 << 10
"""With a limit, no more is fetched at a time than so many records of this size are likely to take."""


@dataclass(frozen=True)
class Reading:
    """A checked call: what is to be read, and from where."""

    topic: str
    servers: str | Sequence[str]
    columns: tuple[str, ...]
    bounds: Bounds
    partitions: list[int] | None
    isolation: str
    config: ConsumerConfig
    protocol: str

    @classmethod
    def checked(
        cls,
        topic: str,
        bootstrap_servers: str | Sequence[str],
        start: Bound,
        end: Bound,
        last: Last | None,
        limit: int | None,
        columns: Sequence[str] | None,
        partitions: int | Collection[int] | None,
        isolation: str,
        config: Mapping[str, object] | None,
        protocol: str,
    ) -> Reading:
        """Check the arguments of a call.

        Raises:
            ConfigError: one of them is wrong; the message names it.
        """
        if protocol not in PROTOCOLS:
            raise ConfigError(f"protocol is {protocol!r}: it is one of {', '.join(PROTOCOLS)}")
        one_of(*ISOLATION_LEVELS)(isolation, "isolation")
        if not isinstance(bootstrap_servers, (str, list, tuple)):
            raise ConfigError(
                f"bootstrap_servers is {bootstrap_servers!r}: host:port is needed, or a list of it"
            )
        # Of a client's settings few mean anything to 0.7; where its brokers are is said otherwise.
        servers = bootstrap_servers if protocol == KAFKA else "localhost:9092"
        bounds = checked_bounds(start, end, last, limit)
        if protocol != KAFKA and bounds.last is not None:
            raise ConfigError("last is a number of records, which Kafka 0.7 does not count: give start")
        return cls(
            topic_name(topic),
            bootstrap_servers,
            COLUMN_NAMES if columns is None else column_names(columns, COLUMN_NAMES),
            bounds,
            None if partitions is None else partition_numbers(partitions),
            isolation,
            ConsumerConfig.parse(config, {"bootstrap_servers": servers}),
            protocol,
        )

    def scan(
        self, batch_bytes: int, wants_progress: bool | None
    ) -> Generator[tuple[tuple[int, int], pa.RecordBatch], None, None]:
        """Yield batches, each with its partition and its place among those of the partition.

        Raises: as `penstock.read_topic`.
        """
        client = AsyncClient(self.config)
        places: dict[int, int] = {}
        left = self.bounds.limit
        try:
            plan = run(self._plan(client))
            with Progress(self.topic, "records", self._expected(plan), wants_progress) as progress:
                # Partitions in turn where there is a limit: the first records are the same each time.
                for ranges in [plan.ranges] if left is None else [[one] for one in plan.ranges]:
                    for tp, batch in scan_ranges(
                        client,
                        ranges,
                        self.columns,
                        isolation=self.isolation,
                        batch_bytes=batch_bytes,
                        fetch_bytes=self._fetch_bytes,
                        check_crcs=self.config.check_crcs,
                        unpack=self.config.unpack_limits,
                        may_begin_later=plan.may_begin_later,
                    ):
                        if progress.is_wanted:
                            progress.add(batch.num_rows, batch.nbytes)
                        place = places.get(tp.partition, 0)
                        places[tp.partition] = place + 1
                        if left is not None:
                            batch = batch if batch.num_rows <= left else batch.slice(0, left)
                            left -= batch.num_rows
                        yield (tp.partition, place), batch
                        if left == 0:
                            return
        finally:
            run(client.close())

    def scan07(self) -> Generator[tuple[tuple[int, int], pa.RecordBatch], None, None]:
        """Yield the messages of a topic of Kafka 0.7, as `scan` does."""
        from penstock.tables.topics07 import scan_topic07

        left = self.bounds.limit
        if left == 0:
            return
        found = scan_topic07(
            self.topic,
            self.servers,
            start=self.bounds.start,
            end=self.bounds.end,
            columns=self.columns,
            partitions=self.partitions,
            check_crcs=self.config.check_crcs,
            unpack=self.config.unpack_limits,
        )
        for place, (partition, batch) in enumerate(found):
            if left is not None:
                batch = batch if batch.num_rows <= left else batch.slice(0, left)
                left -= batch.num_rows
            yield (partition, place), batch
            if left == 0:
                return

    def batches(self, batch_bytes: int, wants_progress: bool | None) -> Generator[pa.RecordBatch, None, None]:
        """Yield batches, of either protocol. Raises as `penstock.read_topic`."""
        with closing(self.placed_batches(batch_bytes, wants_progress)) as found:
            for _, batch in found:
                yield batch

    def placed_batches(
        self, batch_bytes: int, wants_progress: bool | None
    ) -> Generator[tuple[tuple[int, int], pa.RecordBatch], None, None]:
        return self.scan(batch_bytes, wants_progress) if self.protocol == KAFKA else self.scan07()

    async def scan_async(
        self, batch_bytes: int
    ) -> AsyncGenerator[tuple[TopicPartition, pa.RecordBatch], None]:
        """Yield batches with their partitions, on the running loop; decoding is done in another thread.

        Raises: as `penstock.read_topic`.
        """
        client = AsyncClient(self.config)
        left = self.bounds.limit
        try:
            plan = await self._plan(client)
            for ranges in [plan.ranges] if left is None else [[one] for one in plan.ranges]:
                batches = fetch_ranges_async(
                    client,
                    ranges,
                    self.columns,
                    isolation=self.isolation,
                    batch_bytes=batch_bytes,
                    fetch_bytes=self._fetch_bytes,
                    check_crcs=self.config.check_crcs,
                    unpack=self.config.unpack_limits,
                    may_begin_later=plan.may_begin_later,
                )
                async with aclosing(batches):
                    async for tp, batch in batches:
                        if left is not None:
                            batch = batch if batch.num_rows <= left else batch.slice(0, left)
                            left -= batch.num_rows
                        yield tp, batch
                        if left == 0:
                            return
        finally:
            await client.close()

    async def _plan(self, client: AsyncClient) -> Plan:
        if self.bounds.limit == 0:
            return Plan([], frozenset())
        return await plan_reading(client, self.topic, self.bounds, self.partitions, self.isolation)

    def _expected(self, plan: Plan) -> int:
        limit = self.bounds.limit
        return plan.offsets if limit is None else min(plan.offsets, limit)

    @property
    def _fetch_bytes(self) -> int:
        if self.bounds.limit is None:
            return FETCH_BYTES
        return min(FETCH_BYTES, max(SMALL_FETCH_BYTES, self.bounds.limit * LIKELY_RECORD_BYTES))
