"""Times and durations in options, with one syntax for all commands."""

from __future__ import annotations

import re

from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.moments import duration_ms, moment_ms

TIME_HELP = "2026-01-31T12:00:00Z (UTC without a zone), '1h ago', or milliseconds since 1970"
"""The syntax of a TIME, for help texts."""

DURATION_HELP = "90s, 15m, 1h30m, 7d or PT1H30M"
"""The syntax of a DURATION, for help texts."""


def parse_time(word: str, option: str) -> int:
    """Return a time in ms since 1970. The text is such a number, ``now``, ISO 8601, or like ``1h ago``.

    Raises:
        ConfigError: the text has another form; the message begins with `option`.
    """
    if re.fullmatch(r"\d{1,18}", word, flags=re.ASCII):
        return int(word)
    now_ms = SystemClock().now_ms()
    if word.strip().lower() == "now":
        return now_ms
    try:
        found_ms = moment_ms(word, now_ms)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None
    if found_ms < 0:
        raise ConfigError(f"{option}: {word!r} is before 1970, where Kafka's time begins")
    return found_ms


def parse_duration(word: str, option: str, unit_ms: int | None = None) -> int:
    """Return a duration in ms. A bare number counts units of `unit_ms` ms, if `unit_ms` is given.

    Raises:
        ConfigError: the text has another form; the message begins with `option`.
    """
    if unit_ms is not None and re.fullmatch(r"\d{1,15}", word, flags=re.ASCII):
        return int(word) * unit_ms
    try:
        return duration_ms(word)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None
