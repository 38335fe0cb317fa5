"""A log in memory: for tests, and for brokers without a data directory.

Each batch is stored as its own bytes object, copied once; reads return the same objects.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from penstock.log.contract import Bytes, FileRegion, LogConfig, Segment
from penstock.log.epochs import LeaderEpochs
from penstock.log.segmented import SegmentedLog
from penstock.log.walk import BatchEntry, walk_buffer

JOIN_BYTES = 4096
"""The average size in bytes below which the batches of a `Slice` are joined, because fewer parts are
cheaper to send."""


class MemorySegment(Segment):
    """A segment in memory: a list of batches, searched by their last offsets."""

    __slots__ = ("_batches", "_last_offsets", "_max_timestamp", "_positions")

    def __init__(self, base_offset: int, now_ms: int) -> None:
        super().__init__(base_offset, now_ms)
        self._batches: list[bytes] = []
        self._last_offsets: list[int] = []
        self._positions: list[int] = []
        self._max_timestamp = -1

    @property
    def max_timestamp(self) -> int:
        return self._max_timestamp

    def append(self, batch: Bytes, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        if not self.size:
            self.first_timestamp = max_timestamp
        self._batches.append(bytes(batch))
        self._last_offsets.append(last_offset)
        self._positions.append(self.size)
        self.size += size
        self.end_offset = last_offset + 1
        self.last_append_ms = now_ms
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp

    def append_many(self, batches: Bytes, size: int, entries: Sequence[BatchEntry], now_ms: int) -> None:
        empty = not self.size
        for entry in entries:
            batch = batches[entry.position : entry.position + entry.size]
            self.append(batch, entry.size, entry.last_offset, entry.max_timestamp, now_ms)
        if empty:
            self.first_timestamp = max(entry.max_timestamp for entry in entries)

    def read(
        self,
        pieces: list[Bytes | FileRegion],
        offset: int,
        max_bytes: int,
        up_to_offset: int,
        at_least_one: bool,
    ) -> tuple[int, bool]:
        batches, positions = self._batches, self._positions
        first = bisect_left(self._last_offsets, offset)
        limit = bisect_left(self._last_offsets, up_to_offset, first)
        start = positions[first] if first < len(batches) else self.size
        if self.size - start <= max_bytes:
            stop = limit
        else:
            stop = min(bisect_right(positions, start + max_bytes) - 1, limit)
            if stop == first and at_least_one:
                stop = min(first + 1, limit)
        found = batches[first:stop]
        size = (positions[stop] if stop < len(batches) else self.size) - start
        if len(found) > 1 and size < JOIN_BYTES * len(found):
            pieces.append(b"".join(found))
        else:
            pieces.extend(found)
        return size, stop == len(batches)

    def entries(self, offset: int) -> Iterator[BatchEntry]:
        index = bisect_left(self._last_offsets, offset)
        while index < len(self._batches):
            position = self._positions[index]
            for entry in walk_buffer(self._batches[index]):
                yield entry._replace(position=position)
            index += 1

    def load(self, position: int, size: int) -> bytes:
        batch = self._batches[bisect_left(self._positions, position)]
        return batch if size == len(batch) else batch[:size]

    def earlier_until(self, timestamp_ms: int) -> int:
        return self.base_offset

    def truncate_to(self, offset: int) -> None:
        keep = bisect_left(self._last_offsets, offset)
        if keep < len(self._batches):
            self.size = self._positions[keep]
            del self._batches[keep:], self._last_offsets[keep:], self._positions[keep:]
        self.end_offset = self._last_offsets[-1] + 1 if keep else self.base_offset
        self._max_timestamp = max(
            (entry.max_timestamp for entry in self.entries(self.base_offset)), default=-1
        )
        if not keep:
            self.first_timestamp = -1

    def seal(self, end_offset: int) -> None:
        self.end_offset = end_offset

    def take_place_of(self, old: Sequence[Segment]) -> None:
        """Do nothing: a segment in memory has no files to replace."""

    def settle(self) -> None:
        """Do nothing: a segment in memory has no files."""

    def source(self) -> MemorySource:
        return MemorySource(self._batches, self._positions)

    def delete(self) -> None:
        pass


class MemorySource:
    """A reader of the batches of a sealed segment in memory, used by compaction."""

    def __init__(self, batches: Sequence[bytes], positions: Sequence[int]) -> None:
        self._batches = list(batches)
        self._positions = list(positions)

    def entries(self) -> Iterator[BatchEntry]:
        for batch, position in zip(self._batches, self._positions, strict=True):
            for entry in walk_buffer(batch):
                yield entry._replace(position=position)

    def load(self, position: int, size: int) -> bytes:
        return self._batches[bisect_left(self._positions, position)]


class MemoryLog(SegmentedLog):
    """The log of one partition in memory; it implements `Log`. A flush does nothing."""

    def __init__(
        self,
        config: LogConfig | None = None,
        *,
        now_ms: int,
        start_offset: int = 0,
        jitter_seed: int = 0,
    ) -> None:
        """Create an empty log that begins at `start_offset`; see `SegmentedLog` for `jitter_seed`."""
        super().__init__(
            config or LogConfig(),
            [MemorySegment(start_offset, now_ms)],
            LeaderEpochs(),
            jitter_seed=jitter_seed,
        )

    def _new_segment(self, base_offset: int, now_ms: int) -> MemorySegment:
        return MemorySegment(base_offset, now_ms)

    def new_compacted(self, first: Segment) -> MemorySegment:
        return MemorySegment(first.base_offset, first.created_ms)

    def check_in_place(self) -> None:
        """Do nothing: memory cannot be moved or removed."""

    def flush(self) -> None:
        self.recovery_point = self.end_offset
        self._unflushed_since_ms = -1
