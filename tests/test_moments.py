"""Tests of parsing times and durations as text, and of the errors for invalid ones."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from for_each import for_each
from penstock.moments import duration_ms, moment_ms

NOW_MS = 1_800_000_000_000

DURATIONS = {
    "250ms": 250,
    "90s": 90_000,
    "15m": 900_000,
    "15 min": 900_000,
    "1h": 3_600_000,
    "1.5h": 5_400_000,
    "1h30m": 5_400_000,
    "1 hour 30 minutes": 5_400_000,
    "7d": 604_800_000,
    "2 weeks": 1_209_600_000,
    "PT1H30M": 5_400_000,
    "pt0.5s": 500,
    "P1DT1S": 86_401_000,
    "P2W": 1_209_600_000,
}


@pytest.mark.parametrize(("text", "expected"), DURATIONS.items())
def test_durations(text: str, expected: int) -> None:
    assert duration_ms(text) == expected
    assert moment_ms(text, NOW_MS) == NOW_MS - expected
    assert moment_ms(f"{text} ago", NOW_MS) == NOW_MS - expected


@for_each(["", "h", "1", "1x", "1h 3", "P", "PT", "-1h", "1,5h", "ago", "1e3s", "٣h"])
def test_what_is_no_duration_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(ValueError, match="write 90s, 15m"):
        duration_ms(text)


def test_durations_as_objects() -> None:
    assert duration_ms(timedelta(hours=1)) == 3_600_000
    assert moment_ms(timedelta(hours=1), NOW_MS) == NOW_MS - 3_600_000
    assert moment_ms("100000w", NOW_MS) == 0
    with pytest.raises(ValueError, match="negative"):
        duration_ms(timedelta(hours=-1))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01T01:00:01+01:00", 1_000),
        ("1970-01-01 00:00:01", 1_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:00.0001Z", 1),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000),
        (date(1970, 1, 2), 86_400_000),
    ],
)
def test_times(given: str | datetime, expected: int) -> None:
    assert moment_ms(given, NOW_MS) == expected


def test_a_datetime_without_a_zone_is_local_time() -> None:
    naive = datetime(2026, 1, 31, 12)
    assert moment_ms(naive, NOW_MS) == int(naive.timestamp() * 1000)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "20260131", "12:00", "yesterday", "5"])
def test_what_is_no_time_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(ValueError, match="write a time such as 2026-01-31T12:00:00Z"):
        moment_ms(text, NOW_MS)
