"""Tests of transactions of Penstock's producer while coordinators and leaders move or die at fixed steps."""

from __future__ import annotations

import os
import time
from random import Random

import pytest

from broker.replication.transactions_script import HAPPENINGS, ID, TOPIC, check, make_cluster, run
from penstock import Producer
from penstock.client import GroupMetadata

SOAK_S = float(os.environ.get("PENSTOCK_SOAK_S", "300"))


class Ours:
    """Penstock's producer behind the interface of the transactions script."""

    def __init__(self, servers: str) -> None:
        self.producer = Producer(servers, {"transactional.id": ID, "retry.backoff.ms": "5"})
        self.producer.init_transactions()

    def begin(self) -> None:
        self.producer.begin_transaction()

    def write(self, partition: int, value: bytes) -> None:
        self.producer.send(TOPIC, value, partition=partition).result(timeout=30)

    def store_offset(self, offset: int) -> None:
        self.producer.send_offsets({(TOPIC, 0): offset}, GroupMetadata("g"))

    def end(self, *, commits: bool) -> None:
        if commits:
            self.producer.commit_transaction()
        else:
            self.producer.abort_transaction()


def survive(happening: str) -> None:
    """Run the script in a new cluster, and check what readers see afterwards."""
    with make_cluster() as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]], min_insync_replicas=2)
        ours = Ours(cluster.bootstrap_servers)
        with ours.producer:
            committed, offset = run(cluster, ours, happening)
            check(cluster, committed, offset)


@pytest.mark.parametrize("happening", HAPPENINGS)
def test_each_committed_transaction_is_whole_and_no_aborted_one_is_seen(happening: str) -> None:
    survive(happening)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_S + 300)
def test_it_is_so_for_long() -> None:
    end, random, count = time.monotonic() + SOAK_S, Random(1), 0
    while time.monotonic() < end:
        survive(random.choice(list(HAPPENINGS)))
        count += 1
    assert count > 0
