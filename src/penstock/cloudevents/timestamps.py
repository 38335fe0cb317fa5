"""RFC 3339 timestamps (rule T7): validation, conversion to `datetime`, and the canonical form.

A legal timestamp may have no `datetime`: the year 0000, or a leap second at the very end of the year 9999.
Other leap seconds count as the second that follows, as in POSIX.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from penstock.cloudevents.grammar import COMMON_TIMESTAMP, TIMESTAMP
from penstock.cloudevents.outcome import InvalidEventError, shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
_ONE_SECOND = timedelta(seconds=1)
_parts_of = re.compile(TIMESTAMP).fullmatch
_is_common = re.compile(COMMON_TIMESTAMP).fullmatch
_from_text = datetime.fromisoformat


def parse_common(text: str) -> datetime:
    """Return the `datetime` of a text that matches the pattern `COMMON_TIMESTAMP`.

    Raises:
        ValueError: the date does not exist.
    """
    return _from_text(text)


def parse_timestamp(name: str, text: str) -> datetime | None:
    """Return the `datetime` of a timestamp, cut to microseconds, with the text's own offset.

    Returns None for a legal timestamp outside of the years 1 to 9999 in UTC.

    Raises:
        InvalidEventError: T7, `text` is not an RFC 3339 date-time. `name` is used in the reason.
    """
    if _is_common(text):
        try:
            return _from_text(text)
        except ValueError:
            raise InvalidEventError("T7", f"{name} is not a date of the calendar: {shown(text)}") from None
    match = _parts_of(text)
    if match is None:
        raise InvalidEventError("T7", f"{name} is not an RFC 3339 timestamp: {shown(text)}")
    return _parse_rare(name, text, match)


def _parse_rare(name: str, text: str, match: re.Match[str]) -> datetime | None:
    """Return the `datetime` of a timestamp in a rare form: leap second, unusual year, or lower case."""
    year, _, _, second, _ = match.groups()
    # Year 0 of the proleptic calendar is a leap year, and so is 2000.
    stand_in = ("2000" if year == "0000" else year) + text[4:].upper()
    if second == "60":
        stand_in = stand_in[:17] + "59" + stand_in[19:]
    try:
        moment = _from_text(stand_in)
        if second == "60":
            moment += _ONE_SECOND
    except OverflowError:
        return None
    except ValueError:
        raise InvalidEventError("T7", f"{name} is not a date of the calendar: {shown(text)}") from None
    return moment if year != "0000" and _fits(moment) else None


def _fits(moment: datetime) -> bool:
    return _FIRST <= moment <= _LAST


def format_timestamp(name: str, moment: datetime) -> str:
    """Return RFC 3339 text with 0, 3 or 6 digits after the second, and ``Z`` for UTC.

    Raises:
        InvalidEventError: T7, `moment` has no offset from UTC.
    """
    offset = moment.utcoffset()
    if offset is None:
        raise InvalidEventError("T7", f"{name} has no offset from UTC: {moment!r}")
    if offset.seconds % 60 or offset.microseconds:
        moment = moment.astimezone(UTC)
        offset = timedelta(0)
    micros = moment.microsecond
    text = moment.isoformat(
        timespec="seconds" if not micros else "microseconds" if micros % 1000 else "milliseconds"
    )
    return text if offset else text[:-6] + "Z"


def instant(text: str) -> tuple[int, int, str]:
    """Return the instant of a legal timestamp in days, seconds and digits of the fraction, for comparison."""
    match = _parts_of(text)
    if match is None:
        raise InvalidEventError("T7", f"not an RFC 3339 timestamp: {shown(text)}")
    year, _, _, second, fraction = match.groups()
    # 400 years later is the same calendar and keeps the year 0 within reach of datetime.
    upper = text.upper()
    leap = second == "60"
    whole = upper[4:17] + ("59" if leap else second)
    zone = upper[-1:] if upper.endswith("Z") else upper[-6:]
    shifted = int(year) + (400 if int(year) < 5000 else -400)
    moment = _from_text(f"{shifted:04}{whole}{zone}").astimezone(UTC)
    days = moment.toordinal() + (146_097 if int(year) >= 5000 else -146_097)
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second + leap
    return days + seconds // 86400, seconds % 86400, (fraction or "").rstrip("0")


def timestamp_of(seconds: int, nanos: int) -> str:
    """Return RFC 3339 text in UTC, with 0, 3, 6 or 9 digits after the second.

    `seconds` since 1970 must be in the years 1 to 9999, and `nanos` below a second.
    """
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
    if nanos == 0:
        return f"{text}Z"
    digits = f"{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}.{digits}Z"
