"""The compiled version of `penstock.records.format.key_scan`, for large compactions. It needs numpy."""

from __future__ import annotations

import numpy as np

from penstock.errors import CorruptRecordError
from penstock.records.format.batch_header import RECORD_BYTES_MIN
from penstock.records.format.key_scan import RecordSpan
from penstock.records.kernels.compiled import Bytes, Ints, byte_at, kernel
from penstock.records.kernels.decode_kernels import read_unsigned, read_unsigned_long, short_unsigned

START, RECORD_END, TIME, OFFSET, KEY_AT, KEY_END, HAS_VALUE = range(7)
COLUMNS = 7

_MAX63 = (1 << 63) - 1


@kernel
def find_keys(data: Bytes, count: int, table: Ints) -> int:
    """Write the positions of each record and its key to a line of `table`, for the records in `data`.

    Returns the index of the first record that does not fit its length, `count` if bytes are left after the
    last record, and -1 if there is no error. A null key is at position -1.
    """
    size = len(data)
    end = 0
    for record in range(count):
        table[record, START] = end
        number, position = short_unsigned(data, end, size)
        if position < 0:
            number, position = read_unsigned(data, -1 - position, size)
        if position < 0 or number & 1 or (number >> 1) > size - position:
            return record
        end = position + (number >> 1)
        times, position = short_unsigned(data, position + 1, size)
        if position < 0:
            times, position = read_unsigned_long(data, -1 - position, end)
        if position < 0:
            return record
        offset, position = short_unsigned(data, position, size)
        if position < 0:
            offset, position = read_unsigned(data, -1 - position, end)
        if position < 0:
            return record
        number, position = short_unsigned(data, position, size)
        if position < 0:
            number, position = read_unsigned(data, -1 - position, end)
        if position < 0:
            return record
        table[record, KEY_AT] = -1
        if not number & 1:
            if (number >> 1) > end - position:
                return record
            table[record, KEY_AT] = position
            position += number >> 1
        if position >= end:
            return record
        table[record, RECORD_END] = end
        table[record, TIME] = ((times >> 1) & _MAX63) ^ -(times & 1)
        table[record, OFFSET] = (offset >> 1) ^ -(offset & 1)
        table[record, KEY_END] = position
        table[record, HAS_VALUE] = 1 - (byte_at(data, position) & 1)
    return -1 if end == size else count


def scan_keys(data: bytes, count: int) -> list[RecordSpan]:
    """Return a `RecordSpan` for each of the `count` records in `data`, with the compiled kernel.

    Raises:
        CorruptRecordError: the records do not fit their lengths.
    """
    if count > len(data) // RECORD_BYTES_MIN:
        raise CorruptRecordError(f"{count} records in {len(data)} bytes")
    table = np.empty((count, COLUMNS), np.int64)
    failed = find_keys(np.frombuffer(data, np.uint8), count, table)
    if failed >= 0:
        what = (
            f"record {failed} does not fit its length" if failed < count else "bytes behind the last record"
        )
        raise CorruptRecordError(what)
    starts, ends, times, offsets, key_starts, key_ends, has_values = table.T.tolist()
    new_span = tuple.__new__
    return [
        new_span(RecordSpan, (start, end, time, offset, data[at:stop] if at >= 0 else None, has_value == 1))
        for start, end, time, offset, at, stop, has_value in zip(
            starts, ends, times, offsets, key_starts, key_ends, has_values, strict=True
        )
    ]
