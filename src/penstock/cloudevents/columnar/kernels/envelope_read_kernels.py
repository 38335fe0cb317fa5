"""The loop over structured JSON values: one pass finds the members, checks the JSON, and validates the event.

Nothing is copied or unescaped here. Envelopes with escapes in an attribute, `data_base64`, null for an
unusual member, duplicates, deep nesting or any mistake are left to the functions for one event.
"""

from __future__ import annotations

import numpy as np

from penstock.cloudevents.columnar.kernels.data_decode_kernels import decoded_size, unescaped_size
from penstock.cloudevents.columnar.kernels.header_read_kernels import (
    ASK_SLOT,
    BOOLEAN_KIND,
    ENTRIES,
    EXTENSION,
    INTEGER_KIND,
    UNDECLARED,
    core_slot,
    is_extension_name,
    is_new_name,
    is_one_zero,
    is_valid_core,
    is_valid_extension,
    kind_of,
    put_entry,
)
from penstock.cloudevents.columnar.kernels.json_scan_kernels import (
    BASE64_TEXT,
    ESCAPED,
    FALSE,
    NULL,
    NUMBER,
    PLAIN,
    STRING,
    TEXT_WITH_ESCAPES,
    TRUE,
    skip_spaces,
    skip_string,
    skip_value,
)
from penstock.cloudevents.columnar.kernels.spans import (
    ASK,
    CONTENT_TYPE,
    DATA,
    ID,
    SLOTS,
    SOURCE,
    SPECVERSION,
    STRUCTURED,
    SUBJECT,
    TIME,
    TYPE,
    Spans,
)
from penstock.cloudevents.columnar.kernels.texts import (
    KNOWN_MEDIA_TYPES,
    KNOWN_SOURCES,
    is_base64,
    is_json_type,
    is_known,
    remember,
    same_bytes,
    same_letters,
)
from penstock.cloudevents.columnar.kernels.timestamp_kernels import NO_TIME, read_time
from penstock.records.kernels.compiled import (
    Bytes,
    Int32s,
    Ints,
    byte_at,
    int_at,
    kernel,
    pointer,
    put_int,
)

SHAPE_MEMBERS = 32
_CHARSET = np.frombuffer(b"charset=utf-8", np.uint8).copy()
REFUSED = (-1, 0, 0, 0)
# What is to know of the data of a row, as bits: their type is implied; they stand there as base64; they
# stand there with escapes.
IMPLIED, IN_BASE64, IN_ESCAPES = 1, 2, 4
REQUIRED_BITS = (1 << ID) | (1 << SOURCE) | (1 << SPECVERSION) | (1 << TYPE)


@kernel
def is_utf8_charset(data: Bytes, at: int, end: int) -> bool:
    """Return True if a media type has no parameters or charset=utf-8, so that its text is certainly UTF-8."""
    semicolon = at
    while semicolon < end and byte_at(data, semicolon) != 0x3B:
        semicolon += 1
    if semicolon == end:
        return True
    start = skip_spaces(data, semicolon + 1, end)
    return end - start == 13 and same_letters(data, start, pointer(_CHARSET), 13)


@kernel
def fits_json_kind(kind: int, declared_kind: int) -> bool:
    """Return True if a JSON value of `kind` is allowed for an extension of the declared type."""
    if kind == STRING:
        return declared_kind not in (INTEGER_KIND, BOOLEAN_KIND)
    if kind == NUMBER:
        return declared_kind in (INTEGER_KIND, UNDECLARED)
    return kind in (TRUE, FALSE) and declared_kind in (BOOLEAN_KIND, UNDECLARED)


@kernel
def is_extension(
    data: Bytes,
    name: int,
    size: int,
    kind: int,
    at: int,
    end: int,
    declared: Bytes,
    ends: Int32s,
    kinds: Int32s,
    count: int,
) -> bool:
    """Return True if a member of a JSON envelope is certainly a valid extension attribute."""
    declared_kind = kind_of(data, name, size, declared, ends, kinds, count)
    if not fits_json_kind(kind, declared_kind) or not is_extension_name(data, name, size):
        return False
    if kind == NUMBER:
        declared_kind = INTEGER_KIND
    elif kind != STRING:
        declared_kind = BOOLEAN_KIND
    return is_valid_extension(declared_kind, data, at, end)


@kernel
def is_valid_member(slot: int, data: Bytes, at: int, end: int, made_of: int, known: Int32s) -> bool:
    """Return True if a JSON string is certainly a valid value of a core attribute."""
    size = end - at
    if made_of == PLAIN and slot in (ID, TYPE, SUBJECT):
        return size > 0
    if slot == SPECVERSION:
        return size == 3 and is_one_zero(data, at)
    if slot in (SOURCE, CONTENT_TYPE):
        table = KNOWN_SOURCES if slot == SOURCE else KNOWN_MEDIA_TYPES
        if is_known(known, table, data, at, size):
            return True
        if made_of & ESCAPED or not is_valid_core(slot, data, at, end):
            return False
        remember(known, table, data, at, size)
        return True
    return not made_of & ESCAPED and is_valid_core(slot, data, at, end)


@kernel
def expected_name(data: Bytes, name: int, end: int, shape: Int32s, member: int) -> tuple[int, int]:
    """Return a member name's size and slot if the previous row had the name at that index, else -1 and 0.

    Producers write their members in the same order, so most names need no lookup.
    """
    if member >= SHAPE_MEMBERS:
        return -1, 0
    size = int_at(shape, member * 3 + 1)
    if size < 0 or name + size >= end:
        return -1, 0
    if not same_bytes(data, name, data, int_at(shape, member * 3), size + 1):  # with the closing quote
        return -1, 0
    return size, int_at(shape, member * 3 + 2)


@kernel
def remember_name(shape: Int32s, member: int, name: int, size: int, slot: int) -> None:
    """Store the name of an envelope's member number `member`, for comparison with the next row."""
    if member < SHAPE_MEMBERS:
        put_int(shape, member * 3, name)
        put_int(shape, member * 3 + 1, size)
        put_int(shape, member * 3 + 2, slot)


@kernel
def read_envelope(
    data: Bytes,
    at: int,
    end: int,
    spans: Int32s,
    row: int,
    rows: int,
    known: Int32s,
    shape: Int32s,
    entries: Int32s,
    first_entry: int,
    entries_max: int,
    declared: Bytes,
    declared_ends: Int32s,
    kinds: Int32s,
    count: int,
) -> tuple[int, int, int, int]:
    """Fill in the spans (start and size of each part) of one structured row, in a batch of `rows` rows.

    Returns the index of the next free extension entry, or -1 if `from_record` must decide; the microseconds
    of the time, and a state: `TIME_EXACT` if formatting them restores the text; and the flags of the data.
    """
    entry = first_entry
    seen = 0
    micros, time_state = 0, 0
    data_at, data_end, data_kind = 0, 0, -1
    media_at, media_end = 0, 0
    member = 0
    at = skip_spaces(data, at, end)
    if at >= end or byte_at(data, at) != 0x7B:
        return REFUSED
    while True:
        at = skip_spaces(data, at + 1, end)
        if at >= end or byte_at(data, at) != 0x22:
            return REFUSED
        name = at + 1
        size, slot = expected_name(data, name, end, shape, member)
        if size < 0:
            at, made_of = skip_string(data, name, end)
            size = at - 1 - name
            if at < 0 or made_of or size == 0:
                return REFUSED
            slot = core_slot(data, name, size)
            remember_name(shape, member, name, size, slot)
        member += 1
        at = skip_spaces(data, name + size + 1, end)
        if at >= end or byte_at(data, at) != 0x3A:
            return REFUSED
        start = skip_spaces(data, at + 1, end)
        made_of = PLAIN
        if start < end and byte_at(data, start) == 0x22:
            kind = STRING
            at, made_of = skip_string(data, start + 1, end)
            first, last = start + 1, at - 1
        else:
            at, kind = skip_value(data, start, end)
            first, last = start, at
        if at < 0:
            return REFUSED
        if slot == ASK_SLOT:
            slot = CONTENT_TYPE if size == 15 else DATA
        if slot == EXTENSION:
            if made_of & ESCAPED or entry == entries_max:
                return REFUSED
            if not is_new_name(entries, first_entry, entry, data, name, size):
                return REFUSED
            if not is_extension(data, name, size, kind, first, last, declared, declared_ends, kinds, count):
                return REFUSED
            put_entry(entries, entry, name, size, first, last - first)
            entry += 1
        else:
            if seen & (1 << slot):
                return REFUSED
            seen |= 1 << slot
            if slot == DATA:
                if size == 11:
                    if kind != STRING or not is_base64(data, first, last):
                        return REFUSED
                    kind = BASE64_TEXT
                elif made_of & ESCAPED:
                    kind = TEXT_WITH_ESCAPES
                data_at, data_end, data_kind = start, at, kind
            elif kind == STRING:
                put_int(spans, row + slot * 2 * rows, first)
                put_int(spans, row + (slot * 2 + 1) * rows, last - first)
                if slot == TIME:
                    micros, time_state = read_time(data, first, last)
                    if micros == NO_TIME:
                        return REFUSED
                elif not is_valid_member(slot, data, first, last, made_of, known):
                    return REFUSED
                if slot == CONTENT_TYPE:
                    media_at, media_end = first, last
            elif kind != NULL or slot in (ID, SOURCE, SPECVERSION, TYPE):
                return REFUSED
        at = skip_spaces(data, at, end)
        if at >= end:
            return REFUSED
        if byte_at(data, at) == 0x7D:
            break
        if byte_at(data, at) != 0x2C:
            return REFUSED
    if skip_spaces(data, at + 1, end) != end or seen & REQUIRED_BITS != REQUIRED_BITS:
        return REFUSED
    flags, data_at, data_end = place_data(data, data_at, data_end, data_kind, media_at, media_end)
    if flags < 0:
        return REFUSED
    if data_kind >= 0:
        put_int(spans, row + DATA * 2 * rows, data_at)
        put_int(spans, row + (DATA * 2 + 1) * rows, data_end - data_at)
    return entry, micros, time_state, flags


@kernel
def place_data(
    data: Bytes, at: int, end: int, kind: int, media_at: int, media_end: int
) -> tuple[int, int, int]:
    """Return the flags of an event's data, and the start and end of the data, decoded if necessary.

    The flags are -1 if `from_record` must read the row. `media_end` is 0 for an event without a media type.
    """
    if kind < 0:
        return 0, at, end
    if kind == BASE64_TEXT:
        return IN_BASE64, at + 1, at + 1 + decoded_size(data, at + 1, end - 1)
    if media_end == 0:
        return IMPLIED, at, end
    if is_json_type(data, media_at, media_end):
        return 0, at, end
    if kind not in (STRING, TEXT_WITH_ESCAPES) or not is_utf8_charset(data, media_at, media_end):
        return -1, at, end
    if kind == STRING:
        return 0, at + 1, end - 1
    size = unescaped_size(data, at + 1, end - 1)
    return IN_ESCAPES if size >= 0 else -1, at + 1, at + 1 + size


@kernel
def read_envelopes(
    record_ends: Int32s,
    all_records: Bytes,
    all_declared: Bytes,
    all_declared_ends: Int32s,
    all_kinds: Int32s,
    known_texts: Int32s,
    last_shape: Int32s,
    rows: Bytes,
    spans: Spans,
    times: Ints,
    time_states: Bytes,
    data_flags: Bytes,
    entry_firsts: Ints,
    entry_counts: Int32s,
    all_entries: Spans,
    state: Ints,
) -> None:
    """Read every row marked STRUCTURED by `find_attributes`; mark rows left to `from_record` as ASK."""
    records, entries, record_at = pointer(all_records), pointer(all_entries), pointer(record_ends)
    span_at = pointer(spans)
    declared, declared_ends, kinds = pointer(all_declared), pointer(all_declared_ends), pointer(all_kinds)
    known, shape = pointer(known_texts), pointer(last_shape)
    entry = int(state[ENTRIES])
    for row in range(len(rows)):
        if rows[row] != STRUCTURED:
            continue
        start, end = int_at(record_at, row), int_at(record_at, row + 1)
        next_entry, micros, time_state, flags = read_envelope(
            records,
            start,
            end,
            span_at,
            row,
            len(rows),
            known,
            shape,
            entries,
            entry,
            len(all_entries),
            declared,
            declared_ends,
            kinds,
            len(all_kinds),
        )
        if next_entry < 0:
            rows[row] = ASK
            for slot in range(SLOTS):
                spans[slot, 1, row] = -1
            continue
        times[row] = micros
        time_states[row] = time_state
        data_flags[row] = flags
        entry_firsts[row] = entry
        entry_counts[row] = next_entry - entry
        entry = next_entry
    state[ENTRIES] = entry
