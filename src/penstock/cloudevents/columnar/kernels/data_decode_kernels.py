"""Decodes event data that are encoded in an envelope: base64, and strings with escapes.

The decoded size is computed when the envelope is read. The data are decoded when the data column is built,
directly to their position in the column.
"""

from __future__ import annotations

from penstock.cloudevents.columnar.kernels.spans import IN_SIDE, copy_short
from penstock.cloudevents.columnar.kernels.texts import base64_digit
from penstock.records.kernels.compiled import Bytes, Int32s, byte_at, int_at, kernel, pointer, put_byte

IN_BASE64, IN_ESCAPES = 2, 4
"""Bits in a row's flags in `envelopes`: its data are base64 text, or a JSON string with escapes."""


@kernel
def decoded_size(data: Bytes, at: int, end: int) -> int:
    """Return the number of bytes that a well-formed base64 text encodes."""
    size = (end - at) // 4 * 3
    if size > 0 and byte_at(data, end - 1) == 0x3D:
        size -= 1
        if byte_at(data, end - 2) == 0x3D:
            size -= 1
    return size


@kernel
def put_decoded(target: Bytes, to: int, data: Bytes, at: int, size: int) -> None:
    """Decode base64 text, and write the resulting `size` bytes to the target."""
    end = to + size
    while to < end:
        word = base64_digit(byte_at(data, at)) << 18 | base64_digit(byte_at(data, at + 1)) << 12
        put_byte(target, to, word >> 16)
        if to + 1 < end:
            word |= base64_digit(byte_at(data, at + 2)) << 6
            put_byte(target, to + 1, word >> 8 & 0xFF)
        if to + 2 < end:
            word |= base64_digit(byte_at(data, at + 3))
            put_byte(target, to + 2, word & 0xFF)
        at += 4
        to += 3


@kernel
def hex_at(data: Bytes, at: int) -> int:
    """Return the number that the four hexadecimal digits at a position represent."""
    value = 0
    for place in range(at, at + 4):
        byte = byte_at(data, place)
        value = value << 4 | (byte - 0x30 if byte < 0x41 else (byte & 0x5F) - 0x37)
    return value


@kernel
def escape_at(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Decode the JSON escape whose letter is at `at`; return its character, and the position after it.

    The character is -1 for half a surrogate pair. The escape must be a valid JSON escape.
    """
    byte = byte_at(data, at)
    if byte != 0x75:  # u
        if byte == 0x62:
            return 0x08, at + 1
        if byte == 0x66:
            return 0x0C, at + 1
        if byte == 0x6E:
            return 0x0A, at + 1
        if byte == 0x72:
            return 0x0D, at + 1
        if byte == 0x74:
            return 0x09, at + 1
        return byte, at + 1
    code = hex_at(data, at + 1)
    at += 5
    if code < 0xD800 or code > 0xDFFF:
        return code, at
    if code > 0xDBFF or at + 6 > end or byte_at(data, at) != 0x5C or byte_at(data, at + 1) != 0x75:
        return -1, at
    low = hex_at(data, at + 2)
    if low < 0xDC00 or low > 0xDFFF:
        return -1, at
    return 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF), at + 6


@kernel
def utf8_size(code: int) -> int:
    """Return the number of bytes of a character in UTF-8."""
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


@kernel
def unescaped_size(data: Bytes, at: int, end: int) -> int:
    """Return the size in bytes of a JSON string with its escapes decoded, or -1 if it is not valid text."""
    size = 0
    while at < end:
        if byte_at(data, at) != 0x5C:
            at += 1
            size += 1
            continue
        code, at = escape_at(data, at + 1, end)
        if code < 0:
            return -1
        size += utf8_size(code)
    return size


@kernel
def put_unescaped(target: Bytes, to: int, data: Bytes, at: int, size: int) -> None:
    """Decode the escapes of a JSON string, and write the resulting `size` bytes to the target."""
    end = to + size
    while to < end:
        byte = byte_at(data, at)
        at += 1
        if byte != 0x5C:
            put_byte(target, to, byte)
            to += 1
            continue
        # What is undone was well-formed up to its end, which is at most six times as far away.
        code, at = escape_at(data, at, at + 6 * (end - to) + 6)
        width = utf8_size(code)
        if width == 1:
            put_byte(target, to, code)
        else:
            for place in range(to + width - 1, to, -1):
                put_byte(target, place, 0x80 | code & 0x3F)
                code >>= 6
            put_byte(target, to, (0xF00 >> width & 0xFF) | code)
        to += width


@kernel
def gather_data(
    records: Bytes,
    side: Bytes,
    places: Bytes,
    flags: Bytes,
    starts: Int32s,
    ends: Int32s,
    target: Bytes,
) -> None:
    """Copy or decode every row's data into the data column."""
    to_target, start_at, end_at = pointer(target), pointer(starts), pointer(ends)
    from_records, from_side = pointer(records), pointer(side)
    for row in range(len(starts)):
        to = int_at(end_at, row)
        size = int_at(end_at, row + 1) - to
        start = int_at(start_at, row)
        if places[row] == IN_SIDE:
            copy_short(to_target, to, from_side, start, size)
        elif flags[row] & IN_BASE64:
            put_decoded(to_target, to, from_records, start, size)
        elif flags[row] & IN_ESCAPES:
            put_unescaped(to_target, to, from_records, start, size)
        else:
            copy_short(to_target, to, from_records, start, size)
