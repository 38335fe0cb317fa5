"""The kernel that writes records as lines of JSON: escaped text, and base64 for bytes that are not UTF-8.

The rules are those of `decode_kernels`: arguments are arrays and integers, and callers check them. The target
has room for the maximum bytes of a line in every row.
"""

from __future__ import annotations

import numpy as np

from penstock.records.kernels.compiled import Bytes, Int32s, Ints, byte_at, copy_bytes, kernel, put_byte
from penstock.records.kernels.encode_kernels import bit_at

QUOTE = 0x22
BACKSLASH = 0x5C
COMMA = 0x2C

# What is in the table `ESCAPES` for a byte.
PLAIN, SHORT, LONG, WIDE = 0, 1, 2, 3
"""The kinds of bytes in JSON text: written unchanged; as a backslash and a letter; as a backslash, u and four
digits; part of a longer UTF-8 character.
"""


def _escapes() -> Bytes:
    """Return a table of 512 bytes: the kind of escape for each byte, then the letters of short escapes."""
    table = np.zeros(512, dtype=np.uint8)
    table[:32] = LONG
    table[128:256] = WIDE
    for character, letter in (("\b", "b"), ("\f", "f"), ("\n", "n"), ("\r", "r"), ("\t", "t"), ('"', '"')):
        table[ord(character)], table[256 + ord(character)] = SHORT, ord(letter)
    table[BACKSLASH], table[256 + BACKSLASH] = SHORT, BACKSLASH
    return table


ESCAPES = _escapes()
HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8).copy()
BASE64 = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8
).copy()

NULL = np.frombuffer(b"null", dtype=np.uint8).copy()
KEY = np.frombuffer(b',"key":', dtype=np.uint8).copy()
KEY_BASE64 = np.frombuffer(b',"key_base64":', dtype=np.uint8).copy()
PAYLOAD = np.frombuffer(b',"payload":', dtype=np.uint8).copy()
PAYLOAD_BASE64 = np.frombuffer(b',"payload_base64":', dtype=np.uint8).copy()
HEADERS = np.frombuffer(b',"headers":[', dtype=np.uint8).copy()
HEADERS_BASE64 = np.frombuffer(b'],"headers_base64":[', dtype=np.uint8).copy()

LINE_BYTES = 256
"""An upper limit for the bytes of a JSON line, not counting the line's head, key, value and headers."""

HEADER_BYTES = 32
"""An upper limit for the bytes of a header's punctuation in JSON, written as text and as base64."""

GROWTH = 8
"""An upper limit for the ratio of output to input bytes: six for escaped text, plus four thirds for
base64.
"""


@kernel
def put_number(target: Bytes, at: int, number: int) -> int:
    """Write a number in decimal digits; return the position after it."""
    if number < 0:
        put_byte(target, at, 0x2D)
        at += 1
        if number == -(1 << 63):  # has no opposite in 64 bits
            put_byte(target, at, 0x39)
            at += 1
            number = 223372036854775808
        else:
            number = -number
    size = 1
    rest = number // 10
    while rest:
        rest //= 10
        size += 1
    position = at + size
    while position > at:
        position -= 1
        put_byte(target, position, 0x30 + number % 10)
        number //= 10
    return at + size


@kernel
def sequence_size(data: Bytes, at: int, end: int) -> int:
    """Return the size of the UTF-8 character at `at`, or the negative number of invalid bytes there.

    The invalid bytes are the longest beginning of a character, as in Unicode (3.9, "U+FFFD Substitution of
    Maximal Subparts") and in Python's ``errors="replace"``.
    """
    lead = byte_at(data, at)
    low, high = 0x80, 0xBF
    if 0xC2 <= lead <= 0xDF:
        size = 2
    elif 0xE0 <= lead <= 0xEF:
        size = 3
        if lead == 0xE0:
            low = 0xA0
        elif lead == 0xED:
            high = 0x9F
    elif 0xF0 <= lead <= 0xF4:
        size = 4
        if lead == 0xF0:
            low = 0x90
        elif lead == 0xF4:
            high = 0x8F
    else:
        return -1
    for index in range(1, size):
        if at + index >= end:
            return -index
        following = byte_at(data, at + index)
        if following < low or following > high:
            return -index
        low, high = 0x80, 0xBF
    return size


@kernel
def put_text(target: Bytes, at: int, data: Bytes, begin: int, end: int) -> int:
    """Write bytes as a JSON string; return the position after it, negated if any are not UTF-8."""
    is_exact = True
    put_byte(target, at, QUOTE)
    at += 1
    position = begin
    while position < end:
        start = position
        kind = PLAIN
        while position < end:
            kind = byte_at(ESCAPES, byte_at(data, position))
            if kind != PLAIN:
                break
            position += 1
        if position > start:
            copy_bytes(target, at, data, start, position - start)
            at += position - start
        if position == end:
            break
        found = byte_at(data, position)
        if kind == WIDE:
            size = sequence_size(data, position, end)
            if size > 0:
                for index in range(size):
                    put_byte(target, at + index, byte_at(data, position + index))
                at += size
                position += size
            else:
                is_exact = False
                put_byte(target, at, 0xEF)
                put_byte(target, at + 1, 0xBF)
                put_byte(target, at + 2, 0xBD)
                at += 3
                position -= size
            continue
        put_byte(target, at, BACKSLASH)
        if kind == SHORT:
            put_byte(target, at + 1, byte_at(ESCAPES, 256 + found))
            at += 2
        else:
            put_byte(target, at + 1, 0x75)
            put_byte(target, at + 2, 0x30)
            put_byte(target, at + 3, 0x30)
            put_byte(target, at + 4, byte_at(HEX, found >> 4))
            put_byte(target, at + 5, byte_at(HEX, found & 15))
            at += 6
        position += 1
    put_byte(target, at, QUOTE)
    at += 1
    return at if is_exact else -at


@kernel
def put_base64(target: Bytes, at: int, data: Bytes, begin: int, end: int) -> int:
    """Write bytes as a JSON string of base64 (RFC 4648, section 4); return the position after it."""
    put_byte(target, at, QUOTE)
    at += 1
    position = begin
    while position < end:
        left = end - position
        bits = byte_at(data, position) << 16
        if left > 1:
            bits |= byte_at(data, position + 1) << 8
        if left > 2:
            bits |= byte_at(data, position + 2)
        put_byte(target, at, byte_at(BASE64, (bits >> 18) & 63))
        put_byte(target, at + 1, byte_at(BASE64, (bits >> 12) & 63))
        put_byte(target, at + 2, byte_at(BASE64, (bits >> 6) & 63) if left > 1 else 0x3D)
        put_byte(target, at + 3, byte_at(BASE64, bits & 63) if left > 2 else 0x3D)
        at += 4
        position += 3
    put_byte(target, at, QUOTE)
    return at + 1


@kernel
def put_literal(target: Bytes, at: int, literal: Bytes) -> int:
    """Write bytes unchanged; return the position after them."""
    copy_bytes(target, at, literal, 0, literal.size)
    return at + literal.size


@kernel
def put_field(
    target: Bytes,
    at: int,
    name: Bytes,
    name_base64: Bytes,
    data: Bytes,
    begin: int,
    end: int,
    is_null: int,
) -> int:
    """Write a key or value as text, and as base64 too if it is not UTF-8; return the position after it."""
    at = put_literal(target, at, name)
    if is_null:
        return put_literal(target, at, NULL)
    at = put_text(target, at, data, begin, end)
    if at < 0:
        at = put_literal(target, -at, name_base64)
        at = put_base64(target, at, data, begin, end)
    return at


@kernel
def put_headers(
    target: Bytes,
    at: int,
    first: int,
    last: int,
    names: Bytes,
    name_ends: Int32s,
    values: Bytes,
    value_ends: Int32s,
    value_bits: Bytes,
    value_bit: int,
) -> int:
    """Write headers `first` to before `last` as JSON; return the position after them.

    Names and values alternate. A name or value that is not UTF-8 is written in base64, too.
    """
    is_exact = True
    at = put_literal(target, at, HEADERS)
    for header in range(first, last):
        if header > first:
            put_byte(target, at, COMMA)
            at += 1
        at = put_text(target, at, names, name_ends[header], name_ends[header + 1])
        put_byte(target, at, COMMA)
        at += 1
        if value_bits.size and not bit_at(value_bits, header + value_bit):
            at = put_literal(target, at, NULL)
        else:
            at = put_text(target, at, values, value_ends[header], value_ends[header + 1])
            if at < 0:
                is_exact = False
                at = -at
    if not is_exact:
        at = put_literal(target, at, HEADERS_BASE64)
        for header in range(first, last):
            if header > first:
                put_byte(target, at, COMMA)
                at += 1
            at = put_text(target, at, names, name_ends[header], name_ends[header + 1])
            put_byte(target, at, COMMA)
            at += 1
            if value_bits.size and not bit_at(value_bits, header + value_bit):
                at = put_literal(target, at, NULL)
            else:
                at = put_base64(target, at, values, value_ends[header], value_ends[header + 1])
    put_byte(target, at, 0x5D)
    return at + 1


@kernel
def put_lines(
    target: Bytes,
    head: Bytes,
    kinds: Bytes,
    kind_ends: Ints,
    first: int,
    last: int,
    offsets: Ints,
    timestamps: Ints,
    types: Int32s,
    keys: Bytes,
    key_ends: Int32s,
    key_bits: Bytes,
    key_bit: int,
    values: Bytes,
    value_ends: Int32s,
    value_bits: Bytes,
    value_bit: int,
    header_ends: Int32s,
    names: Bytes,
    name_ends: Int32s,
    header_values: Bytes,
    header_value_ends: Int32s,
    header_bits: Bytes,
    header_bit: int,
) -> int:
    """Write rows `first` to before `last` as lines of JSON; return the number of bytes written.

    Each line begins with `head`, followed by the offset. `kinds` has the text between offset and timestamp
    for each timestamp type from -1 on; `kind_ends` has the end positions of these texts.
    """
    at = 0
    for row in range(first, last):
        at = put_literal(target, at, head)
        at = put_number(target, at, offsets[row])
        kind = types[row] + 1
        start = kind_ends[kind - 1] if kind else 0
        copy_bytes(target, at, kinds, start, kind_ends[kind] - start)
        at += kind_ends[kind] - start
        at = put_number(target, at, timestamps[row])
        is_null = 1 if key_bits.size and not bit_at(key_bits, row + key_bit) else 0
        at = put_field(target, at, KEY, KEY_BASE64, keys, key_ends[row], key_ends[row + 1], is_null)
        is_null = 1 if value_bits.size and not bit_at(value_bits, row + value_bit) else 0
        at = put_field(
            target, at, PAYLOAD, PAYLOAD_BASE64, values, value_ends[row], value_ends[row + 1], is_null
        )
        if header_ends[row + 1] > header_ends[row]:
            at = put_headers(
                target,
                at,
                header_ends[row],
                header_ends[row + 1],
                names,
                name_ends,
                header_values,
                header_value_ends,
                header_bits,
                header_bit,
            )
        put_byte(target, at, 0x7D)
        put_byte(target, at + 1, 0x0A)
        at += 2
    return at
