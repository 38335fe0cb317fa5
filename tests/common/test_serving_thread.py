"""Tests of a thread that runs an event loop: it starts, stops, starts again, and reports its errors."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.common.listening.serving_thread import ServingThread


def test_it_serves_from_start_to_stop_as_often_as_wanted() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        seen.append(f"up in {threading.current_thread().name}")
        yield
        seen.append("down")

    thread = ServingThread(serving)
    thread.stop()
    for round_number in range(2):
        thread.start(f"t{round_number}")
        assert thread.is_running
        thread.start("ignored")
        assert seen[-1] == f"up in t{round_number}"
        thread.stop()
        assert not thread.is_running
        assert seen[-1] == "down"
    assert len(seen) == 4


@pytest.mark.parametrize("error", [OSError("no"), KeyError("an error of ours"), SystemExit(3)])
def test_what_keeps_it_from_starting_is_raised(error: BaseException) -> None:
    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        if failing:
            raise error
        yield

    failing = True
    thread = ServingThread(serving)
    with pytest.raises(type(error)) as caught:
        thread.start("t")
    assert caught.value is error
    assert not thread.is_running
    failing = False
    thread.start("t")
    thread.stop()


def test_what_goes_wrong_at_the_end_is_raised_once() -> None:
    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        yield
        raise OSError("the disk is full")

    thread = ServingThread(serving)
    thread.start("t")
    with pytest.raises(OSError, match="the disk is full"):
        thread.stop()
    thread.stop()
