"""Times and durations as text: ``2026-01-31T12:00:00Z``, ``1h``, ``90 minutes ago``, ``PT1H30M``.

The parsers return milliseconds: since 1970 for a time, or the length of a duration. No function reads a
clock: for a duration that means a time before now, the caller gives the current time.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
"""The length in milliseconds of each unit, by short name, such as ``h``. `_LONG_NAMES` has the long names."""

_LONG_NAMES = {
    "sec": "s", "second": "s", "seconds": "s", "min": "m", "minute": "m", "minutes": "m", "hour": "h",
    "hours": "h", "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.ASCII)
_PARTS = re.compile(r"(?:\d+(?:\.\d+)?\s*[a-z]+\s*)+", re.ASCII)
_ISO_DURATION = re.compile(
    r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_MOMENT_MS_MAX = 1 << 62

DURATION_ADVICE = "write 90s, 15m, 1h30m, 7d, or in ISO 8601 PT1H30M"
MOMENT_ADVICE = "write a time such as 2026-01-31T12:00:00Z, or a duration before now such as 1h or 7d"


def duration_ms(value: str | timedelta) -> int:
    """Return the milliseconds of ``1h30m``, ``90 seconds``, ``PT1H30M`` (ISO 8601) or a `timedelta`.

    Raises:
        ValueError: `value` is not a duration, or is negative; the message says what to write.
    """
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise ValueError(f"{value!r} is negative: a duration is needed")
        return value // timedelta(milliseconds=1)
    word = value.strip().lower()
    iso = _ISO_DURATION.fullmatch(word.upper())
    if iso is not None and any(iso.groups()):
        weeks, days, hours, minutes, seconds = (float(part or 0) for part in iso.groups())
        return round(((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
    total = 0.0
    if _PARTS.fullmatch(word):
        for number, name in _PART.findall(word):
            unit = UNITS_MS.get(_LONG_NAMES.get(name, name))
            if unit is None:
                raise ValueError(f"{value!r}: {name!r} is no unit of time; {DURATION_ADVICE}")
            total += float(number) * unit
        if total < _MOMENT_MS_MAX:
            return round(total)
    raise ValueError(f"{value!r} is no duration; {DURATION_ADVICE}")


def moment_ms(value: str | date | timedelta, now_ms: int) -> int:
    """Return the milliseconds since 1970 of a time, or of a duration before `now_ms` (at least 0).

    Text is a time in ISO 8601, where a time without a zone is UTC, or a duration, with or without ``ago``. A
    `datetime` without a zone is local time, as everywhere in Python; a `date` begins at midnight UTC.
    Fractions of a millisecond are rounded up, so that records older than the time are not included.

    Raises:
        ValueError: `value` is none of these; the message says what to write.
    """
    if isinstance(value, timedelta):
        return max(0, now_ms - duration_ms(value))
    if isinstance(value, datetime):
        return _of_datetime(value.astimezone())
    if isinstance(value, date):
        return _of_datetime(datetime(value.year, value.month, value.day, tzinfo=UTC))
    word = value.strip()
    if is_duration(word):
        return max(0, now_ms - duration_ms(word.lower().removesuffix("ago")))
    if "-" in word:
        try:
            moment = datetime.fromisoformat(word)
        except ValueError:
            raise ValueError(f"{value!r} is no time; {MOMENT_ADVICE}") from None
        return _of_datetime(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
    raise ValueError(f"{value!r} is no time; {MOMENT_ADVICE}")


def is_duration(word: str) -> bool:
    """Return True if a text looks like a duration and not like a time; its units may still be wrong."""
    word = word.strip().lower().removesuffix("ago").strip()
    iso = _ISO_DURATION.fullmatch(word.upper())
    return (iso is not None and any(iso.groups())) or _PARTS.fullmatch(word) is not None


def _of_datetime(moment: datetime) -> int:
    return -((datetime(1970, 1, 1, tzinfo=UTC) - moment) // timedelta(milliseconds=1))
