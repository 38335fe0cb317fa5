"""The kernels that convert messages of magic 0 and 1 to records of magic 2, and back.

Each record is converted from one buffer to the other in one step, checksum included. A loop stops before a
message that it cannot convert; its caller converts this message in Python, and raises the errors. The rules
are those of `decode_kernels`: every length is compared with the number of remaining bytes, and targets are
large enough.
"""

from __future__ import annotations

import numpy as np

from penstock.records.format.batch_header import (
    CODEC_MASK,
    LENGTH_EXTRA_BYTES,
    LENGTH_POSITION,
    LOG_APPEND_BIT,
    MAGIC_POSITION,
    MESSAGE_ATTRIBUTES_POSITION,
    MESSAGE_CRC_POSITION,
    MESSAGE_LENGTH_MIN,
)
from penstock.records.kernels.compiled import (
    Bytes,
    Ints,
    byte_at,
    copy_bytes,
    kernel,
    put_byte,
    word_at,
    wrap64,
)
from penstock.records.kernels.decode_kernels import (
    read_int,
    read_unsigned,
    read_unsigned_long,
)
from penstock.records.kernels.encode_kernels import put_varint, varint_size

# Entries of `state` in `raise_messages`: what is in the batch so far, and where the loop stands.
COUNT, BASE_TIME, MAX_TIME, APPENDED, READ_TO, WRITTEN_TO = range(6)
RAISE_STATE_SIZE = 6

# Entries of `state` in `lower_records`.
FIRST_OFFSET, LAST_OFFSET, LATEST, KEPT, SIZE, MESSAGES_TO = range(6)
LOWER_STATE_SIZE = 6

RECORD_GROWTH = 7
"""The maximum number of bytes by which a record of magic 2 is longer than the message of magic 0 from
which it was converted."""

MESSAGE_GROWTH = 34
"""The maximum number of bytes by which a message of magic 1 is longer than the record of magic 2 from
which it was converted."""

_TIME_LIMIT = 1 << 62
_MAX32 = 0xFFFFFFFF
_MAX63 = (1 << 63) - 1


def _crc_tables() -> Ints:
    """Return the eight CRC-32 tables of 256 numbers each that process eight bytes at a time."""
    first = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0xEDB88320 if number & 1 else 0)
        first.append(number)
    tables = [first]
    for _ in range(7):
        tables.append([(number >> 8) ^ first[number & 0xFF] for number in tables[-1]])
    return np.array([number for table in tables for number in table], dtype=np.int64)


CRC_TABLES = _crc_tables()


@kernel
def crc32_of(data: Bytes, start: int, end: int) -> int:
    """Return the CRC-32 of the bytes from `start` to `end`."""
    crc = _MAX32
    position = start
    while position + 8 <= end:
        word = word_at(data, position)
        low = (word & _MAX32) ^ crc
        high = (word >> 32) & _MAX32
        crc = (
            CRC_TABLES[1792 + (low & 0xFF)]
            ^ CRC_TABLES[1536 + ((low >> 8) & 0xFF)]
            ^ CRC_TABLES[1280 + ((low >> 16) & 0xFF)]
            ^ CRC_TABLES[1024 + (low >> 24)]
            ^ CRC_TABLES[768 + (high & 0xFF)]
            ^ CRC_TABLES[512 + ((high >> 8) & 0xFF)]
            ^ CRC_TABLES[256 + ((high >> 16) & 0xFF)]
            ^ CRC_TABLES[high >> 24]
        )
        position += 8
    while position < end:
        crc = CRC_TABLES[(crc ^ byte_at(data, position)) & 0xFF] ^ (crc >> 8)
        position += 1
    return int(crc) ^ _MAX32


@kernel
def put_big(target: Bytes, position: int, number: int, size: int) -> int:
    """Write a big-endian number of `size` bytes; return the position after it."""
    shift = 8 * (size - 1)
    for index in range(size):
        put_byte(target, position + index, (number >> (shift - 8 * index)) & 0xFF)
    return position + size


@kernel
def raise_messages(
    data: Bytes,
    position: int,
    end: int,
    magic_only: int,
    wrapper_time: int,
    count_max: int,
    target: Bytes,
    state: Ints,
) -> int:
    """Convert uncompressed messages from `position` on to records of magic 2, appended to `target`.

    Stops before a message that is incomplete, is compressed, is damaged, has another magic than `magic_only`
    (-1: any up to 1) or exceeds `count_max`. If the wrapper has a log-append time, `wrapper_time` is the time
    of all messages of magic 1; otherwise `wrapper_time` is below -1. Returns the number of converted
    messages.
    """
    count = int(state[COUNT])
    before = count
    base = int(state[BASE_TIME])
    latest = int(state[MAX_TIME])
    to = int(state[WRITTEN_TO])
    while count < count_max and end - position >= LENGTH_EXTRA_BYTES + MESSAGE_LENGTH_MIN:
        length = read_int(data, position + LENGTH_POSITION, 4)
        magic = byte_at(data, position + MAGIC_POSITION)
        attributes = byte_at(data, position + MESSAGE_ATTRIBUTES_POSITION)
        least = MESSAGE_LENGTH_MIN + 8 * magic
        if magic > 1 or length < least or length > end - position - LENGTH_EXTRA_BYTES:
            break
        if attributes & CODEC_MASK != 0 or (magic_only >= 0 and magic != magic_only):
            break
        message_end = position + LENGTH_EXTRA_BYTES + length
        at = position + MESSAGE_ATTRIBUTES_POSITION + 1
        time = -1
        appended = 0
        if magic == 1:
            time = read_int(data, at, 8)
            at += 8
            appended = (attributes >> 3) & 1
            if wrapper_time >= -1:
                time, appended = wrapper_time, 1
        key_size = read_int(data, at, 4)
        at += 4
        if key_size > message_end - at - 4:
            break
        key_at = at
        at += max(key_size, 0)
        value_size = read_int(data, at, 4)
        at += 4
        if value_size > message_end - at or at + max(value_size, 0) != message_end:
            break
        if time > _TIME_LIMIT or time < -_TIME_LIMIT:
            break
        expected = read_int(data, position + MESSAGE_CRC_POSITION, 4) & _MAX32
        if crc32_of(data, position + MAGIC_POSITION, message_end) != expected:
            break
        if count == 0:
            base, latest = time, time
        key_size, value_size = max(key_size, -1), max(value_size, -1)
        body = 2 + varint_size(time - base) + varint_size(count)
        body += varint_size(key_size) + max(key_size, 0) + varint_size(value_size) + max(value_size, 0)
        to = put_varint(target, to, body)
        put_byte(target, to, 0)
        to = put_varint(target, to + 1, time - base)
        to = put_varint(target, to, count)
        to = put_varint(target, to, key_size)
        if key_size > 0:
            copy_bytes(target, to, data, key_at, key_size)
            to += key_size
        to = put_varint(target, to, value_size)
        if value_size > 0:
            copy_bytes(target, to, data, at, value_size)
            to += value_size
        put_byte(target, to, 0)
        to += 1
        latest = max(latest, time)
        state[APPENDED] = int(state[APPENDED]) | appended
        count += 1
        position = message_end
    state[COUNT] = count
    state[BASE_TIME] = base
    state[MAX_TIME] = latest
    state[READ_TO] = position
    state[WRITTEN_TO] = to
    return count - before


@kernel
def lower_records(
    data: Bytes,
    position: int,
    end: int,
    count: int,
    base_offset: int,
    base_time: int,
    appended: int,
    first_offset: int,
    magic: int,
    is_relative: int,
    target: Bytes,
    state: Ints,
) -> int:
    """Convert the records of a batch of magic 2, uncompressed in `data`, to messages of `magic` 0 or 1.

    Records below `first_offset` are left out; headers are dropped. If `appended`, `base_time` is the time of
    all records. If `is_relative`, offsets count from the offset of the first record. Returns 0, or 1 if the
    records do not follow the format or times have more than 62 bits.
    """
    to = 0
    kept = 0
    size = 0
    latest = 0
    last = 0
    fixed = LENGTH_EXTRA_BYTES + MESSAGE_LENGTH_MIN + 8 * magic
    if base_time > _TIME_LIMIT or base_time < -_TIME_LIMIT:
        return 1
    for index in range(count):
        number, position = read_unsigned(data, position, end)
        if position < 0 or number & 1 or (number >> 1) > end - position:
            return 1
        record_end = position + (number >> 1)
        if record_end - position < 1:
            return 1
        delta, position = read_unsigned_long(data, position + 1, record_end)
        if position < 0:
            return 1
        time = base_time
        if appended == 0:
            shift = ((delta >> 1) & _MAX63) ^ -(delta & 1)
            if shift > _TIME_LIMIT or shift < -_TIME_LIMIT:
                return 1
            time = base_time + shift
        number, position = read_unsigned(data, position, record_end)
        if position < 0:
            return 1
        offset = wrap64(base_offset + ((number >> 1) ^ -(number & 1)))
        number, position = read_unsigned(data, position, record_end)
        if position < 0:
            return 1
        key_at, key_size = position, -1
        if not number & 1:
            key_size = number >> 1
            if key_size > record_end - position:
                return 1
            position += key_size
        number, position = read_unsigned(data, position, record_end)
        if position < 0:
            return 1
        value_at, value_size = position, -1
        if not number & 1:
            value_size = number >> 1
            if value_size > record_end - position:
                return 1
            position += value_size
        if position >= record_end:
            return 1
        if byte_at(data, position) == 0:
            if position + 1 != record_end:
                return 1
        else:
            position = behind_headers(data, position, record_end)
            if position != record_end:
                return 1
        if index == 0:
            state[FIRST_OFFSET] = offset
            latest = time
        last = offset
        latest = max(latest, time)
        length = fixed + max(key_size, 0) + max(value_size, 0)
        size += length
        if offset >= first_offset:
            shown = offset
            if is_relative:
                shown = wrap64(offset - int(state[FIRST_OFFSET]))
            start = to
            put_big(target, start, shown, 8)
            put_big(target, start + LENGTH_POSITION, length - LENGTH_EXTRA_BYTES, 4)
            put_byte(target, start + MAGIC_POSITION, magic)
            put_byte(target, start + MESSAGE_ATTRIBUTES_POSITION, LOG_APPEND_BIT * appended * magic)
            to = start + MESSAGE_ATTRIBUTES_POSITION + 1
            if magic == 1:
                to = put_big(target, to, time, 8)
            to = put_big(target, to, key_size, 4)
            if key_size > 0:
                copy_bytes(target, to, data, key_at, key_size)
                to += key_size
            to = put_big(target, to, value_size, 4)
            if value_size > 0:
                copy_bytes(target, to, data, value_at, value_size)
                to += value_size
            crc = crc32_of(target, start + MAGIC_POSITION, to)
            put_big(target, start + MESSAGE_CRC_POSITION, crc, 4)
            kept += 1
        position = record_end
    if position != end:
        return 1
    state[LAST_OFFSET] = last
    state[LATEST] = latest
    state[KEPT] = kept
    state[SIZE] = size
    state[MESSAGES_TO] = to
    return 0


@kernel
def behind_headers(data: Bytes, position: int, end: int) -> int:
    """Return the position after the headers of a record, or -1 if they do not follow the format."""
    number, position = read_unsigned(data, position, end)
    if position < 0 or number & 1 or (number >> 1) > (end - position) >> 1:
        return -1
    for _ in range(number >> 1):
        size, position = read_unsigned(data, position, end)
        if position < 0 or size & 1 or (size >> 1) > end - position:
            return -1
        position += size >> 1
        size, position = read_unsigned(data, position, end)
        if position < 0:
            return -1
        if not size & 1:
            if (size >> 1) > end - position:
                return -1
            position += size >> 1
    return position
