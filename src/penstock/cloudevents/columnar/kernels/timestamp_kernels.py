"""Compiled parsing of the common forms of RFC 3339 timestamps to microseconds since 1970."""

from __future__ import annotations

import numpy as np

from penstock.cloudevents.columnar.kernels.texts import DIGIT, skip_class
from penstock.records.kernels.compiled import Bytes, byte_at, int_at, kernel, pointer

_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334], np.int32)
NO_DAY = NO_TIME = -(1 << 62)

# How a timestamp relates to its text.
TIME_ABSENT, TIME_EXACT, TIME_WITH_TEXT, TIME_ONLY_TEXT = range(4)


@kernel
def number_at(data: Bytes, at: int, size: int) -> int:
    """Return the number that `size` decimal digits represent, or -1 if a byte is not a digit."""
    value = 0
    for index in range(size):
        digit = byte_at(data, at + index) - 0x30
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@kernel
def days_since_1970(year: int, month: int, day: int) -> int:
    """Return the number of days from 1970-01-01 to a date, or `NO_DAY` if the date does not exist."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month < 1 or month > 12 or day < 1:
        return NO_DAY
    length = 31
    if month == 2:
        length = 29 if leap else 28
    elif month in (4, 6, 9, 11):
        length = 30
    if day > length:
        return NO_DAY
    before = year - 1
    days = (
        before * 365
        + before // 4
        - before // 100
        + before // 400
        + int_at(pointer(_DAYS_BEFORE), month - 1)
        + day
    )
    if leap and month > 2:
        days += 1
    return days - 719_163


@kernel
def read_time(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return an RFC 3339 timestamp in microseconds since 1970, and `TIME_EXACT` or `TIME_WITH_TEXT`.

    The state is `TIME_EXACT` if formatting the microseconds gives the same text. The microseconds are
    `NO_TIME` if the text is not a timestamp, or has a rare form: leap seconds, the first and last years.
    """
    size = end - at
    if size < 20:
        return NO_TIME, 0
    year, month, day = number_at(data, at, 4), number_at(data, at + 5, 2), number_at(data, at + 8, 2)
    hour, minute, second = (
        number_at(data, at + 11, 2),
        number_at(data, at + 14, 2),
        number_at(data, at + 17, 2),
    )
    if byte_at(data, at + 4) != 0x2D or byte_at(data, at + 7) != 0x2D or byte_at(data, at + 10) != 0x54:
        return NO_TIME, 0
    if byte_at(data, at + 13) != 0x3A or byte_at(data, at + 16) != 0x3A:
        return NO_TIME, 0
    if year < 2 or year > 9998 or month < 0 or day < 0:
        return NO_TIME, 0
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return NO_TIME, 0
    days = days_since_1970(year, month, day)
    if days == NO_DAY:
        return NO_TIME, 0
    at += 19
    micros = 0
    exact = True
    if byte_at(data, at) == 0x2E:  # .
        stop = skip_class(data, at + 1, end, DIGIT)
        digits = stop - at - 1
        if digits == 0:
            return NO_TIME, 0
        kept = min(digits, 6)
        micros = number_at(data, at + 1, kept)
        for _ in range(kept, 6):
            micros *= 10
        # What is written has 0, 3 or 6 digits, and no more than needed.
        exact = (digits == 3 and micros != 0) or (digits == 6 and micros % 1000 != 0)
        at = stop
    seconds = days * 86400 + hour * 3600 + minute * 60 + second
    if at + 1 == end and byte_at(data, at) == 0x5A:  # Z
        return seconds * 1_000_000 + micros, TIME_EXACT if exact else TIME_WITH_TEXT
    if end - at != 6 or byte_at(data, at + 3) != 0x3A:
        return NO_TIME, 0
    sign = byte_at(data, at)
    hour, minute = number_at(data, at + 1, 2), number_at(data, at + 4, 2)
    if (sign != 0x2B and sign != 0x2D) or hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return NO_TIME, 0
    offset = hour * 3600 + minute * 60
    seconds += offset if sign == 0x2D else -offset
    return seconds * 1_000_000 + micros, TIME_WITH_TEXT
