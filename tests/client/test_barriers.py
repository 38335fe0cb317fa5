"""Tests of unexpected exceptions, in a user's callback or in the client: they end only the current step."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Broker, Consumer, Producer, read_topic
from penstock.client import background_loop as background
from penstock.client.fetch.fetcher import Fetcher
from penstock.client.group.member import MembershipDriver
from penstock.client.produce.accumulator import Accumulator
from penstock.client.produce.sender import Sender
from penstock.errors import DecodeError

ERRORS = [ValueError("a fault"), MemoryError("a fault"), RecursionError("a fault")]
ids = [type(error).__name__ for error in ERRORS]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(group_initial_rebalance_delay_ms=0) as broker:
        yield broker


def raise_once(monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, error: Exception) -> list[int]:
    """Make a method raise on its first call; return a list that gets an element when it raises."""
    original = getattr(holder, name)
    raised: list[int] = []

    def raising(*arguments: Any, **named: Any) -> Any:
        if not raised:
            raised.append(1)
            raise error
        return original(*arguments, **named)

    monkeypatch.setattr(holder, name, raising)
    return raised


@pytest.mark.parametrize("error", [*ERRORS, SystemExit(1)], ids=[*ids, "SystemExit"])
def test_a_callback_of_a_delivery_that_raises_leaves_the_others_theirs(
    error: BaseException, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    def bad(_: object) -> None:
        raise error

    told: list[object] = []
    with Producer(broker.bootstrap_servers, linger_ms=20) as producer:
        for topic in ("a", "b", "c"):
            delivery = producer.send(topic, b"value")
            delivery.add_done_callback(bad)
            delivery.add_done_callback(told.append)
        producer.flush()
        assert producer.send("a", b"more").result().offset == 1
    assert len(told) == 3
    assert sum("has raised" in record.getMessage() for record in caplog.records) == 3


@pytest.mark.parametrize("error", ERRORS, ids=ids)
@pytest.mark.parametrize(
    ("holder", "name"), [(Sender, "_send_due"), (Accumulator, "drain"), (Sender, "_judge")]
)
def test_a_turn_of_the_producer_that_raises_is_followed_by_another(
    holder: Any, name: str, error: Exception, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        producer.send("a", b"first").result()
        raised = raise_once(monkeypatch, holder, name, error)
        delivery = producer.send("a", b"second")
        failure = delivery.exception(timeout=20)
        assert raised
        assert failure is None or "could not be dealt with" in str(failure)
        producer.send("a", b"third").result(timeout=20)
    values = [bytes(value) for value in read_topic("a", broker.bootstrap_servers)["value"].to_pylist()]
    assert values[0] == b"first"
    assert values[-1] == b"third"


@pytest.mark.parametrize("error", ERRORS, ids=ids)
def test_a_turn_of_the_fetcher_that_raises_is_followed_by_another(
    error: Exception, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        producer.send("a", b"value").result()
    raised = raise_once(monkeypatch, Fetcher, "_take_turn", error)
    with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([("a", 0)])
        records: list[Any] = []
        while not records:
            records = list(consumer.poll(20))
    assert raised
    assert bytes(records[0].value) == b"value"


@pytest.mark.parametrize("error", ERRORS, ids=ids)
def test_a_request_of_a_member_that_raises_is_asked_again(
    error: Exception, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        producer.send("a", b"value").result()
    raised = raise_once(monkeypatch, MembershipDriver, "_perform", error)
    with Consumer(broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["a"])
        told: list[str] = []
        records: list[Any] = []
        while not records:
            try:
                records = list(consumer.poll(20))
            except DecodeError as failure:
                told.append(str(failure))  # the application hears of it, and may go on
    assert all("has failed" in text for text in told)
    assert raised


def test_the_thread_of_all_clients_outlives_what_ends_loops(caplog: pytest.LogCaptureFixture) -> None:
    loop = background.background_loop()
    ended = threading.Event()

    def end() -> None:
        ended.set()
        raise SystemExit(1)

    with caplog.at_level(logging.ERROR):
        loop.call_soon_threadsafe(end)
        assert ended.wait(20)
        assert background.run(asyncio.sleep(0, "still there")) == "still there"
    assert [r for r in caplog.records if "tried to end the thread" in r.getMessage()]


def test_who_waits_is_told_when_the_work_cannot_be_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = background.background_loop()

    def create_task(coroutine: Any) -> Any:
        coroutine.close()
        raise MemoryError("a fault")

    with monkeypatch.context() as patch:
        patch.setattr(loop, "create_task", create_task)
        with pytest.raises(MemoryError, match="a fault"):
            background.run(asyncio.sleep(0))
    background.run(asyncio.sleep(0))
