"""The loops that write times and headers: one column at a time, each row's part after what it has already.

A pass over a column appends one header to every row that has a value. Where the next byte of a row
goes is kept between the passes.
"""

from __future__ import annotations

from penstock.cloudevents.columnar.memory import (
    Bytes,
    Int32s,
    Ints,
    int_at,
    pointer,
    put_byte,
)
from penstock.cloudevents.columnar.spans import copy_short
from penstock.cloudevents.columnar.texts import NO_DAY
from penstock.records.jit import kernel

DAY_MICROS = 86_400_000_000
MICROS_MIN, MICROS_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999."""

COLON = 0x3A


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
