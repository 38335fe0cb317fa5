"""The two indexes of a segment: offset to position, and timestamp to offset.

Both are sparse, with one entry for every few kilobytes of log. They are arrays in memory, and files in
Kafka's format. The files may lag: entries are written a page at a time, because every entry can be rebuilt
from the log. So no data is lost if a file is short or missing: the log is read instead. A file that
contradicts itself is reported as damaged and rebuilt.

Entries, big-endian (Kafka's OffsetIndex and TimeIndex): `.index`      int32 offset less the segment's base,
int32 position of the batch that ends with it; `.timeindex`  int64 greatest timestamp so far, int32 offset
(less the base) of the last record of the batch with that timestamp. Kafka preallocates the files, so after a
crash they may end in zeros.
"""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_left, bisect_right
from operator import le, lt
from struct import Struct
from struct import error as struct_error

from penstock.common import operating_system
from penstock.common.operating_system import OPEN_FLAGS
from penstock.errors import StorageError
from penstock.log.directory.files import FILE_MODE, storage
from penstock.model import NO_TIMESTAMP

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
SAVE_ENTRIES = 512
"""The number of entries that are collected in memory before they are written: a page of the offset index."""

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_SWAP = sys.byteorder == "little"


class DamagedIndexError(StorageError):
    """An index file contradicts itself or its log; callers in this package rebuild it."""


def _read(path: str, entry_bytes: int) -> tuple[bytes, int]:
    """Return (entries of an index file without zeros at its end, their number).

    The number is -1 if there were zeros at the end: the file is then longer than its entries.

    Raises:
        DamagedIndexError: the file is missing, or its size is not a multiple of an entry's.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise DamagedIndexError(f"{path} is missing") from None
    except OSError as error:
        raise DamagedIndexError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) % entry_bytes:
        raise DamagedIndexError(f"{path} has {len(data)} bytes, which is no multiple of {entry_bytes}")
    used = len(data.rstrip(b"\0"))
    entries = -(-used // entry_bytes)
    end = entries * entry_bytes
    return data[:end], entries if end == len(data) else -1


def last_entry_in(path: str) -> tuple[int, int] | None:
    """Return (relative offset, position) of the last entry of an offset index, reading only that entry.

    Returns None if there is no such file or no entry, or if the file ends in zeros.
    """
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            entries = file.tell() // OFFSET_ENTRY_BYTES
            if not entries:
                return None
            file.seek((entries - 1) * OFFSET_ENTRY_BYTES)
            offset, position = _OFFSET_ENTRY.unpack(file.read(OFFSET_ENTRY_BYTES))
    except (OSError, struct_error):
        return None
    return (offset, position) if position > 0 else None


def _write(path: str, entry_bytes: int, data: bytes, at_entry: int, entries: int) -> None:
    """Write index entries to a file from entry number `at_entry` on; truncate it to `entries` entries."""
    with storage("write", path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | OPEN_FLAGS, FILE_MODE)
        try:
            if data:
                operating_system.pwrite(fd, data, at_entry * entry_bytes)
            os.ftruncate(fd, entries * entry_bytes)
        finally:
            os.close(fd)


class OffsetIndex:
    """A sparse index of a segment: maps the last offset of a batch to the byte position of that batch."""

    __slots__ = ("base_offset", "offsets", "path", "positions", "saved", "unproven")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.offsets = array("i")
        self.positions = array("i")
        self.saved = -1
        """The number of entries that are certainly in the file; -1 if the file may be missing or too long."""
        self.unproven = 0
        """The number of entries that were read from the file but not compared with the log yet. They are
        compared before they are used.
        """

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def load(cls, path: str, base_offset: int, log_bytes: int) -> OffsetIndex:
        """Read an index file.

        Raises:
            DamagedIndexError: the file is missing, does not ascend, or points past the `log_bytes` of the
                log.
        """
        data, saved = _read(path, OFFSET_ENTRY_BYTES)
        numbers = array("i")
        numbers.frombytes(data)
        if _SWAP:
            numbers.byteswap()
        index = cls(path, base_offset)
        index.offsets, index.positions = numbers[0::2], numbers[1::2]
        index.unproven, index.saved = len(index.offsets), saved
        for name, column in (("offsets", index.offsets), ("positions", index.positions)):
            if column and not (column[0] >= 0 and all(map(lt, column, column[1:]))):
                raise DamagedIndexError(f"the {name} in {path} are not ascending")
        if index.positions and index.positions[-1] >= log_bytes:
            raise DamagedIndexError(
                f"{path} points to position {index.positions[-1]} of a log of {log_bytes} bytes"
            )
        return index

    def append(self, offset: int, position: int) -> None:
        """Add an entry: the batch at `position` ends with `offset`."""
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)

    def place_of(self, offset: int) -> int:
        """Return the number of the last entry with an offset of at most `offset`; -1 if there is none."""
        return bisect_right(self.offsets, offset - self.base_offset) - 1

    def place_at(self, position: int) -> int:
        """Return the number of the last entry with a position of at most `position`; -1 if there is none."""
        return bisect_right(self.positions, position) - 1

    def truncate(self, position: int) -> None:
        """Remove the entries of batches at `position` and later."""
        keep = bisect_left(self.positions, position)
        if keep < len(self.positions):
            del self.offsets[keep:], self.positions[keep:]
            self.unproven = min(self.unproven, keep)
            if self.saved > keep:
                _write(self.path, OFFSET_ENTRY_BYTES, b"", keep, keep)
                self.saved = keep

    def save(self) -> None:
        """Write the entries that the file does not have yet.

        Raises:
            StorageError: the file cannot be written. Nothing is lost, because the index can be rebuilt.
        """
        count, first = len(self.offsets), max(self.saved, 0)
        if self.saved == count:
            return
        fresh = array("i", bytes(OFFSET_ENTRY_BYTES * (count - first)))
        fresh[0::2], fresh[1::2] = self.offsets[first:], self.positions[first:]
        if _SWAP:
            fresh.byteswap()
        _write(self.path, OFFSET_ENTRY_BYTES, fresh.tobytes(), first, count)
        self.saved = count


class TimeIndex:
    """A sparse index from timestamps to offsets: no record up to an entry's offset has a later timestamp."""

    __slots__ = ("base_offset", "offsets", "path", "saved", "timestamps")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.offsets = array("i")
        self.saved = -1
        """The number of entries that are certainly in the file; -1 if the file may be missing or too long."""

    def __len__(self) -> int:
        return len(self.timestamps)

    @classmethod
    def load(cls, path: str, base_offset: int) -> TimeIndex:
        """Read an index file.

        Raises:
            DamagedIndexError: the file is missing, or its timestamps or offsets do not ascend.
        """
        index = cls(path, base_offset)
        data, index.saved = _read(path, TIME_ENTRY_BYTES)
        for timestamp, offset in _TIME_ENTRY.iter_unpack(data):
            index.timestamps.append(timestamp)
            index.offsets.append(offset)
        timestamps, offsets = index.timestamps, index.offsets
        if offsets and not (
            offsets[0] >= 0
            and all(map(lt, timestamps, timestamps[1:]))
            and all(map(le, offsets, offsets[1:]))
        ):
            raise DamagedIndexError(f"the entries in {path} are not ascending")
        return index

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless the last one has this timestamp or a later one."""
        timestamps = self.timestamps
        if timestamp > (timestamps[-1] if timestamps else NO_TIMESTAMP):
            timestamps.append(timestamp)
            self.offsets.append(offset - self.base_offset)

    def last(self) -> tuple[int, int]:
        """Return (timestamp, offset) of the last entry; (-1, base offset) if there is none."""
        if not self.timestamps:
            return NO_TIMESTAMP, self.base_offset
        return self.timestamps[-1], self.base_offset + self.offsets[-1]

    def lookup(self, timestamp: int) -> int:
        """Return the highest offset such that, by the index, every earlier record is before `timestamp`."""
        entry_index = bisect_left(self.timestamps, timestamp) - 1
        return self.base_offset + self.offsets[entry_index] + 1 if entry_index >= 0 else self.base_offset

    def truncate(self, offset: int) -> None:
        """Remove the entries for `offset` and later offsets."""
        keep = bisect_left(self.offsets, offset - self.base_offset)
        if keep < len(self.offsets):
            del self.timestamps[keep:], self.offsets[keep:]
            if self.saved > keep:
                _write(self.path, TIME_ENTRY_BYTES, b"", keep, keep)
                self.saved = keep

    def save(self) -> None:
        """Write the entries that the file does not have yet. Raises StorageError as in `OffsetIndex.save`."""
        count, first = len(self.timestamps), max(self.saved, 0)
        if self.saved == count:
            return
        fresh = map(_TIME_ENTRY.pack, self.timestamps[first:], self.offsets[first:])
        _write(self.path, TIME_ENTRY_BYTES, b"".join(fresh), first, count)
        self.saved = count
