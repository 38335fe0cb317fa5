"""Compiled checks of attribute texts, which return True only if a text is certainly valid.

Every function takes a pointer, and checks the bytes from `at` to `end`. True means that the functions for one
event, which are authoritative, accept the text, too. False means that they must decide: the text is invalid,
or has a rare form that is not implemented twice (IP literals in a URI, quoted media type parameters, leap
seconds).
"""

from __future__ import annotations

import numpy as np

from penstock.cloudevents.grammar import (
    DIGITS,
    HEX_DIGITS,
    LETTERS,
    PATH_MARKS,
    SCHEME_MARKS,
    SUB_DELIMITERS,
    TOKEN_MARKS,
    UNRESERVED_MARKS,
)
from penstock.records.kernels.compiled import (
    Bytes,
    Int32s,
    byte_at,
    int_at,
    kernel,
    pointer,
    put_int,
    word_at,
)

# Character classes, one bit each.
ALPHA, DIGIT, HEX, TOKEN, UNRESERVED, PCHAR, SCHEME = 1, 2, 4, 8, 16, 32, 64


def _classes() -> Bytes:
    table = np.zeros(256, np.uint8)
    alphanumeric, in_any_part = LETTERS + DIGITS, LETTERS + DIGITS + UNRESERVED_MARKS + SUB_DELIMITERS
    for characters, bit in (
        (LETTERS, ALPHA),
        (DIGITS, DIGIT),
        (HEX_DIGITS, HEX),
        (alphanumeric + TOKEN_MARKS, TOKEN),
        (in_any_part, UNRESERVED),
        (in_any_part + PATH_MARKS, PCHAR),
        (alphanumeric + SCHEME_MARKS, SCHEME),
    ):
        for character in characters:
            table[ord(character)] |= bit
    return table


_CLASS = _classes()
_JSON = np.frombuffer(b"json", np.uint8).copy()

TOP_BITS = -0x7F7F7F7F7F7F7F80
ONES, DELETES = 0x0101010101010101, 0x7F7F7F7F7F7F7F7F
"""Words of eight equal bytes: 0x01, and 0x7F (the control character DEL)."""
KNOWN_TEXTS = 512
"""The number of entries in a table of texts already found valid. Sources and media types repeat from row to
row, and are found there without a new check.
"""
KNOWN_SOURCES, KNOWN_MEDIA_TYPES = 0, 1


@kernel
def class_of(byte: int) -> int:
    """Return the character classes to which an ASCII byte belongs, as bits."""
    return byte_at(pointer(_CLASS), byte)


@kernel
def same_bytes(left: Bytes, at: int, right: Bytes, start: int, size: int) -> bool:
    """Return True if the `size` bytes at two positions are equal."""
    index = 0
    while index + 8 <= size:
        if word_at(left, at + index) != word_at(right, start + index):
            return False
        index += 8
    while index < size and byte_at(left, at + index) == byte_at(right, start + index):
        index += 1
    return index == size


@kernel
def is_plain(word: int) -> bool:
    """Return True if all eight bytes of a word are printable ASCII."""
    # None above 0x7F; then subtracting cannot reach from one byte into the next unless a byte is below
    # what is subtracted, and such a byte sets its own top bit. Adding could pass the greatest number,
    # which compiled code takes for impossible.
    if word & TOP_BITS:
        return False
    return ((word - 0x2020202020202020) | ((word ^ DELETES) - ONES)) & TOP_BITS == 0


@kernel
def has_no(byte_eight_times: int, plain_word: int) -> bool:
    """Return True if none of a word's eight ASCII bytes is the byte of which `byte_eight_times` consists."""
    return ((plain_word ^ byte_eight_times) - ONES) & TOP_BITS == 0


@kernel
def skip_plain(data: Bytes, at: int, end: int) -> int:
    """Return the position after whole 8-byte words of printable ASCII."""
    while at + 8 <= end and is_plain(word_at(data, at)):
        at += 8
    return at


@kernel
def character(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the code point of the non-ASCII UTF-8 sequence at `at`, and its size; (-1, 0) if invalid."""
    lead = byte_at(data, at)
    if lead < 0xC2 or lead > 0xF4:
        return -1, 0
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if at + size > end:
        return -1, 0
    code = lead & (0x7F >> size)
    for index in range(1, size):
        byte = byte_at(data, at + index)
        if byte & 0xC0 != 0x80:
            return -1, 0
        code = (code << 6) | (byte & 0x3F)
    too_long = (size == 3 and code < 0x800) or (size == 4 and code < 0x10000)
    if too_long or (0xD800 <= code < 0xE000) or code > 0x10FFFF:
        return -1, 0
    return code, size


@kernel
def is_string(data: Bytes, at: int, end: int) -> bool:
    """Return True if the bytes are UTF-8 without the characters that rule T3 forbids."""
    at = skip_plain(data, at, end)
    while at < end:
        byte = byte_at(data, at)
        if byte < 0x80:
            if byte < 0x20 or byte == 0x7F:
                return False
            at += 1
        else:
            code, size = character(data, at, end)
            if code < 0xA0 or (0xFDD0 <= code <= 0xFDEF) or code & 0xFFFE == 0xFFFE:
                return False
            at += size
    return True


@kernel
def skip_class(data: Bytes, at: int, end: int, bit: int) -> int:
    """Return the position after all characters of one character class, from the position `at` on."""
    while at < end and class_of(byte_at(data, at)) & bit:
        at += 1
    return at


@kernel
def skip_uri_part(data: Bytes, at: int, end: int, bit: int) -> int:
    """Skip characters of a class and percent-encoded bytes; return the position after them.

    Returns -1 if a percent-encoded byte is malformed.
    """
    while at < end:
        byte = byte_at(data, at)
        if byte == 0x25:  # %
            if at + 2 >= end:
                return -1
            if not (class_of(byte_at(data, at + 1)) & HEX and class_of(byte_at(data, at + 2)) & HEX):
                return -1
            at += 3
        elif class_of(byte) & bit:
            at += 1
        else:
            break
    return at


@kernel
def skip_authority(data: Bytes, at: int, end: int) -> int:
    """Return the position after the ``user@host:port`` that begins at `at`, or -1 if it is malformed."""
    users = 0
    while True:
        at = skip_uri_part(data, at, end, UNRESERVED)
        if at < 0:
            return -1
        if at == end or byte_at(data, at) in (0x2F, 0x3F, 0x23):  # / ? #
            return at
        mark = byte_at(data, at)
        if mark == 0x40 and users == 0:  # @
            users = 1
            at += 1
            continue
        if mark != 0x3A:  # :
            return -1
        port = skip_class(data, at + 1, end, DIGIT)
        if port == end or byte_at(data, port) in (0x2F, 0x3F, 0x23):
            return port
        # No port, so it must be user information: anything up to an @.
        while at < end and at >= 0 and byte_at(data, at) == 0x3A:
            at = skip_uri_part(data, at + 1, end, UNRESERVED)
        if at < 0 or at == end or byte_at(data, at) != 0x40 or users:
            return -1
        users = 1
        at += 1


@kernel
def is_uri(data: Bytes, at: int, end: int, absolute: bool) -> bool:
    """Return True if the bytes are a URI-reference (T6), or with `absolute` a URI with a scheme (T5)."""
    scheme = False
    if at < end and class_of(byte_at(data, at)) & ALPHA:
        colon = skip_class(data, at, end, SCHEME)
        if colon < end and byte_at(data, colon) == 0x3A:
            scheme = True
            at = colon + 1
    if absolute and not scheme:
        return False
    if at + 1 < end and byte_at(data, at) == 0x2F and byte_at(data, at + 1) == 0x2F:
        at = skip_authority(data, at + 2, end)
        if at < 0:
            return False
    first_segment = not scheme
    while at < end:
        start = at
        at = skip_uri_part(data, at, end, PCHAR)
        if at < 0:
            return False
        if first_segment:
            # Before the first slash of a relative path a colon would read as a scheme.
            for place in range(start, at):
                if byte_at(data, place) == 0x3A:
                    return False
            first_segment = False
        if at == end or byte_at(data, at) != 0x2F:
            break
        at += 1
    if at < end and byte_at(data, at) == 0x3F:
        at = skip_query(data, at + 1, end)
    if 0 <= at < end and byte_at(data, at) == 0x23:
        at = skip_query(data, at + 1, end)
    return at == end


@kernel
def skip_query(data: Bytes, at: int, end: int) -> int:
    """Return the position after a query or fragment, or -1 if it is malformed."""
    while at < end:
        at = skip_uri_part(data, at, end, PCHAR)
        if at < 0 or at == end or byte_at(data, at) not in (0x2F, 0x3F):
            break
        at += 1
    return at


@kernel
def is_media_type(data: Bytes, at: int, end: int) -> bool:
    """Return True if the bytes are a media type whose parameters are tokens (rule C13)."""
    place = skip_class(data, at, end, TOKEN)
    if place in (at, end) or byte_at(data, place) != 0x2F:
        return False
    at = place + 1
    place = skip_class(data, at, end, TOKEN)
    if place == at:
        return False
    at = place
    while at < end:
        at = skip_blanks(data, at, end)
        if at == end:
            return True
        if byte_at(data, at) != 0x3B:  # ;
            return False
        at = skip_blanks(data, at + 1, end)
        place = skip_class(data, at, end, TOKEN)
        if place in (at, end) or byte_at(data, place) != 0x3D:  # =
            return False
        at = place + 1
        place = skip_class(data, at, end, TOKEN)
        if place == at:
            return False
        at = place
    return True


@kernel
def skip_blanks(data: Bytes, at: int, end: int) -> int:
    """Return the position after the spaces and tabs that begin at `at`."""
    while at < end and (byte_at(data, at) == 0x20 or byte_at(data, at) == 0x09):
        at += 1
    return at


@kernel
def lower(byte: int) -> int:
    """Return an ASCII letter in lower case, and any other byte unchanged."""
    if 0x41 <= byte <= 0x5A:
        return byte + 0x20
    return byte


@kernel
def same_letters(data: Bytes, at: int, known: Bytes, size: int) -> bool:
    """Return True if the bytes equal `known`, a lower-case text, ignoring case."""
    index = 0
    while index < size and lower(byte_at(data, at + index)) == byte_at(known, index):
        index += 1
    return index == size


@kernel
def is_json_type(data: Bytes, at: int, end: int) -> bool:
    """Return True if a media type announces JSON (rule J7)."""
    stop = at
    while stop < end and byte_at(data, stop) != 0x3B:
        stop += 1
    while stop > at and (byte_at(data, stop - 1) == 0x20 or byte_at(data, stop - 1) == 0x09):
        stop -= 1
    if stop - at < 6:
        return False
    before = byte_at(data, stop - 5)
    return before in (0x2F, 0x2B) and same_letters(data, stop - 4, pointer(_JSON), 4)  # / or +


@kernel
def is_integer(data: Bytes, at: int, end: int) -> bool:
    """Return True if the bytes are a canonical Integer of at most nine digits (rule T2)."""
    if at < end and byte_at(data, at) == 0x2D:
        at += 1
        if at < end and byte_at(data, at) == 0x30:
            return False
    size = end - at
    if size < 1 or size > 9 or (size > 1 and byte_at(data, at) == 0x30):
        return False
    return skip_class(data, at, end, DIGIT) == end


@kernel
def is_boolean(data: Bytes, at: int, end: int) -> bool:
    """Return True if the bytes are ``true`` or ``false`` (rule T1)."""
    if end - at == 4:
        word = (byte_at(data, at) << 24) | (byte_at(data, at + 1) << 16)
        return word | (byte_at(data, at + 2) << 8) | byte_at(data, at + 3) == 0x74727565
    if end - at != 5 or byte_at(data, at) != 0x66:
        return False
    word = (byte_at(data, at + 1) << 24) | (byte_at(data, at + 2) << 16)
    return word | (byte_at(data, at + 3) << 8) | byte_at(data, at + 4) == 0x616C7365


@kernel
def base64_digit(byte: int) -> int:
    """Return the six bits of a character of the standard base64 alphabet, or -1 for other characters."""
    if 0x41 <= byte <= 0x5A:
        return byte - 0x41
    if 0x61 <= byte <= 0x7A:
        return byte - 0x61 + 26
    if 0x30 <= byte <= 0x39:
        return byte - 0x30 + 52
    if byte == 0x2B:
        return 62
    if byte == 0x2F:
        return 63
    return -1


@kernel
def is_base64(data: Bytes, at: int, end: int) -> bool:
    """Return True if the bytes are canonical base64 text with its padding (rule T4)."""
    if (end - at) % 4:
        return False
    if at == end:
        return True
    padding = 0
    if byte_at(data, end - 1) == 0x3D:
        padding = 2 if byte_at(data, end - 2) == 0x3D else 1
    digit = 0
    for place in range(at, end - padding):
        digit = base64_digit(byte_at(data, place))
        if digit < 0:
            return False
    stray = 0 if padding == 0 else 0x03 if padding == 1 else 0x0F
    return digit & stray == 0


@kernel
def known_place(data: Bytes, at: int, size: int) -> int:
    """Return the index of a text in a table of known texts: a hash of its size and last bytes."""
    word = word_at(data, at + size - 8) if size >= 8 else byte_at(data, at + size - 1) if size > 0 else 0
    # Shifted apart, so that the digits of texts that count up do not cancel each other.
    mixed = (
        (word >> 56) ^ ((word >> 48 & 0xFF) << 4) ^ ((word >> 40 & 0xFF) << 2) ^ ((word >> 32 & 0xFF) << 1)
    )
    return (mixed ^ size) & (KNOWN_TEXTS - 1)


@kernel
def is_known(known: Int32s, table: int, data: Bytes, at: int, size: int) -> bool:
    """Return True if the table `known` has an equal text, which was found valid before."""
    place = (table * KNOWN_TEXTS + known_place(data, at, size)) * 2
    return int_at(known, place + 1) == size and same_bytes(data, at, data, int_at(known, place), size)


@kernel
def remember(known: Int32s, table: int, data: Bytes, at: int, size: int) -> None:
    """Store in the table `known` that a text is valid."""
    place = (table * KNOWN_TEXTS + known_place(data, at, size)) * 2
    put_int(known, place, at)
    put_int(known, place + 1, size)
