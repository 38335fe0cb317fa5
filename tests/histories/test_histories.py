"""A short history with Penstock's clients on its own broker, and longer ones with every client."""

from __future__ import annotations

import logging

import pytest

from compat.peers import need_module
from histories.clients import CLIENTS
from histories.run import make


@pytest.fixture(autouse=True)
def quiet_libraries(caplog: pytest.LogCaptureFixture) -> None:
    for library in ("aiokafka", "kafka", "penstock"):
        caplog.set_level(logging.CRITICAL, logger=library)


def test_a_short_one() -> None:
    entry = make("broker", ["penstock"], seed=3, seconds=2)
    assert entry.anomalies == {}
    assert entry.records > 0


@pytest.mark.soak
@pytest.mark.compat
@pytest.mark.filterwarnings("ignore")  # of clients that are left behind in mid-air
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", ["broker", "cluster", "kafka"])
@pytest.mark.parametrize("seed", range(3))
def test_every_client(target: str, seed: int) -> None:
    for name in ("confluent_kafka", "kafka", "aiokafka"):
        need_module(name)
    entry = make(target, list(CLIENTS), seed=1000 + seed, seconds=60)
    assert entry.anomalies == {}, entry.line()
    assert entry.transactions > 0
