"""Converts texts to times as Spark's SQL does: to microseconds since 1970. No I/O, no libraries.

Of Spark's forms, those with a date are accepted; a zone must follow seconds.

If a zone skips an hour, Spark moves a time within it forward by an hour; if the zone repeats an hour,
the first of the two counts (Java's `LocalDateTime.atZone`). `datetime` with a `fold` of 0 does the same.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.errors import ConfigError
from penstock.queries.pushdown.wanted import microseconds

SHAPE = "'2026-11-01', '2026-11-01 08:30:00' or '2026-11-01 08:30:00.250+01:00'"

_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?"
    r"[ ]?(Z|UTC|[+-]\d\d:\d\d|[A-Z][A-Za-z_]+/[A-Za-z_/+-]+)?)?)?",
    re.ASCII,
)

_OFFSET_MAX = timedelta(hours=18)
"""The largest offset from UTC that a time zone can have in Java."""


class Moment(NamedTuple):
    """A time in microseconds since 1970; a text without a time zone is read as UTC."""

    us: int
    has_zone: bool


def moment(text: str) -> Moment:
    """Parse text as a time, and return the `Moment`.

    Raises:
        ConfigError: the text has another form, or there is no such time or zone.
    """
    found = _TIME.fullmatch(text.strip(" "))
    if found is None:
        raise ConfigError(f"where: {text!r} is no time here; times are written as {SHAPE}")
    year, month, day, hour, minute, second, fraction, name = found.groups()
    zone = UTC if name is None else _zone(name)
    try:
        local = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0").ljust(6, "0")),
        )
        us = microseconds(local.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        raise ConfigError(f"where: there is no time {text!r}") from None
    assert us is not None  # it has a zone
    return Moment(us, name is not None)


def _zone(name: str) -> tzinfo:
    if name in ("Z", "UTC"):
        return UTC
    if name[0] in "+-":
        offset = timedelta(hours=int(name[1:3]), minutes=int(name[4:]))
        if int(name[4:]) > 59 or offset > _OFFSET_MAX:
            raise ConfigError(f"where: there is no zone {name!r}")
        return timezone(-offset if name[0] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"where: the zone {name!r} is not known here: write an offset such as '+01:00'"
        ) from None
