"""The loops that write records: one column at a time, each row's part after what it has already.

A pass over a column appends one header, or one JSON member, to every row that has a value. Where the
next byte of a row goes is kept between the passes. For JSON a pass that only counts comes first, so
that every row's bytes lie where they belong from the start.
"""

from __future__ import annotations

import numpy as np

from penstock.cloudevents.columnar.envelopes import BACKSLASHES, QUOTES
from penstock.cloudevents.columnar.headers import BOOLEAN_KIND, INTEGER_KIND, kind_of
from penstock.cloudevents.columnar.judging import BASE64, NO_DATA, QUOTED, VERBATIM
from penstock.cloudevents.columnar.memory import (
    Bytes,
    Int32s,
    Ints,
    byte_at,
    copy_bytes,
    copy_word,
    int_at,
    pointer,
    put_byte,
    word_at,
)
from penstock.cloudevents.columnar.spans import copy_short
from penstock.cloudevents.columnar.texts import NO_DAY, has_no, is_plain
from penstock.records.jit import kernel

_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
).copy()
_SHORT_ESCAPES = np.frombuffer(b"btn\0fr", np.uint8).copy()
"""The letters that stand for U+0008 to U+000D after a backslash; U+000B has none."""
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_DATA = np.frombuffer(b',"data":', np.uint8).copy()
_DATA_BASE64 = np.frombuffer(b',"data_base64":"', np.uint8).copy()

DAY_MICROS = 86_400_000_000
MICROS_MIN, MICROS_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999."""

QUOTE, BACKSLASH, COMMA, COLON = 0x22, 0x5C, 0x2C, 0x3A


@kernel
def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number since 1970."""
    # Count from March, so that the leap day is the last of a year; 146,097 days are 400 years.
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    year += era * 400
    if month < 10:
        return year, month + 3, day
    return year + 1, month - 9, day


@kernel
def put_number(target: Bytes, to: int, number: int, digits: int) -> int:
    """Write a number with leading zeros; return where the next byte goes."""
    for place in range(to + digits - 1, to - 1, -1):
        put_byte(target, place, 0x30 + number % 10)
        number //= 10
    return to + digits


@kernel
def put_pair(target: Bytes, to: int, number: int) -> None:
    """Write a number of two digits."""
    tens = number // 10
    put_byte(target, to, 0x30 + tens)
    put_byte(target, to + 1, 0x30 + number - tens * 10)


@kernel
def put_triple(target: Bytes, to: int, number: int) -> int:
    """Write a number of three digits; return where the next byte goes."""
    hundreds = number // 100
    put_byte(target, to, 0x30 + hundreds)
    put_pair(target, to + 1, number - hundreds * 100)
    return to + 3


@kernel
def put_date(target: Bytes, to: int, days: int) -> None:
    """Write a day as ``YYYY-MM-DDT``."""
    year, month, day = civil(days)
    put_number(target, to, year, 4)
    put_byte(target, to + 4, 0x2D)
    put_pair(target, to + 5, month)
    put_byte(target, to + 7, 0x2D)
    put_pair(target, to + 8, day)
    put_byte(target, to + 10, 0x54)


@kernel
def put_time_of_day(target: Bytes, to: int, micros: int) -> int:
    """Write a time in UTC with 0, 3 or 6 digits after the second; return where the next byte goes."""
    seconds = micros // 1_000_000
    fraction = micros - seconds * 1_000_000
    minutes = seconds // 60
    hours = minutes // 60
    put_pair(target, to, hours)
    put_byte(target, to + 2, COLON)
    put_pair(target, to + 3, minutes - hours * 60)
    put_byte(target, to + 5, COLON)
    put_pair(target, to + 6, seconds - minutes * 60)
    to += 8
    if fraction:
        put_byte(target, to, 0x2E)
        millis = fraction // 1000
        to = put_triple(target, to + 1, millis)
        if fraction != millis * 1000:
            to = put_triple(target, to, fraction - millis * 1000)
    put_byte(target, to, 0x5A)
    return to + 1


@kernel
def write_times(
    micros: Ints,
    nulls: Bytes,
    text_ends: Int32s,
    texts: Bytes,
    text_nulls: Bytes,
    ends: Int32s,
    target: Bytes,
    missing: Bytes,
) -> None:
    """The texts of times: the one that is there, else one made of the time. `target` has room for all."""
    source, to_target, text_at = pointer(texts), pointer(target), pointer(text_ends)
    # Times of one day follow each other: the date is copied rather than worked out again.
    date_at, date_day = 0, NO_DAY
    to = 0
    for row in range(len(micros)):
        if len(text_nulls) == 0 or not text_nulls[row]:
            at = int_at(text_at, row)
            size = int_at(text_at, row + 1) - at
            copy_short(to_target, to, source, at, size)
            to += size
        elif len(nulls) == 0 or not nulls[row]:
            days = micros[row] // DAY_MICROS
            if days == date_day:
                copy_short(to_target, to, to_target, date_at, 11)
            else:
                put_date(to_target, to, days)
            date_at, date_day = to, days
            to = put_time_of_day(to_target, to + 11, micros[row] - days * DAY_MICROS)
        else:
            missing[row] = 1
        ends[row + 1] = to


@kernel
def measure_headers(
    name_size: int, ends: Int32s, nulls: Bytes, counts: Ints, name_sizes: Ints, value_sizes: Ints
) -> None:
    """Add what a header of that name will take to the sums of every row that has a text.

    Where no row is without, only the sizes of the values differ: the caller adds the rest.
    """
    if len(nulls) == 0:
        for row in range(len(counts)):
            value_sizes[row] += ends[row + 1] - ends[row]
        return
    for row in range(len(counts)):
        if not nulls[row]:
            counts[row] += 1
            name_sizes[row] += name_size
            value_sizes[row] += ends[row + 1] - ends[row]


@kernel
def append_headers(
    name: Bytes,
    ends: Int32s,
    data: Bytes,
    nulls: Bytes,
    headers: Ints,
    name_positions: Ints,
    value_positions: Ints,
    name_ends: Int32s,
    names: Bytes,
    value_ends: Int32s,
    values: Bytes,
) -> None:
    """Give every row that has a text a header of that name."""
    source, from_name, to_names, to_values = pointer(data), pointer(name), pointer(names), pointer(values)
    end_at = pointer(ends)
    name_size = len(name)
    for row in range(len(headers)):
        if len(nulls) > 0 and nulls[row]:
            continue
        at = int_at(end_at, row)
        size = int_at(end_at, row + 1) - at
        copy_short(to_names, name_positions[row], from_name, 0, name_size)
        copy_short(to_values, value_positions[row], source, at, size)
        name_positions[row] += name_size
        value_positions[row] += size
        headers[row] += 1
        name_ends[headers[row]] = name_positions[row]
        value_ends[headers[row]] = value_positions[row]


@kernel
def count_entries(
    ends: Int32s,
    name_ends: Int32s,
    value_ends: Int32s,
    value_nulls: Bytes,
    wrong: Bytes,
    counts: Ints,
    name_sizes: Ints,
    value_sizes: Ints,
) -> None:
    """Add what the headers of the extensions will take to every row's sums."""
    end_at, name_at, value_at = pointer(ends), pointer(name_ends), pointer(value_ends)
    for row in range(len(counts)):
        if wrong[row]:
            continue
        for entry in range(int_at(end_at, row), int_at(end_at, row + 1)):
            if len(value_nulls) > 0 and value_nulls[entry]:
                continue
            counts[row] += 1
            name_sizes[row] += int_at(name_at, entry + 1) - int_at(name_at, entry) + 3
            value_sizes[row] += int_at(value_at, entry + 1) - int_at(value_at, entry)


@kernel
def append_entry_headers(
    ends: Int32s,
    entry_name_ends: Int32s,
    entry_names: Bytes,
    entry_value_ends: Int32s,
    entry_values: Bytes,
    value_nulls: Bytes,
    order: Int32s,
    wrong: Bytes,
    prefix: Bytes,
    headers: Ints,
    name_positions: Ints,
    value_positions: Ints,
    name_ends: Int32s,
    names: Bytes,
    value_ends: Int32s,
    values: Bytes,
) -> None:
    """Give every row a header for each of its extensions, in order of name."""
    end_at, name_at, value_at = pointer(ends), pointer(entry_name_ends), pointer(entry_value_ends)
    from_names, from_values, from_prefix = pointer(entry_names), pointer(entry_values), pointer(prefix)
    to_names, to_values, order_at = pointer(names), pointer(values), pointer(order)
    for row in range(len(headers)):
        if wrong[row]:
            continue
        for place in range(int_at(end_at, row), int_at(end_at, row + 1)):
            entry = int_at(order_at, place)
            if len(value_nulls) > 0 and value_nulls[entry]:
                continue
            name, at = int_at(name_at, entry), int_at(value_at, entry)
            name_size, size = int_at(name_at, entry + 1) - name, int_at(value_at, entry + 1) - at
            copy_short(to_names, name_positions[row], from_prefix, 0, 3)
            copy_short(to_names, name_positions[row] + 3, from_names, name, name_size)
            copy_short(to_values, value_positions[row], from_values, at, size)
            name_positions[row] += name_size + 3
            value_positions[row] += size
            headers[row] += 1
            name_ends[headers[row]] = name_positions[row]
            value_ends[headers[row]] = value_positions[row]


@kernel
def skip_unquoted(data: Bytes, at: int, end: int) -> int:
    """Past whole words of text that stands between quotes as it is."""
    while at + 8 <= end:
        word = word_at(data, at)
        if not (is_plain(word) and has_no(QUOTES, word) and has_no(BACKSLASHES, word)):
            break
        at += 8
    return at


@kernel
def quoted_size(data: Bytes, at: int, end: int) -> int:
    """The bytes that a text takes between quotes."""
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
    """Write a text with the escapes that JSON needs; return where the next byte goes."""
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
    """Write bytes as base64 text; return where the next byte goes."""
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
def has_no_escapes(ends: Int32s, data: Bytes) -> bool:
    """Can a whole column stand between quotes as it is? Most can, and then need no second look."""
    source, at, end = pointer(data), int(ends[0]), int(ends[len(ends) - 1])
    while at < end:
        at = skip_unquoted(source, at, end)
        if at == end:
            break
        byte = byte_at(source, at)
        if byte < 0x20 or byte in (QUOTE, BACKSLASH):
            return False
        at += 1
    return True


@kernel
def measure_members(
    prefix_size: int, ends: Int32s, data: Bytes, nulls: Bytes, as_it_is: bool, sizes: Ints
) -> None:
    """Add what a member of each row that has a text will take."""
    source, end_at = pointer(data), pointer(ends)
    for row in range(len(sizes)):
        if len(nulls) > 0 and nulls[row]:
            continue
        at, end = int_at(end_at, row), int_at(end_at, row + 1)
        sizes[row] += prefix_size + 1 + (end - at if as_it_is else quoted_size(source, at, end))


@kernel
def append_members(
    prefix: Bytes, ends: Int32s, data: Bytes, nulls: Bytes, as_it_is: bool, positions: Ints, target: Bytes
) -> None:
    """Write a member, which begins with `prefix` up to its opening quote, for each row that has a text."""
    source, end_at, from_prefix, to_target = pointer(data), pointer(ends), pointer(prefix), pointer(target)
    size = len(prefix)
    for row in range(len(positions)):
        if len(nulls) > 0 and nulls[row]:
            continue
        to = positions[row]
        copy_short(to_target, to, from_prefix, 0, size)
        to += size
        at, end = int_at(end_at, row), int_at(end_at, row + 1)
        if as_it_is:
            copy_short(to_target, to, source, at, end - at)
            to += end - at
        else:
            to = put_quoted(to_target, to, source, at, end)
        put_byte(to_target, to, QUOTE)
        positions[row] = to + 1


@kernel
def measure_entries(
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
    sizes: Ints,
) -> None:
    """Add what the members of the extensions will take, and note which stand without quotes."""
    end_at, name_at, value_at = pointer(ends), pointer(name_ends), pointer(value_ends)
    from_names, from_values = pointer(names), pointer(values)
    declared_at, declared_end_at, kind_at = pointer(declared), pointer(declared_ends), pointer(kinds)
    for row in range(len(sizes)):
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
                sizes[row] += size + 4 + end - at
            else:
                sizes[row] += size + 6 + quoted_size(from_values, at, end)


@kernel
def append_entries(
    ends: Int32s,
    name_ends: Int32s,
    names: Bytes,
    value_ends: Int32s,
    values: Bytes,
    value_nulls: Bytes,
    order: Int32s,
    wrong: Bytes,
    bare: Bytes,
    positions: Ints,
    target: Bytes,
) -> None:
    """Write the members of the extensions, in order of name."""
    end_at, name_at, value_at, order_at = (
        pointer(ends),
        pointer(name_ends),
        pointer(value_ends),
        pointer(order),
    )
    from_names, from_values, to_target = pointer(names), pointer(values), pointer(target)
    for row in range(len(positions)):
        if wrong[row]:
            continue
        to = positions[row]
        for place in range(int_at(end_at, row), int_at(end_at, row + 1)):
            entry = int_at(order_at, place)
            if len(value_nulls) > 0 and value_nulls[entry]:
                continue
            name = int_at(name_at, entry)
            size = int_at(name_at, entry + 1) - name
            at, end = int_at(value_at, entry), int_at(value_at, entry + 1)
            put_byte(to_target, to, COMMA)
            put_byte(to_target, to + 1, QUOTE)
            copy_short(to_target, to + 2, from_names, name, size)
            to += size + 2
            put_byte(to_target, to, QUOTE)
            put_byte(to_target, to + 1, COLON)
            to += 2
            if bare[entry]:
                copy_short(to_target, to, from_values, at, end - at)
                to += end - at
            else:
                put_byte(to_target, to, QUOTE)
                to = put_quoted(to_target, to + 1, from_values, at, end)
                put_byte(to_target, to, QUOTE)
                to += 1
        positions[row] = to


@kernel
def measure_data(choices: Bytes, ends: Int32s, data: Bytes, sizes: Ints) -> None:
    """Add what the data of each row will take."""
    source, end_at = pointer(data), pointer(ends)
    for row in range(len(choices)):
        choice = choices[row]
        at, end = int_at(end_at, row), int_at(end_at, row + 1)
        if choice == VERBATIM:
            sizes[row] += 8 + end - at
        elif choice == BASE64:
            sizes[row] += 17 + (end - at + 2) // 3 * 4
        elif choice == QUOTED:
            sizes[row] += 10 + quoted_size(source, at, end)


@kernel
def append_data(choices: Bytes, ends: Int32s, data: Bytes, positions: Ints, target: Bytes) -> None:
    """Write `data` or `data_base64`."""
    source, end_at, to_target = pointer(data), pointer(ends), pointer(target)
    for row in range(len(choices)):
        choice = choices[row]
        if choice == NO_DATA:
            continue
        to = positions[row]
        at, end = int_at(end_at, row), int_at(end_at, row + 1)
        if choice == BASE64:
            copy_short(to_target, to, pointer(_DATA_BASE64), 0, 16)
            to = put_base64(to_target, to + 16, source, at, end)
            put_byte(to_target, to, QUOTE)
            to += 1
        else:
            copy_short(to_target, to, pointer(_DATA), 0, 8)
            to += 8
            if choice == VERBATIM:
                copy_bytes(to_target, to, source, at, end - at)
                to += end - at
            else:
                put_byte(to_target, to, QUOTE)
                to = put_quoted(to_target, to + 1, source, at, end)
                put_byte(to_target, to, QUOTE)
                to += 1
        positions[row] = to
