"""Tests that caught exceptions are counted each time and logged at most once a minute."""

from __future__ import annotations

import logging

import pytest

from penstock.common.failures import KINDS_MAX, REPEAT_S, Failures


def fail(failures: Failures, component: str, error: Exception) -> None:
    try:
        raise error
    except Exception:
        failures.caught(component, "a test")


def test_each_is_counted_and_a_repetition_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    failures = Failures(lambda: now)
    with caplog.at_level(logging.ERROR, "penstock.broker"):
        for _ in range(3):
            fail(failures, "timer", ValueError("one"))
        assert [record.getMessage() for record in caplog.records] == ["timer failed: a test"]
        assert caplog.records[0].exc_info is not None
        fail(failures, "timer", KeyError("another type"))
        fail(failures, "request", ValueError("another component"))
        assert len(caplog.records) == 3
        now = REPEAT_S
        fail(failures, "timer", ValueError("one"))
    assert (
        caplog.records[-1].getMessage() == "timer failed: a test (2 more of its kind since the last report)"
    )
    assert failures.counts == {"timer": 5, "request": 1}


def test_kinds_are_not_remembered_without_end() -> None:
    failures = Failures(lambda: 0.0)
    for number in range(KINDS_MAX + 5):
        fail(failures, f"component {number}", ValueError())
    assert len(failures._reported) <= KINDS_MAX
