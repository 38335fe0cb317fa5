"""The aborted transactions of one partition, in Kafka's `.txnindex` files and in memory.

Each segment's file has entries for the markers in the segment, in their order; a segment without such markers
has no file. An entry takes 34 bytes: version, producer id, first offset of the transaction, offset of its
marker, last stable offset.

The files are read once, and updated from then on. A crash may lose the end of a file. Therefore a start
rebuilds the entries after the last producer snapshot from the log.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from struct import Struct

from penstock.broker.partitions.producers.transactions import AbortedTransaction
from penstock.common.logs import logger_named
from penstock.common.operating_system import OPEN_FLAGS
from penstock.log.directory.files import FILE_MODE, remove_file, storage, write_whole

logger = logger_named("penstock.broker")

SUFFIX = ".txnindex"

_ENTRY = Struct(">hqqqq")
_VERSION = 0
_FIELDS = 4
_MARKER, _STABLE = 2, 3


class AbortedIndex:
    """The aborted transactions of a partition, in the order of their markers.

    `directory` is the partition's directory; None keeps the index in memory only.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._flat = array("q")
        """All entries in one flat array, four numbers each, since tuples would take six times the
        memory.
        """
        self._is_behind = False
        """True while the files lack an entry, or contain a part of one, because a write has failed."""

    def __len__(self) -> int:
        return len(self._flat) // _FIELDS

    def __iter__(self) -> Iterator[AbortedTransaction]:
        flat = self._flat
        for at in range(0, len(flat), _FIELDS):
            yield AbortedTransaction(*flat[at : at + _FIELDS])

    # --- reading -----------------------------------------------------------------------------------------

    def overlapping(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records in ``[offset, end_offset)``.

        Their markers are at or after `offset`, and their first records are before `end_offset`.
        """
        flat = self._flat
        found = []
        for number in range(self._position_of(offset), len(self)):
            entry = AbortedTransaction(*flat[_FIELDS * number : _FIELDS * (number + 1)])
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                break
        return found

    def _position_of(self, marker_offset: int) -> int:
        """Return the index of the first entry whose marker is at or after `marker_offset`."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._flat[_FIELDS * middle + _MARKER] < marker_offset:
                low = middle + 1
            else:
                high = middle
        return low

    # --- files -------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read all `.txnindex` files. A malformed file is logged, and read up to the first wrong entry.

        Raises:
            StorageError: the directory or a file cannot be read.
        """
        if self._directory is None:
            return
        self._flat = array("q")
        for base in self._bases():
            path = self._path(base)
            with storage("read", path), open(path, "rb") as file:
                data = file.read()
            if len(data) % _ENTRY.size:
                self._is_behind = True  # an entry appended after half an entry would not be found
            for at in range(0, len(data) - _ENTRY.size + 1, _ENTRY.size):
                version, *fields = _ENTRY.unpack_from(data, at)
                if version == _VERSION and self._knows(fields):
                    continue
                if version != _VERSION or (self._flat and fields[_MARKER] <= self._flat[_MARKER - _FIELDS]):
                    logger.warning("%s is damaged at position %d; the rest of it is not used", path, at)
                    self._is_behind = True
                    break
                self._flat.extend(fields)

    def _knows(self, fields: list[int]) -> bool:
        position = _FIELDS * self._position_of(fields[_MARKER])
        return self._flat[position : position + _FIELDS] == array("q", fields)

    def add(self, entry: AbortedTransaction, segment_bases: Sequence[int]) -> None:
        """Add an aborted transaction whose marker is the log's last batch, to the newest segment's file.

        Raises:
            StorageError: the entry cannot be written. It stays in memory, and is written with the next
                entry, or at the latest before a snapshot: after the snapshot, a start no longer reads that
                part of the log.
        """
        self._flat.extend(entry)
        if self._directory is None:
            return
        if self._is_behind:
            self.rewrite(segment_bases)
            return
        path = self._path(segment_bases[-1])
        self._is_behind = True
        with storage("append to", path), open(path, "ab", opener=_open_private) as file:
            file.write(_ENTRY.pack(_VERSION, *entry))
        self._is_behind = False

    def replace_from(
        self, offset: int, entries: Sequence[AbortedTransaction], segment_bases: Sequence[int]
    ) -> None:
        """Replace the entries for markers from `offset` on, and rewrite the files if they differ.

        Raises:
            StorageError: the files cannot be written.
        """
        keep = self._position_of(offset) * _FIELDS
        known = self._flat[keep:]
        found = array("q", [number for entry in entries for number in entry])
        if known != found:
            self._flat[keep:] = found
            self.rewrite(segment_bases)

    def forget_before(self, start_offset: int) -> None:
        """Drop transactions whose markers are before `start_offset`, the present start of the log."""
        dropped = self._position_of(start_offset)
        if dropped:
            del self._flat[: _FIELDS * dropped]

    def drop(self, markers: Collection[int]) -> None:
        """Remove the transactions whose markers have these offsets; `rewrite` later updates the files."""
        kept = array("q")
        for entry in self:
            if entry.marker_offset not in markers:
                kept.extend(entry)
        self._flat = kept

    def rewrite(self, segment_bases: Sequence[int]) -> None:
        """Rewrite all `.txnindex` files, because segments were merged or a file lacks an entry.

        Raises:
            StorageError: the files cannot be written.
        """
        if self._directory is None:
            return
        by_segment: dict[int, list[AbortedTransaction]] = {}
        bases = sorted(segment_bases)
        position = 0
        for entry in self:
            while position + 1 < len(bases) and bases[position + 1] <= entry.marker_offset:
                position += 1
            if bases:
                by_segment.setdefault(bases[position], []).append(entry)
        self._is_behind = True
        # Written before others are removed: a crash in between leaves an entry twice, and loses none.
        for base, entries in by_segment.items():
            write_whole(self._path(base), b"".join(_packed(entries)), sync=True)
        for base in set(self._bases()).difference(by_segment):
            remove_file(self._path(base))
        self._is_behind = False

    def sync(self, segment_bases: Sequence[int]) -> None:
        """Force the newest `.txnindex` file to disk, before a producer snapshot is written.

        A start does not read the log before the snapshot, so the file must have these entries. Files that
        lack an entry are rewritten first.

        Raises:
            StorageError: a file cannot be written.
        """
        if self._directory is None or not self._flat:
            return
        if self._is_behind:
            self.rewrite(segment_bases)
        for base in self._bases()[-1:]:
            path = self._path(base)
            with storage("flush", path):
                fd = os.open(path, os.O_RDONLY | OPEN_FLAGS)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)

    def _bases(self) -> list[int]:
        assert self._directory is not None
        with storage("read", self._directory):
            names = os.listdir(self._directory)
        digits = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        return sorted(int(text) for text in digits if len(text) == 20 and text.isdecimal())

    def _path(self, base: int) -> str:
        return f"{self._directory}/{base:020d}{SUFFIX}"


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | OPEN_FLAGS, FILE_MODE)


def _packed(entries: Iterable[AbortedTransaction]) -> Iterator[bytes]:
    return (_ENTRY.pack(_VERSION, *entry) for entry in entries)
