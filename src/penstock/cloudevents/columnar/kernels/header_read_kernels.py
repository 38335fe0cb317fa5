"""The loop over the headers of every record: classifies the row, finds its attributes, and validates them.

Rows that are certainly binary-mode events get their spans filled in; rows that do not claim to be events are
marked. Structured rows are left to `envelope_read_kernels`, and all others to the functions for one event.
"""

from __future__ import annotations

import numpy as np

from penstock.cloudevents.columnar.kernels.spans import (
    ASK,
    BINARY,
    CONTENT_TYPE,
    DATA,
    DATASCHEMA,
    ENTRY_FIELDS,
    ID,
    NAME_AT,
    NAME_SIZE,
    NO_CLAIM,
    SLOTS,
    SOURCE,
    SPECVERSION,
    STRUCTURED,
    SUBJECT,
    TIME,
    TYPE,
    VALUE_AT,
    VALUE_SIZE,
    Spans,
)
from penstock.cloudevents.columnar.kernels.texts import (
    KNOWN_MEDIA_TYPES,
    KNOWN_SOURCES,
    is_base64,
    is_boolean,
    is_integer,
    is_known,
    is_media_type,
    is_string,
    is_uri,
    lower,
    remember,
    same_bytes,
    same_letters,
    skip_blanks,
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

# Bits of `options`.
LENIENT, ASSUME_STRUCTURED = 1, 2

# Entries of `state`.
ENTRIES, ENVELOPES = range(2)

# Kinds of extensions. A partition key has one of its own; what is not declared is a String in headers.
STRING_KIND, INTEGER_KIND, BOOLEAN_KIND, BINARY_KIND, URI_KIND, REFERENCE_KIND, TIME_KIND, KEY_KIND = range(8)
UNDECLARED = 8

# The result of `core_slot` for other names than those of attributes.
EXTENSION, ASK_SLOT = -1, -2

_KNOWN = {
    b"id": ID,
    b"source": SOURCE,
    b"specversion": SPECVERSION,
    b"type": TYPE,
    b"time": TIME,
    b"subject": SUBJECT,
    b"dataschema": DATASCHEMA,
    b"datacontenttype": ASK_SLOT,
    b"data": ASK_SLOT,
    b"data_base64": ASK_SLOT,
}
_NAMES = np.frombuffer(b"".join(_KNOWN), np.uint8).copy()
_NAME_ENDS = np.cumsum([0, *map(len, _KNOWN)]).astype(np.int32)
_NAME_SLOTS = np.array(list(_KNOWN.values()), np.int32)
_CONTENT_TYPE = np.frombuffer(b"content-type", np.uint8).copy()
_FORMAT = np.frombuffer(b"application/cloudevents+json", np.uint8).copy()
_ONE_ZERO = 0x312E30


@kernel
def core_slot(names: Bytes, at: int, size: int) -> int:
    """Return the slot (column number) of an attribute's name, EXTENSION, or ASK_SLOT for names about data."""
    known, ends = pointer(_NAMES), pointer(_NAME_ENDS)
    for index in range(len(_NAME_SLOTS)):
        start = int_at(ends, index)
        if int_at(ends, index + 1) - start == size and same_bytes(names, at, known, start, size):
            return int_at(pointer(_NAME_SLOTS), index)
    return EXTENSION


@kernel
def is_valid_core(slot: int, data: Bytes, at: int, end: int) -> bool:
    """Return True if the text of a core attribute other than `time` is certainly valid."""
    if at == end:
        return False
    if slot in (SOURCE, DATASCHEMA):
        return is_uri(data, at, end, slot == DATASCHEMA)
    if slot == SPECVERSION:
        return end - at == 3 and is_one_zero(data, at)
    if slot == CONTENT_TYPE:
        return is_media_type(data, at, end)
    return is_string(data, at, end)


@kernel
def is_one_zero(data: Bytes, at: int) -> bool:
    """Return True if the three bytes at `at` are ``1.0``, the only valid specversion."""
    return (byte_at(data, at) << 16 | byte_at(data, at + 1) << 8 | byte_at(data, at + 2)) == _ONE_ZERO


@kernel
def is_extension_name(names: Bytes, at: int, size: int) -> bool:
    """Return True if an extension's name satisfies rule C3 (lower-case letters and digits)."""
    for place in range(at, at + size):
        byte = byte_at(names, place)
        if not (0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39):
            return False
    return size > 0


@kernel
def kind_of(
    names: Bytes, at: int, size: int, declared: Bytes, ends: Int32s, kinds: Int32s, count: int
) -> int:
    """Return the number of an extension's declared type, or UNDECLARED if it has none."""
    for index in range(count):
        start = int_at(ends, index)
        if int_at(ends, index + 1) - start == size and same_bytes(names, at, declared, start, size):
            return int_at(kinds, index)
    return UNDECLARED


@kernel
def is_valid_extension(kind: int, data: Bytes, at: int, end: int) -> bool:
    """Return True if a text is certainly canonical for an extension of type `kind`."""
    if kind in (STRING_KIND, UNDECLARED):
        return is_string(data, at, end)
    if kind == INTEGER_KIND:
        return is_integer(data, at, end)
    if kind == BOOLEAN_KIND:
        return is_boolean(data, at, end)
    if kind == BINARY_KIND:
        return is_base64(data, at, end)
    if kind == TIME_KIND:
        return read_time(data, at, end)[0] != NO_TIME
    if kind == KEY_KIND:
        return at < end and is_string(data, at, end)
    return is_uri(data, at, end, kind == URI_KIND)


@kernel
def is_new_name(entries: Int32s, first: int, last: int, names: Bytes, at: int, size: int) -> bool:
    """Return True if none of the row's extensions so far has this name."""
    for entry in range(first * ENTRY_FIELDS, last * ENTRY_FIELDS, ENTRY_FIELDS):
        if int_at(entries, entry + NAME_SIZE) == size:
            other = int_at(entries, entry + NAME_AT)
            if same_bytes(names, other, names, at, size):
                return False
    return True


@kernel
def put_entry(entries: Int32s, entry: int, name: int, name_size: int, value: int, value_size: int) -> None:
    """Store the positions and sizes of an extension's name and value."""
    base = entry * ENTRY_FIELDS
    put_int(entries, base + NAME_AT, name)
    put_int(entries, base + NAME_SIZE, name_size)
    put_int(entries, base + VALUE_AT, value)
    put_int(entries, base + VALUE_SIZE, value_size)


@kernel
def is_structured(data: Bytes, at: int, end: int) -> bool:
    """Return True if the content type begins like that of an event format, ignoring case (rule K14)."""
    return end - at >= 23 and same_letters(data, at, pointer(_FORMAT), 23)


@kernel
def is_json_format(data: Bytes, at: int, end: int) -> bool:
    """Return True for the content type of the JSON event format, with or without parameters."""
    if end - at < 28 or not same_letters(data, at, pointer(_FORMAT), 28):
        return False
    at = skip_blanks(data, at + 28, end)
    return at == end or byte_at(data, at) == 0x3B


@kernel
def is_prefixed(names: Bytes, at: int, size: int) -> bool:
    """Return True if the header name begins with ``ce_``."""
    if size < 3 or byte_at(names, at) != 0x63:
        return False
    return byte_at(names, at + 1) == 0x65 and byte_at(names, at + 2) == 0x5F


@kernel
def is_prefixed_loosely(names: Bytes, at: int, size: int) -> bool:
    """Return True if a header name begins with ``ce_`` ignoring case, as the lenient profile allows."""
    if size < 3 or lower(byte_at(names, at)) != 0x63:
        return False
    return lower(byte_at(names, at + 1)) == 0x65 and byte_at(names, at + 2) == 0x5F


@kernel
def find_attributes(
    firsts: Int32s,
    lasts: Int32s,
    name_ends: Int32s,
    all_names: Bytes,
    value_ends: Int32s,
    all_values: Bytes,
    null_values: Bytes,
    record_ends: Int32s,
    null_records: Bytes,
    all_declared: Bytes,
    all_declared_ends: Int32s,
    all_kinds: Int32s,
    options: int,
    known_texts: Int32s,
    rows: Bytes,
    spans: Spans,
    times: Ints,
    time_states: Bytes,
    entry_firsts: Ints,
    entry_counts: Int32s,
    all_entries: Spans,
    state: Ints,
) -> None:
    """Classify every row, and fill in the spans (start and size of each part) of valid binary-mode events."""
    names, values, entries = pointer(all_names), pointer(all_values), pointer(all_entries)
    first_at, last_at = pointer(firsts), pointer(lasts)
    name_at, value_at, record_at = pointer(name_ends), pointer(value_ends), pointer(record_ends)
    declared, declared_ends, kinds = pointer(all_declared), pointer(all_declared_ends), pointer(all_kinds)
    has_nulls, has_null_records = len(null_values) > 0, len(null_records) > 0
    known = pointer(known_texts)
    entry = 0
    for row in range(len(rows)):
        for slot in range(SLOTS):
            spans[slot, 1, row] = -1
        first_entry = entry
        ask = structured = readable = False
        content_types = required = time_state = 0
        for header in range(int_at(first_at, row), int_at(last_at, row)):
            name = int_at(name_at, header)
            size = int_at(name_at, header + 1) - name
            at = int_at(value_at, header)
            end = int_at(value_at, header + 1)
            if not is_prefixed(names, name, size):
                if size == 12 and same_letters(names, name, pointer(_CONTENT_TYPE), 12):
                    content_types += 2 if has_nulls and null_values[header] else 1
                    spans[CONTENT_TYPE, 0, row] = at
                    spans[CONTENT_TYPE, 1, row] = end - at
                    if is_known(known, KNOWN_MEDIA_TYPES, values, at, end - at):
                        continue
                    structured = is_structured(values, at, end)
                    if structured:
                        readable = is_json_format(values, at, end)
                    elif is_valid_core(CONTENT_TYPE, values, at, end):
                        remember(known, KNOWN_MEDIA_TYPES, values, at, end - at)
                    else:
                        ask = True
                elif options & LENIENT and is_prefixed_loosely(names, name, size):
                    ask = True
                continue
            if ask or (has_nulls and null_values[header]):
                ask = True
                continue
            name += 3
            size -= 3
            slot = core_slot(names, name, size) if size > 0 else ASK_SLOT
            if slot == EXTENSION:
                kind = kind_of(names, name, size, declared, declared_ends, kinds, len(all_kinds))
                ask = not (
                    is_extension_name(names, name, size)
                    and is_new_name(entries, first_entry, entry, names, name, size)
                    and is_valid_extension(kind, values, at, end)
                )
                put_entry(entries, entry, name, size, at, end - at)
                entry += 1
                continue
            if slot == ASK_SLOT or spans[slot, 1, row] >= 0:
                ask = True
                continue
            spans[slot, 0, row] = at
            spans[slot, 1, row] = end - at
            if slot == TIME:
                micros, time_state = read_time(values, at, end)
                times[row] = micros
                ask = micros == NO_TIME
                continue
            if slot == SOURCE:
                required += 1
                if not is_known(known, KNOWN_SOURCES, values, at, end - at):
                    ask = not is_valid_core(slot, values, at, end)
                    if not ask:
                        remember(known, KNOWN_SOURCES, values, at, end - at)
                continue
            if slot in (ID, SPECVERSION, TYPE):
                required += 1
            ask = not is_valid_core(slot, values, at, end)
        outcome = ASK
        if content_types <= 1:
            if structured:
                if readable and not (has_null_records and null_records[row]):
                    outcome = STRUCTURED
            elif required == 4 and not ask:
                outcome = BINARY
            elif required == 0 and not ask:
                wanted = options & LENIENT if content_types else options & ASSUME_STRUCTURED
                outcome = ASK if wanted else NO_CLAIM
        if outcome == BINARY:
            start = int_at(record_at, row)
            spans[DATA, 0, row] = start
            if not (has_null_records and null_records[row]):
                spans[DATA, 1, row] = int_at(record_at, row + 1) - start
            time_states[row] = time_state
        else:
            entry = first_entry
            for slot in range(SLOTS):
                spans[slot, 1, row] = -1
            state[ENVELOPES] += outcome == STRUCTURED
        rows[row] = outcome
        entry_firsts[row] = first_entry
        entry_counts[row] = entry - first_entry
    state[ENTRIES] = entry
