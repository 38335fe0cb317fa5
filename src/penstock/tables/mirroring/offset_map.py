"""Where the records of a partition went: a map from offsets of the source to offsets of its copy.

A run is a span of records that lie side by side in both logs. Runs that touch each other in both become one.
What is not copied (control batches, aborted records, holes of compaction) parts two runs in the source; a
marker of the copy's own transactions parts them in the target.

Runs are packed into chunks, compressed once they are full: what repeats itself, as one record and one marker
do, takes a fraction of a byte for each run. A chunk is named by the source offset at which it begins.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.errors import CorruptRecordError
from penstock.records.format.varint import read_unsigned

CHUNK_RUNS = 512
"""How many runs one chunk has at most. The last one is written anew by each transaction."""

CHUNK_BYTES_MAX = CHUNK_RUNS * 30
"""What a chunk unpacks to at most: three numbers of at most ten bytes for each run."""


class Run(NamedTuple):
    """`length` records, from offset `source` on in the source and from `target` on in the target."""

    source: int
    target: int
    length: int


class OffsetMap:
    """The runs of one partition, in order. `floor` is the source offset below which nothing is known.

    A floor of 0 says that everything is known from the beginning: an offset before the first run is one whose
    records were gone before they could be copied.
    """

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self._firsts: list[int] = []
        """The names of the packed chunks, in order."""
        self._packed: dict[int, bytes] = {}
        self._open: list[Run] = []
        """The runs of the last chunk, which is not full."""
        self.size_bytes = 0
        """Bytes of the packed chunks."""

    def __iter__(self) -> Iterator[Run]:
        for first in self._firsts:
            yield from unpack_runs(self._packed[first])
        yield from self._open

    @property
    def end(self) -> int:
        """The source offset behind the last record of the map; the floor where there is none."""
        last = self._last()
        return self.floor if last is None else last.source + last.length

    @property
    def target_end(self) -> int:
        """The target offset behind the last record of the map; 0 where there is none."""
        last = self._last()
        return 0 if last is None else last.target + last.length

    def _last(self) -> Run | None:
        if self._open:
            return self._open[-1]
        return unpack_runs(self._packed[self._firsts[-1]])[-1] if self._firsts else None

    def add(self, source: int, target: int, count: int) -> None:
        """Note records that were copied.

        Raises:
            ValueError: they do not lie behind those that are known, in the source and in the target.
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
        self._open.append(Run(source, target, count))

    def _seal(self) -> None:
        """Pack the last chunk, and begin another."""
        first = self._open[0].source
        self._firsts.append(first)
        self._packed[first] = packed = pack_runs(self._open)
        self.size_bytes += len(packed)
        self._open = []

    def translate(self, offset: int) -> int | None:
        """Return where the first record from `offset` on went that was copied; None where there is none yet.

        That is what a group is to read next whose committed offset is `offset`.

        Raises:
            ValueError: `offset` lies below the floor.
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
        """Return where the record at `offset` went; None for one that the map does not have."""
        for runs in self._from(offset):
            index = bisect_right(runs, offset, key=_source)
            if index and offset < runs[index - 1].source + runs[index - 1].length:
                return runs[index - 1].target + offset - runs[index - 1].source
            return None
        return None

    def _from(self, offset: int) -> Iterator[list[Run]]:
        """Yield the chunk that has an offset, or begins last before it; and those that follow."""
        at = max(bisect_right(self._firsts, offset) - 1, 0)
        if not self._open or offset < self._open[0].source:
            for first in self._firsts[at:]:
                yield unpack_runs(self._packed[first])
        if self._open:
            yield self._open

    def chunks(self, since: int = 0) -> dict[int, bytes]:
        """Return the packed chunks by name that have runs from source offset `since` on, the last one
        included.
        """
        if not self._open:
            return {}
        name = self._open[0].source
        first = max(bisect_right(self._firsts, since) - 1, 0) if since < name else len(self._firsts)
        return {each: self._packed[each] for each in self._firsts[first:]} | {name: pack_runs(self._open)}

    @classmethod
    def of_chunks(cls, chunks: Iterable[tuple[int, bytes]], *, floor: int, end: int) -> OffsetMap:
        """Return the map that packed chunks hold, without anything from source offset `end` on.

        Raises:
            CorruptRecordError: a chunk is damaged, or does not follow the one before.
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
        """Drop the chunks whose records all lie before an offset of the target; return their names.

        The floor stays: what was dropped is gone from the target, and translates to what is left of it.
        """
        dropped: list[int] = []
        while len(self._firsts) > 1 and unpack_runs(self._packed[self._firsts[1]])[0].target <= target:
            dropped.append(self._drop_first())
        return dropped

    def forget_down_to(self, size_bytes: int) -> list[int]:
        """Drop the oldest chunks until the packed ones have `size_bytes`; return their names.

        The floor is behind them then.
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


def _source(run: Run) -> int:
    return run.source


def pack_runs(runs: Iterable[Run]) -> bytes:
    """Return the bytes of runs: for each the distance to the one before in source and target, and its
    length.
    """
    out = bytearray()
    source = target = 0
    for run in runs:
        for number in (run.source - source, run.target - target, run.length):
            while number > 0x7F:
                out.append(number & 0x7F | 0x80)
                number >>= 7
            out.append(number)
        source, target = run.source + run.length, run.target + run.length
    return zlib.compress(out, 1)


def unpack_runs(packed: bytes) -> list[Run]:
    """Return the inverse of `pack_runs`.

    Raises:
        CorruptRecordError: these are not the bytes of runs.
    """
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, CHUNK_BYTES_MAX)
        if not unpacker.eof:
            raise CorruptRecordError(f"a chunk of a map has more than {CHUNK_BYTES_MAX} bytes, or is cut")
        runs: list[Run] = []
        position = source = target = 0
        while position < len(data):
            source_gap, position = read_unsigned(data, position, 64)
            target_gap, position = read_unsigned(data, position, 64)
            count, position = read_unsigned(data, position, 64)
            runs.append(Run(source + source_gap, target + target_gap, count))
            source, target = runs[-1].source + count, runs[-1].target + count
    except (zlib.error, IndexError) as error:
        raise CorruptRecordError(f"a chunk of a map cannot be read: {error}") from None
    if not runs or not all(run.length for run in runs):
        raise CorruptRecordError("a chunk of a map has no runs, or an empty one")
    return runs
