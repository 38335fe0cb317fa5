"""A data directory of ours goes to Apache Kafka and comes back, and clients stay connected meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from compat.handover import IN_TRANSACTIONS, PLAIN, Connected, Turns
from penstock import Admin

pytestmark = [
    pytest.mark.compat,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_clients_stay_connected(tmp_path: Path) -> None:
    """Ours, Apache Kafka 4.3 by a dynamic quorum, ours: each stops in order, on the same port."""
    turns = Turns(tmp_path, dynamic_quorum=True)
    with turns.ours():
        with Admin(turns.servers) as admin:
            for topic in (PLAIN, IN_TRANSACTIONS):
                admin.create_topic(topic, 2)
        clients = Connected(turns.servers)
        time.sleep(3)
    try:
        with turns.kafka("4.3.0"):
            time.sleep(3)
        with turns.ours():
            time.sleep(3)
            clients.finish()
            clients.check()
    finally:
        clients.stop()
