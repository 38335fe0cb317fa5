"""The loop that writes structured records, row by row, each from its opening to its closing brace.

Texts are copied in blocks of sixteen bytes, and may be copied a little too far: the following bytes of the
row, or the next row, overwrite the excess. The maximum size of a batch is computed in advance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.cloudevents.columnar.kernels.header_read_kernels import BOOLEAN_KIND, INTEGER_KIND, kind_of
from penstock.cloudevents.columnar.kernels.json_scan_kernels import BACKSLASHES, QUOTES
from penstock.cloudevents.columnar.kernels.spans import copy_short
from penstock.cloudevents.columnar.kernels.texts import has_no, is_plain
from penstock.cloudevents.columnar.kernels.validate_kernels import BASE64, NO_DATA, QUOTED, VERBATIM
from penstock.records.kernels.compiled import (
    Bytes,
    Int32s,
    byte_at,
    bytes_of,
    copy_bytes,
    copy_sixteen,
    copy_word,
    int_at,
    ints_of,
    kernel,
    pointer,
    put_byte,
    word_at,
)

_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
).copy()
_SHORT_ESCAPES = np.frombuffer(b"btn\0fr", np.uint8).copy()
"""The letters that represent U+0008 to U+000D after a backslash; U+000B has no letter."""
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_DATA = np.frombuffer(b',"data":', np.uint8).copy()
_DATA_BASE64 = np.frombuffer(b',"data_base64":"', np.uint8).copy()

QUOTE, BACKSLASH, COMMA, COLON, CLOSING_BRACE = 0x22, 0x5C, 0x2C, 0x3A, 0x7D

PREFIX_BYTES = 32
"""The size of the array for the bytes before an attribute's text: quote, comma, name and colon, padded to
this length."""
SLACK_BYTES = 32
"""The bytes of free space needed after the last row, because copies may write a little too far."""
LONG_TEXT_BYTES = 256

# What is to know of a column: the size of its buffer and of its prefix; is a null in it; has it no escapes?
BUFFER_SIZE, PREFIX_SIZE, HAS_NULLS, AS_IT_IS = range(4)
FACTS = 4


@kernel
def skip_unquoted(data: Bytes, at: int, end: int) -> int:
    """Skip 8-byte words of text that need no escapes in a JSON string; return the position after them."""
    while at + 8 <= end:
        word = word_at(data, at)
        if not (is_plain(word) and has_no(QUOTES, word) and has_no(BACKSLASHES, word)):
            break
        at += 8
    return at


@kernel
def quoted_size(data: Bytes, at: int, end: int) -> int:
    """Return the number of bytes of a text inside JSON quotes, with its escapes."""
    size = end - at
    while at < end:
        at = skip_unquoted(data, at, end)
        if at == end:
            break
        byte = byte_at(data, at)
        if byte < 0x20:
            size += 1 if 0x08 <= byte <= 0x0D and byte != 0x0B else 5
        elif byte in (QUOTE, BACKSLASH):
            size += 1
        at += 1
    return size


@kernel
def put_quoted(target: Bytes, to: int, data: Bytes, at: int, end: int) -> int:
    """Write a text with the escapes that JSON needs; return the position after it."""
    while at < end:
        while at + 8 <= end:
            word = word_at(data, at)
            if not (is_plain(word) and has_no(QUOTES, word) and has_no(BACKSLASHES, word)):
                break
            copy_word(target, to, data, at)
            at += 8
            to += 8
        if at == end:
            break
        byte = byte_at(data, at)
        at += 1
        if byte >= 0x20 and byte != QUOTE and byte != BACKSLASH:
            put_byte(target, to, byte)
            to += 1
            continue
        put_byte(target, to, BACKSLASH)
        if byte >= 0x20:
            put_byte(target, to + 1, byte)
            to += 2
        elif 0x08 <= byte <= 0x0D and byte != 0x0B:
            put_byte(target, to + 1, byte_at(pointer(_SHORT_ESCAPES), byte - 8))
            to += 2
        else:
            put_byte(target, to + 1, 0x75)
            put_byte(target, to + 2, 0x30)
            put_byte(target, to + 3, 0x30)
            put_byte(target, to + 4, 0x30 + (byte >> 4))
            put_byte(target, to + 5, byte_at(pointer(_HEX), byte & 0x0F))
            to += 6
    return to


@kernel
def put_base64(target: Bytes, to: int, data: Bytes, at: int, end: int) -> int:
    """Write bytes as base64 text; return the position after it."""
    alphabet = pointer(_ALPHABET)
    while at < end:
        left = end - at
        word = byte_at(data, at) << 16
        if left > 1:
            word |= byte_at(data, at + 1) << 8
        if left > 2:
            word |= byte_at(data, at + 2)
        put_byte(target, to, byte_at(alphabet, word >> 18))
        put_byte(target, to + 1, byte_at(alphabet, word >> 12 & 63))
        put_byte(target, to + 2, byte_at(alphabet, word >> 6 & 63) if left > 1 else 0x3D)
        put_byte(target, to + 3, byte_at(alphabet, word & 63) if left > 2 else 0x3D)
        at += 3
        to += 4
    return to


@kernel
def quoted_column_size(ends: Int32s, data: Bytes) -> int:
    """Return the total number of bytes of a column's texts inside JSON quotes, with escapes."""
    return quoted_size(pointer(data), int(ends[0]), int(ends[len(ends) - 1]))


@kernel
def entries_size(
    ends: Int32s,
    name_ends: Int32s,
    names: Bytes,
    value_ends: Int32s,
    values: Bytes,
    value_nulls: Bytes,
    wrong: Bytes,
    declared: Bytes,
    declared_ends: Int32s,
    kinds: Int32s,
    bare: Bytes,
) -> int:
    """Return the bytes of all extensions as JSON members; mark in `bare` those written without quotes."""
    end_at, name_at, value_at = pointer(ends), pointer(name_ends), pointer(value_ends)
    from_names, from_values = pointer(names), pointer(values)
    declared_at, declared_end_at, kind_at = pointer(declared), pointer(declared_ends), pointer(kinds)
    total = 0
    for row in range(len(wrong)):
        if wrong[row]:
            continue
        for entry in range(int_at(end_at, row), int_at(end_at, row + 1)):
            if len(value_nulls) > 0 and value_nulls[entry]:
                continue
            name = int_at(name_at, entry)
            size = int_at(name_at, entry + 1) - name
            at, end = int_at(value_at, entry), int_at(value_at, entry + 1)
            kind = kind_of(from_names, name, size, declared_at, declared_end_at, kind_at, len(kinds))
            if kind in (INTEGER_KIND, BOOLEAN_KIND):
                bare[entry] = 1
                total += size + 4 + end - at
            else:
                total += size + 6 + quoted_size(from_values, at, end)
    return total


@kernel
def data_size(choices: Bytes, ends: Int32s, data: Bytes) -> int:
    """Return the number of bytes that the data of all rows will take."""
    source, end_at = pointer(data), pointer(ends)
    total = 0
    for row in range(len(choices)):
        choice = choices[row]
        at, end = int_at(end_at, row), int_at(end_at, row + 1)
        if choice == VERBATIM:
            total += 8 + end - at
        elif choice == BASE64:
            total += 17 + (end - at + 2) // 3 * 4
        elif choice == QUOTED:
            total += 10 + quoted_size(source, at, end)
    return total


@kernel
def put_text(target: Bytes, to: int, source: Bytes, at: int, size: int, buffer_size: int) -> int:
    """Write a text unchanged; return the position after it.

    Excess bytes may be written beyond that position.
    """
    if at + 32 <= buffer_size and size <= 32:
        copy_sixteen(target, to, source, at)
        copy_sixteen(target, to + 16, source, at + 16)
    elif at + size + 16 <= buffer_size and size <= LONG_TEXT_BYTES:
        for index in range(0, size, 16):
            copy_sixteen(target, to + index, source, at + index)
    else:
        copy_bytes(target, to, source, at, size)
    return to + size


@kernel
def put_entry_member(
    target: Bytes,
    to: int,
    names: Bytes,
    name: int,
    name_end: int,
    values: Bytes,
    at: int,
    end: int,
    bare: bool,
) -> int:
    """Write one extension as a JSON member; return the position after it."""
    put_byte(target, to, COMMA)
    put_byte(target, to + 1, QUOTE)
    copy_short(target, to + 2, names, name, name_end - name)
    to += name_end - name + 2
    put_byte(target, to, QUOTE)
    put_byte(target, to + 1, COLON)
    to += 2
    if bare:
        copy_short(target, to, values, at, end - at)
        return to + end - at
    put_byte(target, to, QUOTE)
    to = put_quoted(target, to + 1, values, at, end)
    put_byte(target, to, QUOTE)
    return to + 1


@kernel
def put_data(target: Bytes, to: int, choice: int, source: Bytes, at: int, end: int, buffer_size: int) -> int:
    """Write the JSON member `data` or `data_base64` of an event; return the position after it."""
    if choice == BASE64:
        copy_sixteen(target, to, pointer(_DATA_BASE64), 0)
        to = put_base64(target, to + 16, source, at, end)
    else:
        copy_word(target, to, pointer(_DATA), 0)
        to += 8
        if choice == VERBATIM:
            return put_text(target, to, source, at, end - at, buffer_size)
        put_byte(target, to, QUOTE)
        to = put_quoted(target, to + 1, source, at, end)
    put_byte(target, to, QUOTE)
    return to + 1


@kernel
def write_envelopes(
    prefixes: Bytes,
    texts_of: Sequence[Bytes],
    ends_of: Sequence[Int32s],
    nulls_of: Sequence[Bytes],
    facts: Int32s,
    entry_ends: Int32s,
    name_ends: Int32s,
    names: Bytes,
    value_ends: Int32s,
    values: Bytes,
    value_nulls: Bytes,
    order: Int32s,
    bare: Bytes,
    choices: Bytes,
    data_ends: Int32s,
    data: Bytes,
    wrong: Bytes,
    target: Bytes,
    row_ends: Int32s,
) -> None:
    """Write every valid row: its attributes, extensions and data.

    The first column must not be null in any row. `texts_of`, `ends_of` and `nulls_of` have the arrays of each
    column. `facts` has `FACTS` numbers about each column, such as the size of its buffer.
    """
    to_target, from_prefixes, fact_at = pointer(target), pointer(prefixes), pointer(facts)
    end_at, name_at, value_at = pointer(entry_ends), pointer(name_ends), pointer(value_ends)
    from_names, from_values, order_at = pointer(names), pointer(values), pointer(order)
    from_data, data_at = pointer(data), pointer(data_ends)
    to = 0
    for row in range(len(wrong)):
        if not wrong[row]:
            for column in range(len(facts) // FACTS):
                fact = column * FACTS
                if int_at(fact_at, fact + HAS_NULLS) and byte_at(bytes_of(nulls_of, column), row):
                    continue
                copy_sixteen(to_target, to, from_prefixes, column * PREFIX_BYTES)
                copy_sixteen(to_target, to + 16, from_prefixes, column * PREFIX_BYTES + 16)
                to += int_at(fact_at, fact + PREFIX_SIZE)
                text_ends, texts = ints_of(ends_of, column), bytes_of(texts_of, column)
                at, end = int_at(text_ends, row), int_at(text_ends, row + 1)
                if int_at(fact_at, fact + AS_IT_IS):
                    to = put_text(to_target, to, texts, at, end - at, int_at(fact_at, fact + BUFFER_SIZE))
                else:
                    to = put_quoted(to_target, to, texts, at, end)
            put_byte(to_target, to, QUOTE)
            to += 1
            for place in range(int_at(end_at, row), int_at(end_at, row + 1)):
                entry = int_at(order_at, place)
                if len(value_nulls) == 0 or not value_nulls[entry]:
                    name, name_end = int_at(name_at, entry), int_at(name_at, entry + 1)
                    at, end = int_at(value_at, entry), int_at(value_at, entry + 1)
                    is_bare = bare[entry] == 1
                    to = put_entry_member(
                        to_target, to, from_names, name, name_end, from_values, at, end, is_bare
                    )
            if choices[row] != NO_DATA:
                at, end = int_at(data_at, row), int_at(data_at, row + 1)
                to = put_data(to_target, to, int(choices[row]), from_data, at, end, len(data))
            put_byte(to_target, to, CLOSING_BRACE)
            to += 1
        row_ends[row + 1] = to
