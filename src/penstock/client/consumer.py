"""The consumer for asyncio: assigned partitions, read as records or as Arrow batches.

Promises that a position is where the next record handed out will be at the earliest: it moves when
records are handed out, not when they are fetched. Fetching begins with the first poll, so that `assign`
and `seek` cost nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.client.client import AsyncClient, no_such_partition
from penstock.client.config import ConsumerConfig
from penstock.client.fetch_plan import ISOLATION_LEVELS, Cursor, FetchedPart, FetchLimits
from penstock.client.fetcher import Fetcher, FetchSettings
from penstock.client.handout import ColumnReading, RowReading
from penstock.client.offsets import fetch_known_offsets, fetch_offsets
from penstock.errors import ConfigError, DecodeError, KafkaError, NetworkError, PenstockError
from penstock.model import COLUMN_NAMES, EARLIEST, LATEST, Record, TopicPartition
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    import pyarrow as pa

NO_POSITION = -4
"""Stands for "the application must say", as ``auto.offset.reset=none`` wants it."""

ITERATION_POLL_S = 1.0
ARROW_BATCH_BYTES = 4 << 20
THREADED_BYTES_MIN = 128 << 10
"""Parts from this size on are decoded in another thread, so that the event loop goes on."""


class AsyncConsumer:
    """Reads records of assigned partitions.

    >>> async with AsyncConsumer(bootstrap_servers="localhost:9092") as consumer:
    ...     consumer.assign([TopicPartition("orders", 0)])
    ...     consumer.seek_to_beginning()
    ...     records = await consumer.poll(timeout_ms=1000)

    Options: Kafka's dotted names in `config`, or the same with underscores as keywords.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: Mapping[str, object] | None = None,
        **options: object,
    ) -> None:
        if bootstrap_servers is not None:
            options["bootstrap_servers"] = bootstrap_servers
        self.config = ConsumerConfig.parse(config, options)
        self._client = AsyncClient(self.config)
        self._fetcher: Fetcher | None = None
        self._positions: dict[TopicPartition, int] = {}
        """The next offset to hand out; EARLIEST or LATEST until that has been looked up."""
        self._paused: set[TopicPartition] = set()
        self._reading: RowReading | ColumnReading | None = None
        self._is_closed = False

    async def start(self) -> AsyncConsumer:
        """Reach the cluster. Optional: the first `poll` does it as well.

        Raises:
            NetworkError: no bootstrap server answers.
        """
        if self._is_closed:
            raise NetworkError("this consumer is closed")
        await self._client.bootstrap()
        return self

    async def __aenter__(self) -> AsyncConsumer:
        return await self.start()

    async def __aexit__(self, exc_type: object, exc: object, traceback: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop fetching and close the connections."""
        self._is_closed = True
        if self._fetcher is not None:
            await self._fetcher.close()
        await self._client.close()

    # -- what to read

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others. Positions of those that stay are kept."""
        wanted = [TopicPartition(*where) for where in partitions]
        self._forget(self._positions.keys() - set(wanted))
        self._positions = {where: self._positions.get(where, self._reset_marker) for where in wanted}
        self._paused &= set(wanted)

    @property
    def _reset_marker(self) -> int:
        return {"earliest": EARLIEST, "latest": LATEST}.get(self.config.auto_offset_reset, NO_POSITION)

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are read."""
        return list(self._positions)

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on at an offset, or at `EARLIEST` or `LATEST`.

        Raises:
            ConfigError: the partition is not assigned, or the offset is negative.
        """
        where = self._assigned(partition)
        if offset < 0 and offset not in (EARLIEST, LATEST):
            raise ConfigError(f"offset {offset}: offsets begin at 0")
        self._forget([where])
        self._positions[where] = offset

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the first record of some partitions, of all by default."""
        for where in partitions or self.assignment():
            self.seek(where, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on behind the last record of some partitions, of all by default."""
        for where in partitions or self.assignment():
            self.seek(where, LATEST)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out no records of some partitions until `resume`."""
        self._set_paused(partitions, True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on with paused partitions, where they were."""
        self._set_paused(partitions, False)

    def paused(self) -> set[TopicPartition]:
        return set(self._paused)

    def _set_paused(self, partitions: Iterable[TopicPartition], is_paused: bool) -> None:
        for partition in partitions:
            where = self._assigned(partition)
            if is_paused:
                # What has been fetched is dropped and fetched again later: a paused partition must
                # not fill the buffer.
                self._forget([where])
                self._paused.add(where)
            else:
                self._paused.discard(where)

    def _assigned(self, partition: TopicPartition | tuple[str, int]) -> TopicPartition:
        where = TopicPartition(*partition)
        if where not in self._positions:
            raise ConfigError(f"partition {where} is not assigned")
        return where

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop what has been fetched of some partitions, and fetch them no more."""
        gone = set(partitions)
        if self._fetcher is not None:
            self._fetcher.stop(gone)
        if self._reading is not None and self._reading.part.where in gone:
            self._reading = None

    # -- offsets

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to be handed out. Raises as `poll`."""
        where = self._assigned(partition)
        if self._positions[where] < 0:
            await self._look_up_positions()
        return self._positions[where]

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition. Raises as `fetch_offsets`."""
        return await fetch_known_offsets(self._client, map(_place, partitions), EARLIEST)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that the next record of each partition will get. Raises as `fetch_offsets`.

        With ``isolation.level=read_committed``, where the first open transaction begins.
        """
        isolation = self.config.isolation_level
        return await fetch_known_offsets(self._client, map(_place, partitions), LATEST, isolation=isolation)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """The first offset whose record is not older than the given time in milliseconds, or None.

        Raises as `fetch_offsets`.
        """
        found = await fetch_offsets(self._client, {_place(where): time for where, time in times.items()})
        return {where: None if at is None else at.offset for where, at in found.items()}

    async def _look_up_positions(self) -> None:
        for marker in (EARLIEST, LATEST):
            unknown = [where for where, position in self._positions.items() if position == marker]
            if unknown:
                found = await (self.end_offsets if marker == LATEST else self.beginning_offsets)(unknown)
                for where, offset in found.items():
                    # A seek may have come in between.
                    if self._positions.get(where) == marker:
                        self._positions[where] = offset
        nowhere = [where for where, position in self._positions.items() if position == NO_POSITION]
        if nowhere:
            raise ConfigError(f"partition {nowhere[0]} has no position: seek(), or set auto.offset.reset")

    # -- records

    async def poll(self, timeout_ms: float = 1_000.0, max_records: int | None = None) -> list[Record]:
        """Return the next records, of one partition or several: what is there at once, at most
        `max_records` (default ``max.poll.records``); wait up to `timeout_ms` for the first.

        Raises:
            KafkaError: a topic does not exist, or the position is outside the log and
                ``auto.offset.reset`` is none.
            CorruptRecordError: a batch is damaged. Its partition stays where it is: `seek` past it.
            NetworkError: no broker has been reached so far.
        """
        limit = self.config.max_poll_records if max_records is None else max_records
        deadline = time.monotonic() + timeout_ms / 1000
        while not (records := self.poll_now(limit)) and await self.wait(deadline):
            pass
        return records

    def poll_now(self, limit: int) -> list[Record]:
        """Hand out what has been fetched already, in any thread. Raises as `poll`."""
        records: list[Record] = []
        while len(records) < limit and (reading := self._row_reading()) is not None:
            found = reading.take(limit - len(records))
            records = records + found if records else found
            self._positions[reading.part.where] = reading.position
        return records

    def _row_reading(self) -> RowReading | None:
        """The part to hand records out of; None when nothing has been fetched."""
        reading = self._reading
        while not isinstance(reading, RowReading) or reading.index >= len(reading.rows):
            part = self._part_to_read(RowReading)
            if part is None:
                return None
            where = part.where
            try:
                reading = RowReading(part, self._positions[where], check_crcs=self.config.check_crcs)
            except DecodeError:
                self._forget([where])
                raise
            self._reading = reading
            self._positions[where] = reading.position
        return reading

    async def poll_arrow(
        self,
        timeout_ms: float = 1_000.0,
        *,
        columns: Sequence[str] = COLUMN_NAMES,
        batch_bytes: int = ARROW_BATCH_BYTES,
    ) -> pa.RecordBatch | None:
        """Return the next records of one partition as an Arrow batch with the given columns, in that order.

        About `batch_bytes` large, or less; None when nothing comes within `timeout_ms`. Raises as `poll`.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            size = self.fetched_bytes
            if size >= THREADED_BYTES_MIN:
                batch = await asyncio.to_thread(self.poll_arrow_now, columns, batch_bytes)
            else:
                batch = self.poll_arrow_now(columns, batch_bytes)
            if batch is not None or not await self.wait(deadline):
                return batch

    @property
    def fetched_bytes(self) -> int:
        """The size of what has been fetched and not handed out."""
        held = self._reading.part.size if self._reading is not None else 0
        return held + (self._fetcher.buffered_bytes if self._fetcher is not None else 0)

    def poll_arrow_now(self, columns: Sequence[str], batch_bytes: int) -> pa.RecordBatch | None:
        """Hand out what has been fetched already, in any thread. Raises as `poll`."""
        while True:
            reading = self._reading
            if not isinstance(reading, ColumnReading) or reading.columns != columns:
                part = self._part_to_read(ColumnReading)
                if part is None:
                    return None
                reading = self._reading = ColumnReading(
                    part,
                    self._positions[part.where],
                    columns,
                    batch_bytes,
                    check_crcs=self.config.check_crcs,
                )
            where = reading.part.where
            try:
                batch = reading.take()
            except DecodeError:
                self._forget([where])
                raise
            if self._reading is reading:
                self._positions[where] = reading.position
            if batch is not None:
                return batch
            self._reading = None

    def _part_to_read(self, kind: type) -> FetchedPart | None:
        """The next part; or the present one, when it was being handed out the other way."""
        reading, self._reading = self._reading, None
        if reading is not None and not isinstance(reading, kind):
            if self._positions.get(reading.part.where, reading.part.next_offset) < reading.part.next_offset:
                return reading.part
        elif isinstance(reading, ColumnReading):
            return reading.part
        while self._fetcher is not None and (part := self._fetcher.take()) is not None:
            if self._fetcher.cursors.get(part.where) is not part.cursor:
                continue
            if part.error is not None:
                self._handle(part.where, part.error)
                continue
            return part
        return None

    def _handle(self, where: TopicPartition, error: PenstockError) -> None:
        """Go where ``auto.offset.reset`` says when the position is outside the log; raise other errors."""
        self._forget([where])
        reset = self._reset_marker
        if isinstance(error, KafkaError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if reset != NO_POSITION:
                self._positions[where] = reset
                return
            raise KafkaError(
                error.code,
                error.name,
                f"offset {self._positions[where]} of {where} is outside the log: "
                "seek(), or set auto.offset.reset",
            )
        raise error

    async def wait(self, deadline: float) -> bool:
        """Fetch at every position, and wait until something has come; False after the `deadline`."""
        await self.start()
        if not self._positions:
            raise ConfigError("nothing is assigned: call assign() first")
        await self._start_cursors()
        assert self._fetcher is not None
        await self._fetcher.wait(deadline - time.monotonic())
        return self._fetcher.has_parts or time.monotonic() < deadline

    async def _start_cursors(self) -> None:
        if self._fetcher is None:
            self._fetcher = Fetcher(self._client, _settings(self.config))
        cursors = self._fetcher.cursors
        missing = [where for where in self._positions if where not in cursors and where not in self._paused]
        if not missing:
            return
        topics = await self._client.topics_of({where.topic for where in missing})
        for where in missing:
            if where.partition not in topics[where.topic].partitions:
                raise no_such_partition(where, len(topics[where.topic].partitions))
        await self._look_up_positions()
        for where in missing:
            position = self._positions.get(where, NO_POSITION)
            if position >= 0 and where not in self._paused:
                self._fetcher.start(Cursor(where, position, None, self.config.max_partition_fetch_bytes))

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Every record, for ever. The position follows record by record."""
        while True:
            for record in self.iterate_now():
                yield record
            await self.wait(time.monotonic() + ITERATION_POLL_S)

    def iterate_now(self) -> Iterator[Record]:
        """The records that have been fetched already, one by one, as long as nobody seeks."""
        while (reading := self._row_reading()) is not None:
            where = reading.part.where
            while self._reading is reading and reading.index < len(reading.rows):
                record = reading.rows[reading.index]
                reading.index += 1
                self._positions[where] = reading.position
                yield record


def _place(where: TopicPartition | tuple[str, int]) -> TopicPartition:
    return TopicPartition(*where)


def _settings(config: ConsumerConfig) -> FetchSettings:
    return FetchSettings(
        FetchLimits(
            config.fetch_max_wait_ms,
            config.fetch_min_bytes,
            config.fetch_max_bytes,
            ISOLATION_LEVELS[config.isolation_level],
        ),
        config.queued_max_messages_kbytes << 10,
        None,
    )
