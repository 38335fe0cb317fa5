"""The kernels that decode batches: list batches, find the fields of every record, copy bytes into columns.

Kernels are functions of arrays and integers only; failures are codes, which the callers `decode` and `encode`
convert to errors. Two rules keep them safe as compiled code: every length read from the data is compared with
the number of remaining bytes before use, and every caller makes the arrays large enough for the result.
Several calls fill one set of arrays: `state` has the next row and the used size of each array.

"Ends" are Arrow's offsets: the bytes of a row are at `ends[row]` to `ends[row + 1]`. "At" is the position of
the row's bytes in the source, or -1 for null.
"""

from __future__ import annotations

from penstock.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    BASE_TIMESTAMP_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_POSITION,
    ENTRY_BYTES,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_POSITION,
    LENGTH_EXTRA_BYTES,
    LENGTH_POSITION,
    LOG_APPEND_BIT,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    MESSAGE_ATTRIBUTES_POSITION,
    MESSAGE_LENGTH_MIN,
    PRODUCER_ID_POSITION,
    RECORD_BYTES_MIN,
    RECORD_COUNT_POSITION,
)
from penstock.records.kernels.compiled import Bytes, Int32s, Ints, byte_at, copy_bytes, kernel, wrap64

# What a kernel reports.
OK, DONE, LEGACY, CUT, BAD_MAGIC, BAD_LENGTH, BAD_COUNT, BAD_RECORD, TRAILING, BAD_HEADERS, FULL = range(11)

# Columns of the table that `walk_batches` fills: one line per batch.
BATCH_AT, RECORDS_AT, END, BASE_OFFSET, LAST_OFFSET, TIME, COUNT, ATTRIBUTES, PRODUCER_ID, CRC = range(10)
TABLE_COLUMNS = 10

MAGIC = PRODUCER_ID  # in the lines of `scan_messages`

# Entries of `state` in `walk_batches`.
POSITION, LINES, RECORDS, NEXT_OFFSET, ATTRIBUTES_SEEN = range(5)
WALK_SIZE = 5

# Entries of `state` in the kernels that fill rows.
ROWS, KEY_BYTES, KEY_NULLS, VALUE_BYTES, VALUE_NULLS, HEADERS, FAILED_LINE = range(7)
NAME_BYTES, HEADER_VALUE_BYTES, HEADER_VALUE_NULLS = range(7, 10)
# Where to go on after FULL: records left in the line, the position of the next one, and the room it needs.
LEFT, NEXT_AT, KEY_ROOM, VALUE_ROOM = range(10, 14)
STATE_SIZE = 14

_MAX63 = (1 << 63) - 1
_MAX31 = (1 << 31) - 1


@kernel
def read_unsigned(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """Read a 32-bit varint; return (value, next position); position -1: incomplete or too long."""
    value = 0
    shift = 0
    while position < end and shift < 35:
        byte = byte_at(data, position)
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                return 0, -1
            return value, position
        shift += 7
    return 0, -1


@kernel
def read_unsigned_long(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """Read a 64-bit varint, as `read_unsigned` does. Compiled code returns a set top bit as a sign."""
    value = 0
    shift = 0
    while position < end and shift < 70:
        byte = byte_at(data, position)
        position += 1
        if shift == 63 and byte > 1:
            return 0, -1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return 0, -1


@kernel
def short_unsigned(data: Bytes, position: int, size: int) -> tuple[int, int]:
    """Read a varint of up to three bytes with one bounds check; return (value, next position).

    If the varint is longer, or fewer than three bytes of `data` are left, the position returned is -1 -
    position, and the caller calls `read_unsigned`: this function avoids the call in the hot loop, where a
    call with an array costs more than the whole record.
    """
    if position + 3 > size:
        return 0, -1 - position
    number = byte_at(data, position)
    if number < 0x80:
        return number, position + 1
    number = (number & 0x7F) | (byte_at(data, position + 1) << 7)
    if number < 0x4000:
        return number, position + 2
    number = (number & 0x3FFF) | (byte_at(data, position + 2) << 14)
    if number < 0x200000:
        return number, position + 3
    return 0, -1 - position


@kernel
def read_int(data: Bytes, position: int, size: int) -> int:
    """Read a signed big-endian number of `size` bytes."""
    value = byte_at(data, position)
    if value > 127:
        value -= 256
    for index in range(1, size):
        value = (value << 8) | byte_at(data, position + index)
    return value


@kernel
def walk_batches(
    data: Bytes, position: int, group_bytes: int, first_offset: int, end_offset: int, table: Ints, state: Ints
) -> int:
    """List the batches of magic 2 from `position` on in a table; stop at a full table or `group_bytes`.

    Batches without records, or wholly outside first_offset..end_offset, are left out, except control batches
    before first_offset, which may end a transaction. Returns OK (there may be more batches: call again), DONE
    (end of the data, a partial batch, or end_offset), LEGACY (a message of magic 0 or 1 comes next) or an
    error code. `state` has the position of the walk.
    """
    size = len(data)
    stop = position + group_bytes
    lines = 0
    records = 0
    seen = 0
    outcome = OK
    while lines < len(table) and position < stop:
        if position + ENTRY_BYTES > size:
            outcome = DONE
            break
        length = read_int(data, position + LENGTH_POSITION, 4)
        magic = byte_at(data, position + MAGIC_POSITION)
        if magic != 2:
            outcome = LEGACY if magic < 2 else BAD_MAGIC
            break
        if length < HEADER_BYTES - LENGTH_EXTRA_BYTES:
            outcome = BAD_LENGTH
            break
        end = position + LENGTH_EXTRA_BYTES + length
        if end > size:
            outcome = DONE
            break
        if end > _MAX31:
            outcome = OK if lines > 0 else BAD_LENGTH
            break
        base_offset = read_int(data, position, 8)
        if base_offset >= end_offset:
            state[NEXT_OFFSET] = base_offset
            outcome = DONE
            break
        attributes = read_int(data, position + ATTRIBUTES_POSITION, 2)
        last_delta = read_int(data, position + LAST_OFFSET_DELTA_POSITION, 4)
        count = read_int(data, position + RECORD_COUNT_POSITION, 4)
        plain = attributes & CODEC_MASK == 0
        room = end - position - HEADER_BYTES
        if count < 0 or last_delta < 0 or base_offset < 0 or (plain and count * RECORD_BYTES_MIN > room):
            outcome = BAD_COUNT
            break
        last_offset = wrap64(base_offset + last_delta)
        state[NEXT_OFFSET] = wrap64(last_offset + 1)
        if count > 0 and (last_offset >= first_offset or attributes & CONTROL_BIT):
            table[lines, BATCH_AT] = position
            table[lines, RECORDS_AT] = position + HEADER_BYTES
            table[lines, END] = end
            table[lines, BASE_OFFSET] = base_offset
            table[lines, LAST_OFFSET] = last_offset
            time_position = MAX_TIMESTAMP_POSITION if attributes & LOG_APPEND_BIT else BASE_TIMESTAMP_POSITION
            table[lines, TIME] = read_int(data, position + time_position, 8)
            table[lines, COUNT] = count
            table[lines, ATTRIBUTES] = attributes
            table[lines, PRODUCER_ID] = read_int(data, position + PRODUCER_ID_POSITION, 8)
            table[lines, CRC] = read_int(data, position + CRC_POSITION, 4) & 0xFFFFFFFF
            lines += 1
            records += count
            seen |= attributes
        position = end
    state[POSITION] = position
    state[LINES] = lines
    state[RECORDS] = records
    state[ATTRIBUTES_SEEN] = seen
    return outcome


@kernel
def scan_records(
    data: Bytes,
    table: Ints,
    lines: int,
    first_offset: int,
    end_offset: int,
    offsets: Ints,
    timestamps: Ints,
    timestamp_types: Int32s,
    key_marks: Bytes,
    key_ends: Int32s,
    key_data: Bytes,
    value_marks: Bytes,
    value_ends: Int32s,
    value_data: Bytes,
    headers_at: Int32s,
    headers_stop: Int32s,
    header_ends: Int32s,
    state: Ints,
) -> int:
    """Copy the fields of every record of the listed batches; arrays without elements are not filled.

    A key or value is copied as soon as it is found, while its bytes are in the first-level cache. The array
    `marks` gets 1 for it, or 0 for null. Rows outside first_offset..end_offset are left out. Returns OK, FULL
    (the columns need KEY_ROOM and VALUE_ROOM bytes for the next record: call again with more room), or the
    code of the error in the batch at line `state[FAILED_LINE]`.
    """
    size = len(data)
    row = state[ROWS]
    key_bytes, key_nulls = state[KEY_BYTES], state[KEY_NULLS]
    value_bytes, value_nulls = state[VALUE_BYTES], state[VALUE_NULLS]
    headers = state[HEADERS]
    want_offset, want_time, want_type = len(offsets) > 0, len(timestamps) > 0, len(timestamp_types) > 0
    want_key, want_value, want_headers = len(key_marks) > 0, len(value_marks) > 0, len(headers_at) > 0
    left = state[LEFT]
    first_line = state[FAILED_LINE] if left > 0 else 0
    for line in range(first_line, lines):
        state[FAILED_LINE] = line
        position = int(table[line, RECORDS_AT])
        if left > 0:
            position = state[NEXT_AT]
        else:
            left = int(table[line, COUNT])
        end = int(table[line, END])
        base_offset = int(table[line, BASE_OFFSET])
        base_time = int(table[line, TIME])
        append_time = (int(table[line, ATTRIBUTES]) >> 3) & 1
        for index in range(left):
            record_at = position
            number, position = short_unsigned(data, position, size)
            if position < 0:
                number, position = read_unsigned(data, -1 - position, end)
            if position < 0 or number & 1 or (number >> 1) > end - position:
                return CUT
            record_end = position + (number >> 1)
            delta, position = short_unsigned(data, position + 1, size)
            if position < 0:
                delta, position = read_unsigned_long(data, -1 - position, record_end)
            if position < 0:
                return BAD_RECORD
            number, position = short_unsigned(data, position, size)
            if position < 0:
                number, position = read_unsigned(data, -1 - position, record_end)
            if position < 0:
                return BAD_RECORD
            offset = wrap64(base_offset + ((number >> 1) ^ -(number & 1)))
            number, position = short_unsigned(data, position, size)
            if position < 0:
                number, position = read_unsigned(data, -1 - position, record_end)
            if position < 0:
                return BAD_RECORD
            key_position, key_size = -1, 0
            if not number & 1:
                key_position, key_size = position, number >> 1
                if key_size > record_end - position:
                    return BAD_RECORD
                position += key_size
            number, position = short_unsigned(data, position, size)
            if position < 0:
                number, position = read_unsigned(data, -1 - position, record_end)
            if position < 0:
                return BAD_RECORD
            value_position, value_size = -1, 0
            if not number & 1:
                value_position, value_size = position, number >> 1
                if value_size > record_end - position:
                    return BAD_RECORD
                position += value_size
            if position >= record_end:
                return BAD_RECORD
            header_count = byte_at(data, position)
            if header_count == 0:
                position += 1
                if position != record_end:
                    return TRAILING
            elif want_headers:
                number, position = read_unsigned(data, position, record_end)
                header_count = number >> 1
                if position < 0 or number & 1 or header_count > (record_end - position) >> 1:
                    return BAD_HEADERS
            if offset >= first_offset and offset < end_offset:
                if (want_key and key_bytes + key_size > len(key_data)) or (
                    want_value and value_bytes + value_size > len(value_data)
                ):
                    state[ROWS], state[HEADERS] = row, headers
                    state[KEY_BYTES], state[KEY_NULLS] = key_bytes, key_nulls
                    state[VALUE_BYTES], state[VALUE_NULLS] = value_bytes, value_nulls
                    state[KEY_ROOM], state[VALUE_ROOM] = key_bytes + key_size, value_bytes + value_size
                    state[LEFT], state[NEXT_AT] = left - index, record_at
                    return FULL
                if want_offset:
                    offsets[row] = offset
                if want_time:
                    if append_time:
                        timestamps[row] = base_time
                    else:
                        timestamps[row] = wrap64(base_time + (((delta >> 1) & _MAX63) ^ -(delta & 1)))
                if want_type:
                    timestamp_types[row] = append_time
                if want_key:
                    key_marks[row] = key_position >= 0
                    copy_bytes(key_data, key_bytes, data, key_position, key_size)
                    key_bytes += key_size
                    key_nulls += key_position < 0
                    key_ends[row + 1] = key_bytes
                if want_value:
                    value_marks[row] = value_position >= 0
                    copy_bytes(value_data, value_bytes, data, value_position, value_size)
                    value_bytes += value_size
                    value_nulls += value_position < 0
                    value_ends[row + 1] = value_bytes
                if want_headers:
                    headers_at[row] = position
                    headers_stop[row] = record_end
                    headers += header_count
                    header_ends[row + 1] = headers
                row += 1
            position = record_end
        if position != end:
            return TRAILING
        left = 0
    state[ROWS], state[LEFT] = row, 0
    state[KEY_BYTES], state[KEY_NULLS] = key_bytes, key_nulls
    state[VALUE_BYTES], state[VALUE_NULLS] = value_bytes, value_nulls
    state[HEADERS] = headers
    return OK


@kernel
def scan_messages(
    data: Bytes,
    table: Ints,
    lines: int,
    first_offset: int,
    end_offset: int,
    offsets: Ints,
    timestamps: Ints,
    timestamp_types: Int32s,
    key_marks: Bytes,
    key_ends: Int32s,
    key_data: Bytes,
    value_marks: Bytes,
    value_ends: Int32s,
    value_data: Bytes,
    headers_at: Int32s,
    headers_stop: Int32s,
    header_ends: Int32s,
    state: Ints,
) -> int:
    """Find the fields of runs of uncompressed messages of magic 0 and 1, as `scan_records` does for batches.

    A line of the table describes a run of messages: BASE_OFFSET is added to every offset, MAGIC is the magic
    that all messages must have (-1: any), and if ATTRIBUTES has the log-append bit, TIME is the timestamp of
    every record.
    """
    row = state[ROWS]
    key_bytes, key_nulls = state[KEY_BYTES], state[KEY_NULLS]
    value_bytes, value_nulls = state[VALUE_BYTES], state[VALUE_NULLS]
    first_line = state[FAILED_LINE] if state[LEFT] > 0 else 0
    for line in range(first_line, lines):
        state[FAILED_LINE] = line
        position = int(table[line, RECORDS_AT])
        if state[LEFT] > 0:
            position = state[NEXT_AT]
            state[LEFT] = 0
        end = int(table[line, END])
        while position < end:
            message_at = position
            if end - position < LENGTH_EXTRA_BYTES + MESSAGE_LENGTH_MIN:
                return CUT
            length = read_int(data, position + LENGTH_POSITION, 4)
            if length < MESSAGE_LENGTH_MIN or length > end - position - LENGTH_EXTRA_BYTES:
                return BAD_LENGTH
            message_end = position + LENGTH_EXTRA_BYTES + length
            offset = wrap64(read_int(data, position, 8) + int(table[line, BASE_OFFSET]))
            magic = byte_at(data, position + MAGIC_POSITION)
            attributes = byte_at(data, position + MESSAGE_ATTRIBUTES_POSITION)
            if magic > 1 or (table[line, MAGIC] >= 0 and magic != table[line, MAGIC]):
                return BAD_MAGIC
            if attributes & CODEC_MASK != 0 or (magic == 1 and length < MESSAGE_LENGTH_MIN + 8):
                return BAD_RECORD
            position += MESSAGE_ATTRIBUTES_POSITION + 1
            time, time_type = -1, -1
            if magic == 1:
                time, time_type = read_int(data, position, 8), (attributes >> 3) & 1
                position += 8
                if table[line, ATTRIBUTES] & LOG_APPEND_BIT:
                    time, time_type = table[line, TIME], 1
            key_size = read_int(data, position, 4)
            position += 4
            if key_size > message_end - position - 4:
                return BAD_RECORD
            key_position = -1
            if key_size >= 0:
                key_position = position
                position += key_size
            key_size = max(key_size, 0)
            value_size = read_int(data, position, 4)
            position += 4
            if value_size > message_end - position:
                return BAD_RECORD
            value_position = -1
            if value_size >= 0:
                value_position = position
                position += value_size
            value_size = max(value_size, 0)
            if position != message_end:
                return TRAILING
            if offset >= first_offset and offset < end_offset:
                if (len(key_marks) > 0 and key_bytes + key_size > len(key_data)) or (
                    len(value_marks) > 0 and value_bytes + value_size > len(value_data)
                ):
                    state[ROWS] = row
                    state[KEY_BYTES], state[KEY_NULLS] = key_bytes, key_nulls
                    state[VALUE_BYTES], state[VALUE_NULLS] = value_bytes, value_nulls
                    state[KEY_ROOM], state[VALUE_ROOM] = key_bytes + key_size, value_bytes + value_size
                    state[LEFT], state[NEXT_AT] = 1, message_at
                    return FULL
                if len(offsets) > 0:
                    offsets[row] = offset
                if len(timestamps) > 0:
                    timestamps[row] = time
                if len(timestamp_types) > 0:
                    timestamp_types[row] = time_type
                if len(key_marks) > 0:
                    key_marks[row] = key_position >= 0
                    copy_bytes(key_data, key_bytes, data, key_position, key_size)
                    key_bytes += key_size
                    key_nulls += key_position < 0
                    key_ends[row + 1] = key_bytes
                if len(value_marks) > 0:
                    value_marks[row] = value_position >= 0
                    copy_bytes(value_data, value_bytes, data, value_position, value_size)
                    value_bytes += value_size
                    value_nulls += value_position < 0
                    value_ends[row + 1] = value_bytes
                if len(headers_at) > 0:
                    headers_at[row] = 0
                    headers_stop[row] = 0
                    header_ends[row + 1] = state[HEADERS]
                row += 1
    state[ROWS] = row
    state[KEY_BYTES], state[KEY_NULLS] = key_bytes, key_nulls
    state[VALUE_BYTES], state[VALUE_NULLS] = value_bytes, value_nulls
    return OK


@kernel
def scan_headers(
    data: Bytes,
    headers_at: Int32s,
    headers_stop: Int32s,
    header_ends: Int32s,
    first_row: int,
    end_row: int,
    name_at: Int32s,
    name_ends: Int32s,
    value_at: Int32s,
    value_ends: Int32s,
    state: Ints,
) -> int:
    """Find the header names and values of rows first_row..end_row. Returns OK or BAD_HEADERS."""
    name_bytes, value_bytes, nulls = state[NAME_BYTES], state[HEADER_VALUE_BYTES], state[HEADER_VALUE_NULLS]
    size = len(data)
    for row in range(first_row, end_row):
        position = int(headers_at[row])
        stop = int(headers_stop[row])
        first, last = header_ends[row], header_ends[row + 1]
        for header in range(first, last):
            number, position = short_unsigned(data, position, size)
            if position < 0:
                number, position = read_unsigned(data, -1 - position, stop)
            if position < 0 or number & 1 or (number >> 1) > stop - position:
                return BAD_HEADERS
            name_at[header] = position
            name_bytes += number >> 1
            name_ends[header + 1] = name_bytes
            number, position = short_unsigned(data, position + (number >> 1), size)
            if position < 0:
                number, position = read_unsigned(data, -1 - position, stop)
            if position < 0 or position > stop:
                return BAD_HEADERS
            value_at[header] = -1
            if number & 1:
                nulls += 1
            else:
                if (number >> 1) > stop - position:
                    return BAD_HEADERS
                value_at[header] = position
                value_bytes += number >> 1
                position += number >> 1
            value_ends[header + 1] = value_bytes
        if last > first and position != stop:
            return TRAILING
    state[NAME_BYTES], state[HEADER_VALUE_BYTES], state[HEADER_VALUE_NULLS] = name_bytes, value_bytes, nulls
    return OK


@kernel
def gather(data: Bytes, at: Int32s, ends: Int32s, first: int, last: int, target: Bytes) -> None:
    """Copy the bytes of entries first..last from their positions in `data` into `target`, one by one."""
    for entry in range(first, last):
        position = int(at[entry])
        if position >= 0:
            begin = int(ends[entry])
            copy_bytes(target, begin, data, position, int(ends[entry + 1]) - begin)


@kernel
def scale(numbers: Ints, factor: int, limit: int, target: Ints) -> None:
    """Limit each number to the range from -`limit` to `limit`, then multiply the result by `factor`."""
    for index in range(len(numbers)):
        target[index] = min(max(numbers[index], -limit), limit) * factor
