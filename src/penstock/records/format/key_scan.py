"""Finds the key and the byte range of each record in a batch of magic 2, for compaction.

Values and headers are skipped: compaction copies the bytes of a record that it keeps. The module imports
nothing that is slow to load, because compaction runs in brokers. `penstock.records.kernels.key_scanner`
chooses a compiled version.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import CorruptRecordError
from penstock.records.format.varint import read_unsigned


class RecordSpan(NamedTuple):
    """The byte range of one record in a batch, with the fields of the record that compaction compares."""

    start: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def scan_keys(data: bytes, count: int) -> list[RecordSpan]:
    """Return a `RecordSpan` for each of the `count` consecutive encoded records in `data`.

    Raises:
        CorruptRecordError: a record does not fit into its length, or bytes are left after the last one.
    """
    try:
        return _scan(data, count)
    except IndexError:
        raise CorruptRecordError("a record is cut short") from None


def _scan(data: bytes, count: int) -> list[RecordSpan]:
    size_of_data = len(data)
    new_span = tuple.__new__
    spans: list[RecordSpan] = []
    append = spans.append
    end = 0
    for _ in range(count):
        start = end
        # Numbers of one byte, nearly all there are, are read in place.
        number, position = data[start], start + 1
        if number > 0x7F:
            number, position = read_unsigned(data, start)
        end = position + (number >> 1)
        if number & 1 or end > size_of_data:
            raise CorruptRecordError(f"a record that ends at {end} of {size_of_data} bytes")
        position += 1  # attributes: none are defined
        times = data[position]
        position += 1
        if times > 0x7F:
            times, position = read_unsigned(data, position - 1, 64)
        offset = data[position]
        position += 1
        if offset > 0x7F:
            offset, position = read_unsigned(data, position - 1)
        size = data[position]
        position += 1
        if size > 0x7F:
            size, position = read_unsigned(data, position - 1)
        if size & 1:
            key = None
        else:
            key = data[position : position + (size >> 1)]
            position += size >> 1
        if position >= end:
            raise CorruptRecordError(f"a key that ends at {position} of a record that ends at {end}")
        has_value = not data[position] & 1
        append(
            new_span(
                RecordSpan,
                (start, end, (times >> 1) ^ -(times & 1), (offset >> 1) ^ -(offset & 1), key, has_value),
            )
        )
    if end != size_of_data:
        raise CorruptRecordError(f"{size_of_data - end} bytes behind the last record")
    return spans
