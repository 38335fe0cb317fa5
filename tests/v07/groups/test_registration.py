"""Tests of a Kafka 0.7 broker's registration in ZooKeeper, and of its log when the session ends."""

from __future__ import annotations

import logging

import pytest
from kazoo.client import KazooClient, KazooState

from penstock.v07.groups import zookeeper
from penstock.v07.groups.registration import Registration
from penstock.v07.settings import Settings


class OfflineClient(KazooClient):  # type: ignore[misc]  # kazoo has no types
    """A stand-in for a ZooKeeper client without a server: connected when started, lost when stopped."""

    def start(self, timeout: float = 15) -> None:
        self._make_state_change(KazooState.CONNECTED)

    def stop(self) -> None:
        self._make_state_change(KazooState.LOST)

    def close(self) -> None:
        pass

    def exists(self, path: str, watch: object = None) -> object:
        return object()


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[OfflineClient]:
    made: list[OfflineClient] = []

    class Kept(OfflineClient):
        def __init__(self, **options: object) -> None:
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr("kazoo.client.KazooClient", Kept)
    monkeypatch.setattr(zookeeper, "hold_when_free", lambda *_, **__: None)
    return made


def registration() -> Registration:
    return Registration(Settings({"zk.connect": "localhost:1"}), "h", 9092, lambda: ["t"], lambda _: 1)


def test_a_clean_close_does_not_warn_of_a_lost_session(
    clients: list[OfflineClient], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    one = registration()
    one.start()
    one.stop()
    assert len(clients) == 1
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_session_that_is_lost_is_told_and_made_up_for(
    clients: list[OfflineClient], caplog: pytest.LogCaptureFixture
) -> None:
    one = registration()
    one.start()
    clients[0]._make_state_change(KazooState.LOST)
    assert "the ZooKeeper session is lost" in caplog.text
    one.stop()
    assert caplog.text.count("the ZooKeeper session is lost") == 1


def test_all_nodes_of_a_registration_have_one_creator(
    clients: list[OfflineClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ZooKeeper node that Kafka 0.7 creates contains its creator's id.

    All nodes of one broker must have one id.
    """
    made: list[tuple[str, str]] = []
    ticks = iter(range(10**18, 2 * 10**18, 10**9))
    monkeypatch.setattr("time.time_ns", lambda: next(ticks))
    monkeypatch.setattr(
        zookeeper, "hold_when_free", lambda _, path, data, *, creator, **__: made.append((path, creator))
    )
    one = registration()
    one.start()
    one.announce("u")
    one.stop()
    assert [path for path, _ in made] == ["/brokers/ids/0", "/brokers/topics/t/0", "/brokers/topics/u/0"]
    assert len({creator for _, creator in made}) == 1
    again = registration()
    again.start()
    again.stop()
    assert made[-1][1] != made[0][1]


def test_a_registration_that_fails_does_not_warn_either(
    clients: list[OfflineClient], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("held by another")

    monkeypatch.setattr(zookeeper, "hold_when_free", refuse)
    with pytest.raises(RuntimeError, match="held by another"):
        registration().start()
    assert "lost" not in caplog.text


def test_segments_are_as_large_as_the_seed_says() -> None:
    assert Settings().number("log.file.size") == 512 << 20
    assert Settings().log_config("t").segment_bytes == 512 << 20
