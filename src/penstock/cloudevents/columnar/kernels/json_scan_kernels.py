"""Compiled loops over JSON text: each checks and skips one element, and returns the position after it.

Positions are -1 if the text is not JSON, or is nested deeper than `DEPTH_MAX`.
"""

from __future__ import annotations

import numpy as np

from penstock.cloudevents.columnar.kernels.texts import (
    DELETES,
    DIGIT,
    HEX,
    ONES,
    TOP_BITS,
    character,
    lower,
    same_bytes,
    skip_class,
)
from penstock.records.kernels.compiled import Bytes, byte_at, first_marked, kernel, pointer, word_at

# What a string is made of, as bits.
PLAIN, WIDE, ESCAPED = 0, 1, 2
QUOTES, BACKSLASHES = 0x2222222222222222, 0x5C5C5C5C5C5C5C5C
BLANKS = 0x2020202020202020

# What the first character of a JSON value makes of it.
STRING, NUMBER, TRUE, FALSE, NULL, CONTAINER, TEXT_WITH_ESCAPES, BASE64_TEXT = range(8)
_WORDS = np.frombuffer(b"truefalsenull", np.uint8).copy()
DEPTH_MAX = 60
"""The greatest nesting depth that the loops check; deeper JSON is left to `from_record`. The kinds of the
open brackets are bits of one integer."""


@kernel
def marked(word: int) -> int:
    """Return a mask of the first of eight bytes that is special in a JSON string; 0 if none is special.

    The lowest set top bit marks the byte: a quote, a backslash, a control character or not ASCII. Top bits of
    later bytes may be set, too.
    """
    low = word & DELETES  # not negative, so that subtracting stays within 64 bits
    marks = ((low ^ QUOTES) - ONES) | ((low ^ BACKSLASHES) - ONES) | ((low ^ DELETES) - ONES)
    return (marks | (low - BLANKS) | word) & TOP_BITS


@kernel
def skip_spaces(data: Bytes, at: int, end: int) -> int:
    """Return the position after JSON white space."""
    while at < end:
        byte = byte_at(data, at)
        if byte > 0x20 or (byte != 0x20 and byte != 0x0A and byte != 0x0D and byte != 0x09):
            break
        at += 1
    return at


@kernel
def skip_string(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the position after a string whose first character is at `at`, and the kind of its content.

    The kind is PLAIN (printable ASCII), WIDE (other characters too) or ESCAPED (escapes too). The position is
    -1 if the string does not end, is not UTF-8, or has an invalid escape.
    """
    made_of = PLAIN
    while at < end:
        if at + 8 <= end:
            marks = marked(word_at(data, at))
            if marks == 0:
                at += 8
                continue
            at += first_marked(marks)
        byte = byte_at(data, at)
        if byte >= 0x7F:
            made_of |= WIDE
            size = 1
            if byte > 0x7F:
                code, size = character(data, at, end)
                if code < 0:
                    return -1, made_of
            at += size
        elif byte == 0x22:
            return at + 1, made_of
        elif byte == 0x5C:
            made_of |= ESCAPED
            at = skip_escape(data, at + 1, end)
            if at < 0:
                return -1, made_of
        elif byte < 0x20:
            return -1, made_of
        else:
            at += 1
    return -1, made_of


@kernel
def skip_escape(data: Bytes, at: int, end: int) -> int:
    """Return the position after the escape whose letter is at `at`, or -1 if the escape is invalid."""
    if at >= end:
        return -1
    byte = byte_at(data, at)
    if byte == 0x75:  # u
        if at + 5 > end or skip_class(data, at + 1, at + 5, HEX) != at + 5:
            return -1
        return at + 5
    return at + 1 if byte in (0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74) else -1


@kernel
def skip_number(data: Bytes, at: int, end: int) -> int:
    """Return the position after the number that begins at `at`, or -1 if it is invalid."""
    if byte_at(data, at) == 0x2D:
        at += 1
    start = at
    at = skip_class(data, at, end, DIGIT)
    if at == start or (at - start > 1 and byte_at(data, start) == 0x30):
        return -1
    if at < end and byte_at(data, at) == 0x2E:
        start = at + 1
        at = skip_class(data, start, end, DIGIT)
        if at == start:
            return -1
    if at < end and lower(byte_at(data, at)) == 0x65:
        at += 1
        if at < end and (byte_at(data, at) == 0x2B or byte_at(data, at) == 0x2D):
            at += 1
        start = at
        at = skip_class(data, start, end, DIGIT)
        if at == start:
            return -1
    return at


@kernel
def skip_scalar(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the position after a string, number or literal (-1 if invalid), and the kind of the value."""
    byte = byte_at(data, at)
    if byte == 0x22:
        return skip_string(data, at + 1, end)[0], STRING
    word, size, kind = 0, 4, TRUE
    if byte == 0x66:
        word, size, kind = 4, 5, FALSE
    elif byte == 0x6E:
        word, size, kind = 9, 4, NULL
    elif byte != 0x74:
        return skip_number(data, at, end), NUMBER
    if at + size > end or not same_bytes(data, at, pointer(_WORDS), word, size):
        return -1, kind
    return at + size, kind


@kernel
def skip_value(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Check any JSON value completely; return the position after it (-1 if invalid), and its kind."""
    if at >= end:
        return -1, CONTAINER
    byte = byte_at(data, at)
    if byte != 0x7B and byte != 0x5B:
        return skip_scalar(data, at, end)
    objects = 0  # bit d: the bracket open at depth d is a brace
    depth = 0
    while True:
        # A value begins here.
        byte = byte_at(data, at)
        if byte == 0x7B or byte == 0x5B:
            if depth == DEPTH_MAX:
                return -1, CONTAINER
            depth += 1
            objects = (objects << 1) | (byte == 0x7B)
            at = skip_spaces(data, at + 1, end)
            if at < end and byte_at(data, at) == (0x7D if objects & 1 else 0x5D):
                at += 1
                depth -= 1
                objects >>= 1
            else:
                if objects & 1:
                    at = skip_name(data, at, end)
                if at < 0 or at >= end:
                    return -1, CONTAINER
                continue
        else:
            at, _ = skip_scalar(data, at, end)
            if at < 0:
                return -1, CONTAINER
        # A value ended here: close brackets, or go to the next value.
        while True:
            if depth == 0:
                return at, CONTAINER
            at = skip_spaces(data, at, end)
            if at >= end:
                return -1, CONTAINER
            byte = byte_at(data, at)
            at += 1
            if byte == 0x2C:
                break
            if byte != (0x7D if objects & 1 else 0x5D):
                return -1, CONTAINER
            depth -= 1
            objects >>= 1
        at = skip_spaces(data, at, end)
        if objects & 1:
            at = skip_name(data, at, end)
        if at < 0 or at >= end:
            return -1, CONTAINER


@kernel
def skip_name(data: Bytes, at: int, end: int) -> int:
    """Return the position of a member's value, after its name and colon, or -1 if these are invalid."""
    if at >= end or byte_at(data, at) != 0x22:
        return -1
    at, _ = skip_string(data, at + 1, end)
    if at < 0:
        return -1
    at = skip_spaces(data, at, end)
    if at >= end or byte_at(data, at) != 0x3A:
        return -1
    return skip_spaces(data, at + 1, end)
