"""Walk over the batches in a part of a log by reading only their headers.

One batch of magic 2, or one message of magic 0 or 1 (a compressed wrapper counts as one), is an *entry*.
A walk reads nothing but headers, never reads past the given end, and raises `CorruptRecordError` at the first
invalid header. An incomplete entry at the end is not an error: the walk ends before it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from io import FileIO
from struct import Struct
from typing import NamedTuple

from penstock.common import operating_system
from penstock.errors import CorruptRecordError
from penstock.model import NO_TIMESTAMP
from penstock.records.format.batch_header import (
    LENGTH_EXTRA_BYTES,
    LENGTH_MIN,
    LENGTH_POSITION,
    MESSAGE_CRC_POSITION,
    MESSAGE_TIMESTAMP_POSITION,
    verify_crc,
)
from penstock.records.format.crc import crc32

# base offset, length, leader epoch, magic, crc (skipped), attributes, last offset delta,
# base timestamp (skipped), max timestamp
_HEADER = Struct(">qiib4xhi8xq")
unpack_head = _HEADER.unpack_from
"""Unpack the first fields of a batch: offset, length, epoch, magic, attributes, offset delta, time."""

_INT64 = Struct(">q")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")

HEAD_BYTES = _HEADER.size
"""The number of bytes at the start of an entry that a walk unpacks: 43."""

_LENGTH_MIN = tuple(LENGTH_MIN[magic] for magic in range(3))
_ENTRY_BYTES_MIN = LENGTH_EXTRA_BYTES + _LENGTH_MIN[0]
_ZEROS = bytes(HEAD_BYTES)

FETCH_BYTES = 4096
"""The number of bytes that a walk over a file reads at a time: the usual distance between entries of the
offset index.
"""

CHECKED_FETCH_BYTES = 1 << 20
"""The number of bytes that a walk reads at a time if it verifies checksums."""

Fetch = Callable[[int, int], bytes | memoryview]
"""A function that returns `size` bytes from `position` on; fewer only at the end of the data."""


class BatchEntry(NamedTuple):
    """The position and size of a batch, with the offsets, leader epoch and time from its header."""

    position: int
    size: int
    base_offset: int
    """The base offset of a batch; for magic 0 and 1 equal to `last_offset`, even for a compressed wrapper."""
    last_offset: int
    max_timestamp: int
    leader_epoch: int
    """The leader epoch; -1 if it is not set, and for magic 0 and 1."""
    attributes: int
    """The attributes of a batch; 0 for magic 0 and 1."""
    magic: int


def walk(
    fetch: Fetch, position: int, end: int, fetch_bytes: int = FETCH_BYTES
) -> Generator[BatchEntry, None, int]:
    """Yield the entries from `position`, where an entry must begin, up to `end`.

    Stops at an incomplete entry, and at zeros, which a preallocated file ends with. The generator returns the
    position where it stopped, which is `end` otherwise. `walk_whole` raises an error in both cases.

    Raises:
        CorruptRecordError: a header is invalid; the message names its position.
    """
    unpack = _HEADER.unpack_from
    while position < end:
        chunk = fetch(position, min(fetch_bytes, end - position))
        if len(chunk) < _ENTRY_BYTES_MIN:
            return position
        last = len(chunk) - HEAD_BYTES
        if last < 0:
            # Near the end: a message of magic 0 may be shorter than what is unpacked of magic 2.
            chunk, last = bytes(chunk) + _ZEROS, 0
        index = 0
        while index <= last:
            base_offset, length, epoch, magic, attributes, delta, timestamp = unpack(chunk, index)
            if length == 0 and base_offset == 0 and magic == 0:
                return position + index
            if not 0 <= magic <= 2 or length < _LENGTH_MIN[magic] or base_offset < 0:
                raise CorruptRecordError(
                    f"no batch at position {position + index}: "
                    f"offset {base_offset}, length {length}, magic {magic}"
                )
            size = length + LENGTH_EXTRA_BYTES
            if position + index + size > end:
                return position + index
            if magic < 2:
                delta, epoch, attributes = 0, -1, 0
                timestamp = (
                    _INT64.unpack_from(chunk, index + MESSAGE_TIMESTAMP_POSITION)[0]
                    if magic
                    else NO_TIMESTAMP
                )
            elif delta < 0:
                raise CorruptRecordError(
                    f"last offset delta {delta} in the batch at position {position + index}"
                )
            yield BatchEntry(
                position + index, size, base_offset, base_offset + delta, timestamp, epoch, attributes, magic
            )
            index += size
        position += index
    return position


def walk_whole(fetch: Fetch, position: int, end: int) -> Iterator[BatchEntry]:
    """Yield the entries from `position` to `end`, where the last entry must end.

    Raises:
        CorruptRecordError: a header is invalid, or the last entry does not end at `end`.
    """
    stopped = yield from walk(fetch, position, end)
    if stopped != end:
        raise CorruptRecordError(
            f"no whole batch at position {stopped}, {end - stopped} bytes before the end"
        )


def fetch_from(buffer: bytes | memoryview) -> Fetch:
    """Return a `Fetch` that reads from bytes in memory."""
    view = memoryview(buffer)
    return lambda position, size: view[position : position + size]


def fetch_file(file: FileIO) -> Fetch:
    """Return a `Fetch` that reads from an open file. The file stays open as long as the `Fetch` exists."""
    return lambda position, size: operating_system.pread(file.fileno(), size, position)


def walk_buffer(buffer: bytes | memoryview) -> Iterator[BatchEntry]:
    """Yield the entries of `buffer`, as `walk` does."""
    size = len(buffer)
    return walk(fetch_from(buffer), 0, size, max(size, 1))


def walk_checked(fetch: Fetch, end: int, next_offset: int) -> Iterator[BatchEntry]:
    """Yield the entries up to `end`; read whole batches to check checksums and ascending offsets.

    Stops where `walk` does. `next_offset` is the minimum offset of the first entry.

    Raises:
        CorruptRecordError: an entry is damaged or out of order; the entries before it have been yielded.
    """
    position, wanted = 0, CHECKED_FETCH_BYTES
    while position < end:
        chunk = memoryview(fetch(position, min(wanted, end - position)))
        start = position
        for entry in walk(_shifted(chunk, start), start, start + len(chunk), len(chunk)):
            if entry.base_offset < next_offset:
                raise CorruptRecordError(
                    f"offset {entry.base_offset} at position {entry.position} where {next_offset} was due"
                )
            if not has_valid_checksum(chunk, entry.position - start, entry):
                raise CorruptRecordError(f"the batch at position {entry.position} fails its checksum")
            next_offset = entry.last_offset + 1
            position = entry.position + entry.size
            yield entry
        if position > start:
            wanted = CHECKED_FETCH_BYTES
            continue
        if len(chunk) == end - start or len(chunk) < LENGTH_EXTRA_BYTES:
            return
        # One batch larger than what was fetched: fetch it whole, if it is all there.
        wanted = _INT32.unpack_from(chunk, LENGTH_POSITION)[0] + LENGTH_EXTRA_BYTES
        if wanted <= len(chunk) or wanted > end - start:
            return


def _shifted(view: memoryview, start: int) -> Fetch:
    """Return a `Fetch` over `view`: the bytes of a segment from position `start` on, in memory."""
    return lambda position, size: view[position - start : position - start + size]


def has_valid_checksum(buffer: bytes | memoryview, start: int, entry: BatchEntry) -> bool:
    """Return True if the checksum of the entry at `start` of `buffer` is correct."""
    end = start + entry.size
    if entry.magic < 2:
        expected = _UINT32.unpack_from(buffer, start + MESSAGE_CRC_POSITION)[0]
        return bool(crc32(memoryview(buffer)[start + MESSAGE_CRC_POSITION + 4 : end]) == expected)
    try:
        verify_crc(buffer, start, end)
    except CorruptRecordError:
        return False
    return True
