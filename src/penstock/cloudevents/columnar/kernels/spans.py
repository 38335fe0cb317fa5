"""Positions of the parts of every event: a table that reading kernels fill, and copying kernels use.

A span is a start and a size in bytes; size -1 stands for null. ``spans[slot, :, row]`` has one span for each
core attribute and one for the data. The bytes are in one of three buffers, depending on the row: the header
values (binary mode), the record values (structured mode, and always the data), or the side buffer, which has
the events of rows that the functions for one event have decoded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.cloudevents.columnar.kernels.texts import same_bytes
from penstock.records.kernels.compiled import (
    Bytes,
    Int32s,
    Ints,
    byte_at,
    copy_bytes,
    copy_word,
    int_at,
    kernel,
    pointer,
    put_byte,
)

Spans = NDArray[np.int32]

# Slots of a row.
ID, SOURCE, SPECVERSION, TYPE, SUBJECT, TIME, CONTENT_TYPE, DATASCHEMA, DATA = range(9)
SLOTS = 9

# What a row turned out to be. ASK: the functions for one event must decide.
ASK, BINARY, STRUCTURED, NO_CLAIM = range(4)

# Columns of the table of extensions: spans of name and value.
NAME_AT, NAME_SIZE, VALUE_AT, VALUE_SIZE = range(4)
ENTRY_FIELDS = 4

# Where the bytes of a row are.
IN_HEADERS, IN_VALUES, IN_SIDE = range(3)


@kernel
def lay_out(sizes: Int32s, ends: Int32s, valid: Bytes) -> int:
    """Convert text sizes (-1: null) to Arrow's offsets and validity bits; return the number of nulls."""
    total = 0
    nulls = 0
    for row in range(len(sizes)):
        size = int(sizes[row])
        if size >= 0:
            total += size
            valid[row >> 3] |= 1 << (row & 7)
        else:
            nulls += 1
        ends[row + 1] = total
    return nulls


@kernel
def gather(
    headers: Bytes,
    values: Bytes,
    side: Bytes,
    places: Bytes,
    starts: Int32s,
    ends: Int32s,
    target: Bytes,
) -> None:
    """Copy the bytes of a column's texts to the target array, one row after another."""
    to_target, start_at, end_at = pointer(target), pointer(starts), pointer(ends)
    from_headers, from_values, from_side = pointer(headers), pointer(values), pointer(side)
    for row in range(len(starts)):
        to = int_at(end_at, row)
        size = int_at(end_at, row + 1) - to
        if size == 0:
            continue
        start = int_at(start_at, row)
        place = places[row]
        if place == IN_HEADERS:
            copy_short(to_target, to, from_headers, start, size)
        elif place == IN_VALUES:
            copy_short(to_target, to, from_values, start, size)
        else:
            copy_short(to_target, to, from_side, start, size)


@kernel
def copy_short(target: Bytes, to: int, source: Bytes, start: int, size: int) -> None:
    """Copy a text, eight bytes at a time up to 64 bytes, which is faster than a call of memcpy."""
    if size > 64:
        copy_bytes(target, to, source, start, size)
    elif size >= 8:
        last = size - 8
        for index in range(0, last, 8):
            copy_word(target, to + index, source, start + index)
        copy_word(target, to + last, source, start + last)
    else:
        for index in range(size):
            put_byte(target, to + index, byte_at(source, start + index))


@kernel
def field(entries: Int32s, entry: int, number: int) -> int:
    """Return one field of an entry in the table of extensions, such as the size of the name."""
    return int_at(entries, entry * ENTRY_FIELDS + number)


@kernel
def lay_out_entries(
    firsts: Ints, counts: Int32s, table: Spans, ends: Int32s, name_ends: Int32s, value_ends: Int32s
) -> None:
    """Compute the Arrow offsets of the extensions map: of its rows, its names and its values."""
    entries, count_at = pointer(table), pointer(counts)
    total = 0
    names = 0
    values = 0
    for row in range(len(counts)):
        first = firsts[row]
        for entry in range(first, first + int_at(count_at, row)):
            names += field(entries, entry, NAME_SIZE)
            values += field(entries, entry, VALUE_SIZE)
            total += 1
            name_ends[total] = names
            value_ends[total] = values
        ends[row + 1] = total


@kernel
def gather_entries(
    header_names: Bytes,
    headers: Bytes,
    values: Bytes,
    side: Bytes,
    places: Bytes,
    firsts: Ints,
    counts: Int32s,
    table: Spans,
    names: Bytes,
    texts: Bytes,
) -> None:
    """Copy the names and values of all extensions to the target arrays."""
    to_names, to_texts = pointer(names), pointer(texts)
    from_names, from_headers = pointer(header_names), pointer(headers)
    from_values, from_side = pointer(values), pointer(side)
    entries, count_at = pointer(table), pointer(counts)
    name_to = 0
    to = 0
    for row in range(len(counts)):
        place = places[row]
        first = firsts[row]
        for entry in range(first, first + int_at(count_at, row)):
            name_at, name_size = field(entries, entry, NAME_AT), field(entries, entry, NAME_SIZE)
            start, size = field(entries, entry, VALUE_AT), field(entries, entry, VALUE_SIZE)
            if place == IN_HEADERS:
                copy_short(to_names, name_to, from_names, name_at, name_size)
                copy_short(to_texts, to, from_headers, start, size)
            elif place == IN_VALUES:
                copy_short(to_names, name_to, from_values, name_at, name_size)
                copy_short(to_texts, to, from_values, start, size)
            else:
                copy_short(to_names, name_to, from_side, name_at, name_size)
                copy_short(to_texts, to, from_side, start, size)
            name_to += name_size
            to += size


@kernel
def find_entries(
    header_names: Bytes,
    values: Bytes,
    side: Bytes,
    places: Bytes,
    firsts: Ints,
    counts: Int32s,
    table: Spans,
    wanted: Bytes,
    starts: Int32s,
    sizes: Int32s,
) -> None:
    """Find the start and size of the value of extension `wanted` in every row that has the extension."""
    in_headers, in_values, in_side = pointer(header_names), pointer(values), pointer(side)
    entries, count_at, name = pointer(table), pointer(counts), pointer(wanted)
    size = len(wanted)
    for row in range(len(counts)):
        first = firsts[row]
        for entry in range(first, first + int_at(count_at, row)):
            if field(entries, entry, NAME_SIZE) != size:
                continue
            at = field(entries, entry, NAME_AT)
            if places[row] == IN_HEADERS:
                found = same_bytes(in_headers, at, name, 0, size)
            elif places[row] == IN_VALUES:
                found = same_bytes(in_values, at, name, 0, size)
            else:
                found = same_bytes(in_side, at, name, 0, size)
            if found:
                starts[row] = field(entries, entry, VALUE_AT)
                sizes[row] = field(entries, entry, VALUE_SIZE)
