"""The loops that write times and headers of binary-mode records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.cloudevents.columnar.kernels.envelope_write_kernels import (
    BUFFER_SIZE,
    FACTS,
    HAS_NULLS,
    PREFIX_SIZE,
    put_text,
)
from penstock.cloudevents.columnar.kernels.spans import copy_short
from penstock.cloudevents.columnar.kernels.timestamp_kernels import NO_DAY
from penstock.records.kernels.compiled import (
    Bytes,
    Int32s,
    Ints,
    byte_at,
    bytes_of,
    copy_sixteen,
    int_at,
    ints_of,
    kernel,
    pointer,
    put_byte,
    put_int,
)

DAY_MICROS = 86_400_000_000
MICROS_MIN, MICROS_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The range of writable times, in microseconds since 1970: the years 1 to 9999."""

COLON = 0x3A
NAME_BYTES = 16
"""The size to which the header name of each core attribute is padded, in bytes."""
_PREFIX = np.frombuffer(b"ce_", np.uint8).copy()


@kernel
def civil(days: int) -> tuple[int, int, int]:
    """Return (year, month, day) of a day, given as the number of days since 1970-01-01."""
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
    """Write a number with leading zeros; return the position after it."""
    for place in range(to + digits - 1, to - 1, -1):
        put_byte(target, place, 0x30 + number % 10)
        number //= 10
    return to + digits


@kernel
def put_pair(target: Bytes, to: int, number: int) -> None:
    """Write a number from 0 to 99 as two digits."""
    tens = number // 10
    put_byte(target, to, 0x30 + tens)
    put_byte(target, to + 1, 0x30 + number - tens * 10)


@kernel
def put_triple(target: Bytes, to: int, number: int) -> int:
    """Write a number of three digits; return the position after it."""
    hundreds = number // 100
    put_byte(target, to, 0x30 + hundreds)
    put_pair(target, to + 1, number - hundreds * 100)
    return to + 3


@kernel
def put_date(target: Bytes, to: int, days: int) -> None:
    """Write a date as ``YYYY-MM-DDT``."""
    year, month, day = civil(days)
    put_number(target, to, year, 4)
    put_byte(target, to + 4, 0x2D)
    put_pair(target, to + 5, month)
    put_byte(target, to + 7, 0x2D)
    put_pair(target, to + 8, day)
    put_byte(target, to + 10, 0x54)


@kernel
def put_time_of_day(target: Bytes, to: int, micros: int) -> int:
    """Write a UTC time with 0, 3 or 6 digits after the second; return the position after it."""
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
    """Write each time as its given text, or as text made from its microseconds if none was given."""
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
def write_headers(
    header_names: Bytes,
    texts_of: Sequence[Bytes],
    ends_of: Sequence[Int32s],
    nulls_of: Sequence[Bytes],
    facts: Int32s,
    entry_ends: Int32s,
    entry_name_ends: Int32s,
    entry_names: Bytes,
    entry_value_ends: Int32s,
    entry_values: Bytes,
    entry_nulls: Bytes,
    order: Int32s,
    wrong: Bytes,
    list_ends: Int32s,
    name_ends: Int32s,
    names: Bytes,
    value_ends: Int32s,
    values: Bytes,
) -> None:
    """Write the headers of every valid row: one for each attribute that it has, and for each extension.

    Columns are given as to `envelope_write_kernels.write_envelopes`, with `NAME_BYTES` for each name.
    Extensions follow in order of name; without `order` there are none.
    """
    to_names, to_values, from_names = pointer(names), pointer(values), pointer(header_names)
    fact_at, end_at, order_at = pointer(facts), pointer(entry_ends), pointer(order)
    entry_name_at, entry_value_at = pointer(entry_name_ends), pointer(entry_value_ends)
    from_entry_names, from_entry_values = pointer(entry_names), pointer(entry_values)
    list_end_at, name_end_at, value_end_at = pointer(list_ends), pointer(name_ends), pointer(value_ends)
    header = name_to = value_to = 0
    for row in range(len(wrong)):
        if not wrong[row]:
            for column in range(len(facts) // FACTS):
                fact = column * FACTS
                if int_at(fact_at, fact + HAS_NULLS) and byte_at(bytes_of(nulls_of, column), row):
                    continue
                copy_sixteen(to_names, name_to, from_names, column * NAME_BYTES)
                name_to += int_at(fact_at, fact + PREFIX_SIZE)
                text_ends, texts = ints_of(ends_of, column), bytes_of(texts_of, column)
                at, size = int_at(text_ends, row), int_at(text_ends, row + 1) - int_at(text_ends, row)
                value_to = put_text(to_values, value_to, texts, at, size, int_at(fact_at, fact + BUFFER_SIZE))
                header += 1
                put_int(name_end_at, header, name_to)
                put_int(value_end_at, header, value_to)
            if len(order) > 0:
                for place in range(int_at(end_at, row), int_at(end_at, row + 1)):
                    entry = int_at(order_at, place)
                    if len(entry_nulls) > 0 and entry_nulls[entry]:
                        continue
                    name, at = int_at(entry_name_at, entry), int_at(entry_value_at, entry)
                    name_size = int_at(entry_name_at, entry + 1) - name
                    size = int_at(entry_value_at, entry + 1) - at
                    copy_short(to_names, name_to, pointer(_PREFIX), 0, 3)
                    copy_short(to_names, name_to + 3, from_entry_names, name, name_size)
                    copy_short(to_values, value_to, from_entry_values, at, size)
                    name_to += name_size + 3
                    value_to += size
                    header += 1
                    put_int(name_end_at, header, name_to)
                    put_int(value_end_at, header, value_to)
        put_int(list_end_at, row + 1, header)
