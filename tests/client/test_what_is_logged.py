"""Tests of what clients log at INFO, each once: connections made and lost, and the result of rebalances."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from free_ports import free_ports
from penstock import Consumer, Producer
from penstock.client.cluster import connection_pool
from penstock.client.fetch import fetcher
from penstock.client.produce import sender
from penstock.errors import NetworkError
from penstock.testing import KafkaBroker


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log messages since the last call, at level INFO and above."""
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    caplog.clear()
    return [line for line in lines if line.startswith(("shop:", "group "))]


def test_connections(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "ONE_LOSS_S", 0.0)
    caplog.set_level(logging.INFO, "penstock.client")
    with KafkaBroker() as broker, Producer(broker.bootstrap_servers, client_id="shop") as producer:
        address = broker.bootstrap_servers
        producer.send("orders", b"1").result(timeout=30)
        producer.send("orders", b"2").result(timeout=30)
        assert said(caplog) == [f"shop: connected to {address}"]
        broker.restart()
        producer.send("orders", b"3").result(timeout=30)
        lost, *_, again = said(caplog)
        assert lost.startswith(f"shop: lost {address}, connecting again: ")
        assert again.startswith(f"shop: connected to {address}, after ")
        producer.send("orders", b"4").result(timeout=30)
        assert said(caplog) == []


def test_a_broker_that_is_away_for_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producer and consumer each log once that the broker is gone, that they wait, and that it is back."""
    monkeypatch.setattr(connection_pool, "ONE_LOSS_S", 0.0)
    for module in (sender, fetcher):
        monkeypatch.setattr(module, "COMPLAIN_AFTER_S", 0.1)
    caplog.set_level(logging.INFO, "penstock.client")
    with (
        KafkaBroker() as broker,
        Producer(broker.bootstrap_servers, client_id="shop") as producer,
        Consumer(broker.bootstrap_servers, client_id="till", fetch_max_wait_ms=20) as consumer,
    ):
        producer.send("orders", b"1").result(timeout=30)
        consumer.assign([("orders", 0)])
        consumer.seek_to_beginning()
        assert len(consumer.poll(30_000)) == 1
        caplog.clear()
        broker.stop()
        delivery = producer.send("orders", b"2")
        while len(waiting := complaints(caplog)) < 2:
            consumer.poll(50)
        # Many more attempts fail meanwhile.
        for _ in range(20):
            consumer.poll(50)
        assert complaints(caplog) == waiting
        broker.start()
        delivery.result(timeout=30)
        while not consumer.poll(1_000):
            pass
        lines = [record.getMessage() for record in caplog.records]
    shop = [line for line in lines if line.startswith("shop: ")]
    assert [line.split()[1] for line in shop] == ["lost", "1", "connected"], shop
    assert " records wait for " in shop[1]
    till = [line for line in lines if line.startswith(("till: ", "nothing of orders-0 for "))]
    assert [line.split()[1] for line in till] == ["lost", "of", "connected"], till
    assert len(lines) == len(shop) + len(till), lines


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return sorted(record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)


def test_a_fetch_that_is_given_up_is_no_lost_connection(
    servers: str,
    new_topic: Callable[..., str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_pool, "ONE_LOSS_S", 0.0)
    caplog.set_level(logging.INFO, "penstock.client")
    topic = new_topic()
    with Producer(servers) as producer, Consumer(servers, client_id="shop") as consumer:
        producer.send(topic, b"1").result(timeout=30)
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        assert len(consumer.poll(30_000)) == 1
        while consumer.stats().brokers[servers].connects == 2:
            consumer.poll(100)  # a fetch waits at the broker by now
            consumer.seek((topic, 0), 0)
            assert len(consumer.poll(30_000)) == 1
        [broker] = consumer.stats().brokers.values()
    assert said(caplog) == [f"shop: connected to {servers}"]
    assert broker.disconnects == 0


def test_a_broker_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock.client")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(NetworkError), Producer(address, client_id="shop", max_block_ms=300) as producer:
        producer.send("orders", b"1")
    [line] = said(caplog)
    assert line.startswith(f"shop: cannot reach {address}: ")


def test_rebalances(servers: str, new_topic: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    topic = new_topic(12)
    caplog.set_level(logging.INFO, "penstock.client.group")
    with Consumer(servers, group_id=topic) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(100)
        [line] = said(caplog)
        listed = ", ".join(f"{topic}-{number}" for number in range(10))
        assert line == f"group {topic}: assigned {listed} and 2 more"
        consumer.poll(50)
        assert said(caplog) == []
    assert said(caplog) == [f"group {topic}: revoked {listed} and 2 more"]
