"""Tests of the limit on the share of each second in which a broker opens logs, and of its log message."""

from __future__ import annotations

import logging

import pytest

from penstock.broker.partitions.openings import SAID_EVERY_S, Openings
from penstock.clock import ManualClock
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode


def open_one(openings: Openings, clock: ManualClock, ms: int) -> bool:
    """Open a log that takes `ms` milliseconds; return True if the limit allowed it."""
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


def test_a_client_that_waits_between_two_openings_is_never_refused() -> None:
    clock = ManualClock()
    openings = Openings(clock, 500)
    for _ in range(3000):
        assert open_one(openings, clock, 10)
        clock.advance(10)


@pytest.mark.parametrize("share_ms", [1, 100, 400, 900])
def test_openings_keep_to_their_share(share_ms: int) -> None:
    """The time spent on opening logs stays within the share, however long one takes.

    Neither slow openings nor frequent attempts exceed it.
    """
    for each_ms, pause_ms in ((1, 0), (3, 1), (50, 20), (700, 100)):
        clock = ManualClock()
        openings = Openings(clock, share_ms)
        spent_ms, began = 0, clock.monotonic()
        while clock.monotonic() - began < 100:
            spent_ms += each_ms * open_one(openings, clock, each_ms)
            clock.advance(max(pause_ms, 1))
        # A debt beyond twice the share is remitted, so that no log waits more than a second.
        assert spent_ms <= share_ms * 101 + 100 * each_ms * (each_ms > share_ms)


@pytest.mark.parametrize("share_ms", [1000, 5000])
def test_all_of_a_second_is_no_limit(share_ms: int) -> None:
    clock = ManualClock()
    openings = Openings(clock, share_ms)
    assert all(open_one(openings, clock, 100) for _ in range(5000 // 100))


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
    assert "its share of 400 ms in a second" in caplog.records[0].getMessage()
    assert "penstock.log.open.ms.max" in caplog.records[0].getMessage()
