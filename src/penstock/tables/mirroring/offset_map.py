"""A map from the offsets of a source partition to the offsets of its copy.

A run is a span of records that are consecutive in both logs. Runs that touch each other in both logs become
one. Two runs are separated in the source by offsets that are not copied (control batches, aborted records,
gaps of compaction), and in the target by markers of the copy's own transactions.

Runs are packed into chunks, compressed once they are full: a repeated pattern, such as one record and one
marker, takes a fraction of a byte for each run. A chunk's name is the source offset at which it begins.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.common.protobuf import varint_bytes
from penstock.errors import CorruptRecordError
from penstock.records.format.varint import read_unsigned

CHUNK_RUNS = 512
"""Most runs of one chunk. Each transaction of the copy writes the last chunk anew."""

CHUNK_BYTES_MAX = CHUNK_RUNS * 30
"""Largest size of a decompressed chunk: three numbers of at most ten bytes for each run."""


class OffsetRun(NamedTuple):
    """`length` consecutive records: from offset `source` on in the source, from `target` on in the target."""

    source: int
    target: int
    length: int


class OffsetMap:
    """The runs of one partition, in order. `floor` is the source offset below which offsets are not mapped.

    With a floor of 0, the map has every copied record: records before the first run were removed from the
    source before they could be copied.
    """

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self._firsts: list[int] = []
        """The names of the packed chunks (the source offsets at which they begin), ascending."""
        self._packed: dict[int, bytes] = {}
        self._open: list[OffsetRun] = []
        """The runs of the last chunk, which is not full."""
        self.size_bytes = 0
        """Total size of the packed chunks."""

    def __iter__(self) -> Iterator[OffsetRun]:
        for first in self._firsts:
            yield from unpack_runs(self._packed[first])
        yield from self._open

    @property
    def end(self) -> int:
        """The source offset after the last record in the map, or the floor if it is empty."""
        last = self._last()
        return self.floor if last is None else last.source + last.length

    @property
    def target_end(self) -> int:
        """The target offset after the last record in the map, or 0 if it is empty."""
        last = self._last()
        return 0 if last is None else last.target + last.length

    def _last(self) -> OffsetRun | None:
        if self._open:
            return self._open[-1]
        return unpack_runs(self._packed[self._firsts[-1]])[-1] if self._firsts else None

    def add(self, source: int, target: int, count: int) -> None:
        """Add a run of copied records.

        Raises:
            ValueError: the run does not come after those in the map, in the source and in the target.
        """
        if count <= 0 or source < self.end or target < self.target_end:
            raise ValueError(
                f"{count} records at offset {source}, copied to {target}, do not follow a map that ends at "
                f"{self.end} and {self.target_end}"
            )
        if self._open:
            last = self._open[-1]
            if (source - last.source, target - last.target) == (last.length, last.length):
                self._open[-1] = last._replace(length=last.length + count)
                return
            if len(self._open) == CHUNK_RUNS:
                self._seal()
        self._open.append(OffsetRun(source, target, count))

    def _seal(self) -> None:
        """Compress the last chunk because it is full, and begin a new chunk."""
        first = self._open[0].source
        self._firsts.append(first)
        self._packed[first] = packed = pack_runs(self._open)
        self.size_bytes += len(packed)
        self._open = []

    def translate(self, offset: int) -> int | None:
        """Return the target offset of the first copied record from source offset `offset` on, or None.

        A group whose committed offset is `offset` continues there in the target.

        Raises:
            ValueError: `offset` is below the floor.
        """
        if offset < self.floor:
            raise ValueError(f"offset {offset} lies before the map, which begins with {self.floor}")
        for runs in self._from(offset):
            index = bisect_right(runs, offset, key=_source)
            if index and offset < runs[index - 1].source + runs[index - 1].length:
                return runs[index - 1].target + offset - runs[index - 1].source
            if index < len(runs):
                return runs[index].target
        return None

    def exactly(self, offset: int) -> int | None:
        """Return the target offset of the record at source offset `offset`; None if it is not in the map."""
        for runs in self._from(offset):
            index = bisect_right(runs, offset, key=_source)
            if index and offset < runs[index - 1].source + runs[index - 1].length:
                return runs[index - 1].target + offset - runs[index - 1].source
            return None
        return None

    def _from(self, offset: int) -> Iterator[list[OffsetRun]]:
        """Yield lists of runs, one list per chunk, from the chunk that contains source offset `offset`."""
        at = max(bisect_right(self._firsts, offset) - 1, 0)
        if not self._open or offset < self._open[0].source:
            for first in self._firsts[at:]:
                yield unpack_runs(self._packed[first])
        if self._open:
            yield self._open

    def chunks(self, since: int = 0) -> dict[int, bytes]:
        """Return packed chunks in a dict from name: the last, and those with runs from offset `since` on."""
        if not self._open:
            return {}
        name = self._open[0].source
        first = max(bisect_right(self._firsts, since) - 1, 0) if since < name else len(self._firsts)
        return {each: self._packed[each] for each in self._firsts[first:]} | {name: pack_runs(self._open)}

    @classmethod
    def of_chunks(cls, chunks: Iterable[tuple[int, bytes]], *, floor: int, end: int) -> OffsetMap:
        """Build the map from packed chunks, without records from source offset `end` on.

        Raises:
            CorruptRecordError: a chunk is damaged, or does not come after the one before.
        """
        made = cls(floor)
        for first, packed in sorted(chunks):
            if first >= end:
                break
            runs = unpack_runs(packed)
            if first != runs[0].source or first < made.end or runs[0].target < made.target_end:
                raise CorruptRecordError(f"the chunk of a map that begins with offset {first} is damaged")
            if made._open:
                made._seal()
            made._open = [
                run._replace(length=min(run.length, end - run.source)) for run in runs if run.source < end
            ]
        return made

    def forget_before(self, target: int) -> list[int]:
        """Drop the chunks whose records are all before target offset `target`; return their names.

        The floor stays: a source offset in a dropped chunk translates to the first record left in the target.
        """
        dropped: list[int] = []
        while len(self._firsts) > 1 and unpack_runs(self._packed[self._firsts[1]])[0].target <= target:
            dropped.append(self._drop_first())
        return dropped

    def forget_down_to(self, size_bytes: int) -> list[int]:
        """Drop the oldest chunks until the packed ones have at most `size_bytes`; return their names.

        The floor rises to the end of the dropped chunks.
        """
        dropped: list[int] = []
        while self._firsts and self.size_bytes > size_bytes:
            last = unpack_runs(self._packed[self._firsts[0]])[-1]
            self.floor = last.source + last.length
            dropped.append(self._drop_first())
        return dropped

    def _drop_first(self) -> int:
        first = self._firsts.pop(0)
        self.size_bytes -= len(self._packed.pop(first))
        return first


def _source(run: OffsetRun) -> int:
    return run.source


def pack_runs(runs: Iterable[OffsetRun]) -> bytes:
    """Compress runs to bytes: the length of each run, and its gaps to the previous run in both logs."""
    out = bytearray()
    source = target = 0
    for run in runs:
        for number in (run.source - source, run.target - target, run.length):
            out += varint_bytes(number)
        source, target = run.source + run.length, run.target + run.length
    return zlib.compress(out, 1)


def unpack_runs(packed: bytes) -> list[OffsetRun]:
    """Return the runs that `pack_runs` has compressed to bytes.

    Raises:
        CorruptRecordError: the bytes are not packed runs.
    """
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, CHUNK_BYTES_MAX)
        if not unpacker.eof:
            raise CorruptRecordError(f"a chunk of a map has more than {CHUNK_BYTES_MAX} bytes, or is cut")
        runs: list[OffsetRun] = []
        position = source = target = 0
        while position < len(data):
            source_gap, position = read_unsigned(data, position, 64)
            target_gap, position = read_unsigned(data, position, 64)
            count, position = read_unsigned(data, position, 64)
            runs.append(OffsetRun(source + source_gap, target + target_gap, count))
            source, target = runs[-1].source + count, runs[-1].target + count
    except (zlib.error, IndexError) as error:
        raise CorruptRecordError(f"a chunk of a map cannot be read: {error}") from None
    if not runs or not all(run.length for run in runs):
        raise CorruptRecordError("a chunk of a map has no runs, or an empty one")
    return runs
