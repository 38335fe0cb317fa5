"""Compiled loops for all formats, which check UTF-8, concatenate spans of bytes, and read decimals.

As in `penstock.records.kernels`, arguments are arrays and integers, and the callers check them.
"""

from __future__ import annotations

from penstock.records.kernels.compiled import (
    Bytes,
    Int32s,
    Ints,
    byte_at,
    copy_bytes,
    copy_word,
    kernel,
    put_byte,
    word_at,
    wrap64,
)

VARINT_BYTES_MAX = 10

# Why a row is no value of its schema. Every loop counts from 1; 0 is a row that was read.
CUT = 1
BAD_VARINT = 2
BAD_BRANCH = 3
BAD_TEXT = 4
TOO_DEEP = 5
TRAILING = 6
TOO_MANY = 7
UNRESOLVED = 8
BAD_SIZE = 9
BAD_BOOLEAN = 10
BAD_DECIMAL = 11
BAD_WIRE_TYPE = 12
BAD_TIME = 13

REASONS = {
    CUT: "the value ends too early",
    BAD_VARINT: "a number does not fit its type",
    BAD_BRANCH: "a union or enum has no such branch",
    BAD_TEXT: "a string is not UTF-8",
    TOO_DEEP: "the value is nested too deeply",
    TRAILING: "bytes are left behind the value",
    TOO_MANY: "a list has more items than its bytes can hold",
    UNRESOLVED: "it uses a branch or symbol that the reader's schema lacks",
    BAD_SIZE: "a size is negative",
    BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    BAD_DECIMAL: "a decimal has more than 16 bytes",
    BAD_WIRE_TYPE: "a field has another wire type than its schema says",
    BAD_TIME: "a time of day is negative, or not below 24 hours",
}
"""A dict from the code with which a loop rejects a row to the reason as text."""


@kernel
def is_utf8(data: Bytes, at: int, end: int) -> bool:
    """Return True if the bytes are valid UTF-8."""
    while at < end:
        if at + 8 <= end:
            if word_at(data, at) & -9187201950435737472 == 0:
                at += 8
                continue
        # The bytes behind the end are shifted out.
        elif at + 8 <= len(data) and (
            wrap64(word_at(data, at) << ((at + 8 - end) * 8)) & -9187201950435737472 == 0
        ):
            return True
        lead = byte_at(data, at)
        if lead < 0x80:
            at += 1
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if at + size > end:
            return False
        code = lead & (0x7F >> size)
        for index in range(1, size):
            byte = byte_at(data, at + index)
            if byte & 0xC0 != 0x80:
                return False
            code = (code << 6) | (byte & 0x3F)
        if (size == 3 and code < 0x800) or (size == 4 and code < 0x10000):
            return False
        if (0xD800 <= code < 0xE000) or code > 0x10FFFF:
            return False
        at += size
    return True


@kernel
def unsigned_varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Read a varint; return (the value as a 64-bit number, the position after the varint).

    The position is -1 if the varint does not end, and -2 if it has more than ten bytes or 64 bits.
    """
    number = 0
    shift = 0
    while at < end:
        byte = byte_at(data, at)
        at += 1
        if shift == 63 and byte > 1:
            return 0, -2
        number |= wrap64((byte & 0x7F) << shift)
        if byte < 0x80:
            return number, at
        shift += 7
    return 0, -1


@kernel
def copy_spans(
    data: Bytes, constants: Bytes, starts: Ints, sizes: Ints, count: int, ends: Int32s, target: Bytes
) -> None:
    """Copy spans of bytes to `target` one after another, from ``ends[0]`` on; store each end in `ends`.

    A negative start refers to the constants: -1 is their first byte.
    """
    to = int(ends[0])
    for index in range(count):
        start = starts[index]
        size = sizes[index]
        if start < 0:
            copy_bytes(target, to, constants, -1 - start, size)
        elif size > 32:
            copy_bytes(target, to, data, start, size)
        elif size >= 8:
            last = size - 8
            for step in range(0, last, 8):
                copy_word(target, to + step, data, start + step)
            copy_word(target, to + last, data, start + last)
        elif start + 8 <= len(data) and to + 8 <= len(target):
            copy_word(target, to, data, start)  # what is behind the span is written over by the next one
        else:
            for step in range(size):
                put_byte(target, to + step, byte_at(data, start + step))
        to += size
        ends[index + 1] = to


@kernel
def read_decimals(data: Bytes, constants: Bytes, starts: Ints, sizes: Ints, count: int, words: Ints) -> None:
    """Read big-endian two's complement integers of at most 16 bytes into pairs of low and high words."""
    for index in range(count):
        start = starts[index]
        size = sizes[index]
        low = 0
        high = 0
        if size > 0:
            first = byte_at(constants, -1 - start) if start < 0 else byte_at(data, start)
            if first >= 0x80:
                low = -1
                high = -1
        for step in range(size):
            byte = byte_at(constants, -1 - start + step) if start < 0 else byte_at(data, start + step)
            high = wrap64((high << 8) | ((low >> 56) & 0xFF))
            low = wrap64((low << 8) | byte)
        words[2 * index] = low
        words[2 * index + 1] = high
