"""The share of each second that goes into opening logs, and the line that says it is used up."""

from __future__ import annotations

import logging

import pytest

from penstock.broker.partitions.openings import SAID_EVERY_S, Openings
from penstock.clock import ManualClock
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode


def open_one(openings: Openings, clock: ManualClock, ms: int) -> bool:
    """Whether a log that takes `ms` milliseconds to open was opened."""
    try:
        with openings:
            clock.advance(ms)
    except KafkaError as error:
        if error.code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise
        return False
    return True


def test_a_share_of_each_second_and_the_rest_is_told_to_come_again() -> None:
    clock = ManualClock()
    openings = Openings(clock, 400)
    assert [open_one(openings, clock, 150) for _ in range(5)] == [True, True, True, False, False]
    clock.advance(700)
    assert open_one(openings, clock, 150)


def test_one_log_is_opened_however_long_it_takes() -> None:
    clock = ManualClock()
    openings = Openings(clock, 400)
    assert open_one(openings, clock, 30_000)
    assert not open_one(openings, clock, 1)
    clock.advance(610)
    assert open_one(openings, clock, 1)


def test_the_log_says_once_a_minute_that_partitions_wait(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    openings = Openings(clock, 400)
    with caplog.at_level(logging.INFO, "penstock.broker"):
        for _ in range(10):
            assert open_one(openings, clock, 450)
            assert not open_one(openings, clock, 1)
            clock.advance(int(SAID_EVERY_S * 1000) // 8)
    assert len(caplog.records) == 2
    assert "has taken 450 ms of this second" in caplog.records[0].getMessage()
    assert "penstock.log.open.ms.max" in caplog.records[0].getMessage()
