"""The kernels that encode batches: find the size of each record and the end of each batch, then write.

The rules are those of `decode_kernels`: arguments are arrays and integers, and callers check them. A column
that is absent has empty arrays and is null in every row; an empty bitmap means no nulls. `rows` selects and
orders the rows to write; if empty, all rows are written.
"""

from __future__ import annotations

from penstock.records.format.batch_header import HEADER_BYTES
from penstock.records.kernels.compiled import (
    Bytes,
    Int32s,
    Ints,
    byte_at,
    copy_bytes,
    kernel,
    put_byte,
    wrap64,
)

# Columns of the table of planned batches. TIME_BASE and TIME_MAX are of the batch's records.
FIRST, COUNT, BYTES, TIME_BASE, TIME_MAX = range(5)
TABLE_COLUMNS = 5

# Entries of `state`.
NEXT, LINES = range(2)
STATE_SIZE = 2

_LOW57 = (1 << 57) - 1
_BODY_MAX = (1 << 31) - 1024


@kernel
def varint_size(number: int) -> int:
    """Return the number of bytes of a signed number as a zig-zag varint."""
    rest = (number << 1) ^ (number >> 63)
    size = 1
    while rest & ~0x7F:
        rest = (rest >> 7) & _LOW57
        size += 1
    return size


@kernel
def put_varint(target: Bytes, position: int, number: int) -> int:
    """Write a signed number as a zig-zag varint; return the position after it."""
    rest = (number << 1) ^ (number >> 63)
    while rest & ~0x7F:
        put_byte(target, position, (rest & 0x7F) | 0x80)
        rest = (rest >> 7) & _LOW57
        position += 1
    put_byte(target, position, rest)
    return position + 1


@kernel
def bit_at(bitmap: Bytes, bit: int) -> int:
    """Return bit number `bit` of an Arrow bitmap: 0 or 1."""
    return (byte_at(bitmap, bit >> 3) >> (bit & 7)) & 1


@kernel
def plan_batches(
    rows: Ints,
    row_count: int,
    batch_bytes_max: int,
    timestamps: Ints,
    key_ends: Int32s,
    key_validity: Bytes,
    key_validity_offset: int,
    value_ends: Int32s,
    value_validity: Bytes,
    value_validity_offset: int,
    header_ends: Int32s,
    name_ends: Int32s,
    content_ends: Int32s,
    content_validity: Bytes,
    content_validity_offset: int,
    bodies: Int32s,
    table: Ints,
    state: Ints,
) -> int:
    """Divide the rows from `state[NEXT]` on into batches, until the table of batches is full.

    A batch is as large as `batch_bytes_max` allows, and has at least one record. The size of every record's
    body is written to `bodies`. Returns -1, or the row of a record that is too large for any batch.
    """
    has_key, all_keys = len(key_ends) > 0, len(key_validity) == 0
    has_value, all_values = len(value_ends) > 0, len(value_validity) == 0
    no_headers, all_contents = len(header_ends) == 0, len(content_validity) == 0
    all_rows = len(rows) == 0
    index = int(state[NEXT])
    lines = 0
    first = index
    used = 0
    base = 0
    greatest = 0
    while index < row_count:
        row = index
        if not all_rows:
            row = int(rows[index])
        timestamp = int(timestamps[row])
        key_size = -1
        if has_key and (all_keys or bit_at(key_validity, row + key_validity_offset)):
            key_size = int(key_ends[row + 1]) - int(key_ends[row])
        value_size = -1
        if has_value and (all_values or bit_at(value_validity, row + value_validity_offset)):
            value_size = int(value_ends[row + 1]) - int(value_ends[row])
        fixed = 1 + varint_size(key_size) + max(key_size, 0) + varint_size(value_size) + max(value_size, 0)
        if no_headers:
            fixed += 1
        else:
            begin, end = int(header_ends[row]), int(header_ends[row + 1])
            fixed += varint_size(end - begin)
            for header in range(begin, end):
                size = int(name_ends[header + 1]) - int(name_ends[header])
                fixed += varint_size(size) + size
                size = -1
                if all_contents or bit_at(content_validity, header + content_validity_offset):
                    size = int(content_ends[header + 1]) - int(content_ends[header])
                fixed += varint_size(size) + max(size, 0)
        if fixed > _BODY_MAX:
            return row
        if index == first:
            base, greatest = timestamp, timestamp
        body = fixed + varint_size(wrap64(timestamp - base)) + varint_size(index - first)
        size = body + varint_size(body)
        if index > first and HEADER_BYTES + used + size > batch_bytes_max:
            table[lines, FIRST] = first
            table[lines, COUNT] = index - first
            table[lines, BYTES] = used
            table[lines, TIME_BASE] = base
            table[lines, TIME_MAX] = greatest
            lines += 1
            first = index
            used = 0
            if lines == len(table):
                break
            base, greatest = timestamp, timestamp
            body = fixed + 2
            size = body + varint_size(body)
        bodies[index] = body
        used += size
        greatest = max(greatest, timestamp)
        index += 1
    if index > first:
        table[lines, FIRST] = first
        table[lines, COUNT] = index - first
        table[lines, BYTES] = used
        table[lines, TIME_BASE] = base
        table[lines, TIME_MAX] = greatest
        lines += 1
        first = index
    state[NEXT] = first
    state[LINES] = lines
    return -1


@kernel
def write_batches(
    target: Bytes,
    position: int,
    table: Ints,
    lines: int,
    rows: Ints,
    bodies: Int32s,
    timestamps: Ints,
    key_data: Bytes,
    key_ends: Int32s,
    key_validity: Bytes,
    key_validity_offset: int,
    value_data: Bytes,
    value_ends: Int32s,
    value_validity: Bytes,
    value_validity_offset: int,
    header_ends: Int32s,
    name_data: Bytes,
    name_ends: Int32s,
    content_data: Bytes,
    content_ends: Int32s,
    content_validity: Bytes,
    content_validity_offset: int,
) -> int:
    """Write the records of planned batches from `position` on, leaving room for each batch's header.

    Returns the position after the last record.
    """
    has_key, all_keys = len(key_ends) > 0, len(key_validity) == 0
    has_value, all_values = len(value_ends) > 0, len(value_validity) == 0
    no_headers, all_contents = len(header_ends) == 0, len(content_validity) == 0
    all_rows = len(rows) == 0
    for line in range(lines):
        position += HEADER_BYTES
        first = int(table[line, FIRST])
        base = int(table[line, TIME_BASE])
        for index in range(first, first + int(table[line, COUNT])):
            row = index
            if not all_rows:
                row = int(rows[index])
            position = put_varint(target, position, int(bodies[index]))
            put_byte(target, position, 0)
            position = put_varint(target, position + 1, wrap64(int(timestamps[row]) - base))
            position = put_varint(target, position, index - first)
            size = -1
            if has_key and (all_keys or bit_at(key_validity, row + key_validity_offset)):
                size = int(key_ends[row + 1]) - int(key_ends[row])
            position = put_varint(target, position, size)
            if size > 0:
                copy_bytes(target, position, key_data, int(key_ends[row]), size)
                position += size
            size = -1
            if has_value and (all_values or bit_at(value_validity, row + value_validity_offset)):
                size = int(value_ends[row + 1]) - int(value_ends[row])
            position = put_varint(target, position, size)
            if size > 0:
                copy_bytes(target, position, value_data, int(value_ends[row]), size)
                position += size
            if no_headers:
                put_byte(target, position, 0)
                position += 1
            else:
                begin, end = int(header_ends[row]), int(header_ends[row + 1])
                position = put_varint(target, position, end - begin)
                for header in range(begin, end):
                    size = int(name_ends[header + 1]) - int(name_ends[header])
                    position = put_varint(target, position, size)
                    copy_bytes(target, position, name_data, int(name_ends[header]), size)
                    position += size
                    size = -1
                    if all_contents or bit_at(content_validity, header + content_validity_offset):
                        size = int(content_ends[header + 1]) - int(content_ends[header])
                    position = put_varint(target, position, size)
                    if size > 0:
                        copy_bytes(target, position, content_data, int(content_ends[header]), size)
                        position += size
    return position
