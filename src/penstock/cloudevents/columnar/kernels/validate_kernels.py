"""The loops that validate columns of attributes before they are written to records.

Rows that are certainly valid pass. All others are marked in `doubts`, and the functions for one event decide
about them.
"""

from __future__ import annotations

from penstock.cloudevents.columnar.kernels.header_read_kernels import (
    EXTENSION,
    core_slot,
    is_extension_name,
    is_structured,
    is_valid_core,
    is_valid_extension,
    kind_of,
)
from penstock.cloudevents.columnar.kernels.json_scan_kernels import marked, skip_value
from penstock.cloudevents.columnar.kernels.spans import CONTENT_TYPE, ID, SPECVERSION, SUBJECT, TIME, TYPE
from penstock.cloudevents.columnar.kernels.texts import (
    character,
    is_json_type,
    is_known,
    remember,
    same_bytes,
    skip_plain,
)
from penstock.cloudevents.columnar.kernels.timestamp_kernels import NO_TIME, read_time
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

# How data stand in an envelope. UNSURE: the functions for one event decide.
NO_DATA, VERBATIM, BASE64, QUOTED, UNSURE = range(5)


@kernel
def is_ordinary(ends: Int32s, all_data: Bytes) -> bool:
    """Return True if all texts of a column are printable ASCII without quotes and backslashes."""
    data, at, end = pointer(all_data), int(ends[0]), int(ends[len(ends) - 1])
    words = (end - at) // 8
    marks = 0
    for index in range(words):  # to the end, for then many words are looked at at once
        marks |= marked(word_at(data, at + index * 8))
    for place in range(at + words * 8, end):
        byte = byte_at(data, place)
        if byte < 0x20 or byte >= 0x7F or byte == 0x22 or byte == 0x5C:
            return False
    return marks == 0


@kernel
def check_texts(
    slot: int,
    ends: Int32s,
    all_data: Bytes,
    nulls: Bytes,
    ordinary: bool,
    known_texts: Int32s,
    doubts: Bytes,
) -> None:
    """Mark the rows whose text is not certainly valid for the attribute in `slot`.

    `ordinary` is the result of `is_ordinary` for the column.
    """
    data, end_at = pointer(all_data), pointer(ends)
    known = pointer(known_texts)
    plain = slot in (ID, TYPE, SUBJECT) and (
        ordinary or is_all_plain(data, int_at(end_at, 0), int_at(end_at, len(doubts)))
    )
    for row in range(len(doubts)):
        if len(nulls) > 0 and nulls[row]:
            continue
        at, end = int_at(end_at, row), int_at(end_at, row + 1)
        if plain:
            if at == end:
                doubts[row] = 1
        elif slot in (ID, SUBJECT, SPECVERSION):
            if not is_valid_core(slot, data, at, end):
                doubts[row] = 1
        elif slot == TIME:
            if read_time(data, at, end)[0] == NO_TIME:
                doubts[row] = 1
        elif not is_known(known, 0, data, at, end - at):
            structured = slot == CONTENT_TYPE and is_structured(data, at, end)
            if is_valid_core(slot, data, at, end) and not structured:
                remember(known, 0, data, at, end - at)
            else:
                doubts[row] = 1


@kernel
def is_all_plain(data: Bytes, at: int, end: int) -> bool:
    """Return True if all texts of a column are printable ASCII, so that only empty ones can be invalid."""
    at = skip_plain(data, at, end)
    while at < end and 0x20 <= byte_at(data, at) < 0x7F:
        at += 1
    return at == end


@kernel
def is_before(data: Bytes, left: int, left_end: int, right: int, right_end: int) -> bool:
    """Return True if one name comes before another in byte order."""
    while left < left_end and right < right_end:
        difference = byte_at(data, left) - byte_at(data, right)
        if difference != 0:
            return difference < 0
        left += 1
        right += 1
    return right < right_end


@kernel
def check_entries(
    ends: Int32s,
    name_ends: Int32s,
    all_names: Bytes,
    value_ends: Int32s,
    all_values: Bytes,
    value_nulls: Bytes,
    all_declared: Bytes,
    all_declared_ends: Int32s,
    all_kinds: Int32s,
    order: Int32s,
    doubts: Bytes,
) -> None:
    """Mark the rows whose extensions are not certainly valid, and sort each row's entries by name."""
    names, values = pointer(all_names), pointer(all_values)
    declared, declared_ends, kinds = pointer(all_declared), pointer(all_declared_ends), pointer(all_kinds)
    end_at, name_at, value_at, place_at = (
        pointer(ends),
        pointer(name_ends),
        pointer(value_ends),
        pointer(order),
    )
    for row in range(len(doubts)):
        first = int_at(end_at, row)
        for entry in range(first, int_at(end_at, row + 1)):
            name, name_end = int_at(name_at, entry), int_at(name_at, entry + 1)
            size = name_end - name
            place = entry
            while place > first:
                other = int_at(place_at, place - 1)
                other_at, other_end = int_at(name_at, other), int_at(name_at, other + 1)
                if other_end - other_at == size and same_bytes(names, name, names, other_at, size):
                    doubts[row] = 1
                if is_before(names, other_at, other_end, name, name_end):
                    break
                put_int(place_at, place, other)
                place -= 1
            put_int(place_at, place, entry)
            if (
                size == 0
                or core_slot(names, name, size) != EXTENSION
                or not is_extension_name(names, name, size)
            ):
                doubts[row] = 1
            if len(value_nulls) > 0 and value_nulls[entry]:
                continue
            kind = kind_of(names, name, size, declared, declared_ends, kinds, len(all_kinds))
            if not is_valid_extension(kind, values, int_at(value_at, entry), int_at(value_at, entry + 1)):
                doubts[row] = 1


@kernel
def is_utf8(data: Bytes, at: int, end: int) -> bool:
    """Return True if the bytes are well-formed UTF-8."""
    at = skip_plain(data, at, end)
    while at < end:
        if byte_at(data, at) < 0x80:
            at += 1
        else:
            code, size = character(data, at, end)
            if code < 0:
                return False
            at += size
    return True


@kernel
def judge_data(
    ends: Int32s,
    all_data: Bytes,
    nulls: Bytes,
    type_ends: Int32s,
    all_types: Bytes,
    type_nulls: Bytes,
    text_data: bool,
    choices: Bytes,
) -> None:
    """Choose how each row's data go into JSON: unchanged, as a string, or as base64 (rules D15, D16)."""
    data, types, end_at, type_at = pointer(all_data), pointer(all_types), pointer(ends), pointer(type_ends)
    known_at, known_size, is_json = 0, -1, False
    for row in range(len(choices)):
        if len(nulls) > 0 and nulls[row]:
            choices[row] = NO_DATA
            continue
        choices[row] = BASE64
        if len(type_nulls) > 0 and type_nulls[row]:
            continue
        at, end = int_at(end_at, row), int_at(end_at, row + 1)
        first, last = int_at(type_at, row), int_at(type_at, row + 1)
        # Types repeat from row to row.
        if known_size != last - first or not same_bytes(types, first, types, known_at, known_size):
            known_at, known_size = first, last - first
            is_json = is_json_type(types, first, last)
        if is_json:
            choices[row] = VERBATIM if skip_value(data, at, end)[0] == end else UNSURE
        elif text_data:
            choices[row] = UNSURE if is_utf8(data, at, end) else BASE64


@kernel
def as_null_flags(wrong: Bytes, nulls: Bytes, result: Bytes) -> None:
    """Compute the null flags of a column: set for each row that is invalid or was already null."""
    for row in range(len(wrong)):
        result[row] = wrong[row] | (nulls[row] if len(nulls) > 0 else 0)
