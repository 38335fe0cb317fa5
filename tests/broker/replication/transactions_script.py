"""Transactions of one producer while brokers that it needs die or move: the same steps for every client.

Each event is tied to a step of a transaction, not to a time: before its records are sent, between them, or
before its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock import Consumer
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.testing import KafkaCluster

TOPIC, ID, GROUP = "t", "x", "g"
PARTITIONS = 3


class Transactional(Protocol):
    """An interface to a transactional producer of any client library.

    `end` returns once the outcome is acknowledged.
    """

    def begin(self) -> None: ...
    def write(self, partition: int, value: bytes) -> None: ...
    def store_offset(self, offset: int) -> None: ...
    def end(self, *, commits: bool) -> None: ...


def make_cluster() -> KafkaCluster:
    """Return a cluster of three brokers with long timeouts, so that no slow broker is taken for dead."""
    return KafkaCluster(
        3,
        broker_session_timeout_ms=60_000,
        replica_lag_time_max_ms=60_000,
        offsets_topic_num_partitions=3,
        transaction_state_log_num_partitions=3,
    )


def kill(cluster: KafkaCluster, node: int) -> None:
    """Kill a broker and fence it, so that others lead at once, and then start it again."""
    cluster.kill(node, fence=True)
    cluster.start(node)


HAPPENINGS: dict[str, Callable[[KafkaCluster], object]] = {
    "the coordinator moves": lambda cluster: cluster.move_coordinator(transactional_id=ID),
    "the coordinator dies": lambda cluster: kill(cluster, cluster.coordinator(transactional_id=ID)),
    "a leader moves": lambda cluster: cluster.move_leader(TOPIC, 1),
    "a leader dies": lambda cluster: kill(cluster, cluster.partition(TOPIC, 1).leader),
    "the group's coordinator moves": lambda cluster: cluster.move_coordinator(group=GROUP),
    "the group's coordinator dies": lambda cluster: kill(cluster, cluster.coordinator(group=GROUP)),
}


def run(cluster: KafkaCluster, producer: Transactional, happening: str) -> tuple[list[bytes], int]:
    """Run transactions with an event at each of three steps, each followed by an aborted transaction.

    Returns the committed values and the last committed offset.
    """
    committed: list[bytes] = []
    number = 0
    for place in range(-1, 3):
        for commits in (True, False):
            happens = commits and place >= 0
            values = [f"{number}:{partition}".encode() for partition in range(PARTITIONS)]
            producer.begin()
            for step, value in enumerate(values):
                if happens and place == step < 2:
                    HAPPENINGS[happening](cluster)
                producer.write(step, value)
            producer.store_offset(number)
            if happens and place == 2:
                HAPPENINGS[happening](cluster)
            producer.end(commits=commits)
            if commits:
                committed += values
            number += 1
        settle(cluster)
    return committed, number - 2


def settle(cluster: KafkaCluster) -> None:
    """Wait until all replicas are in sync, so that the next broker may die."""
    deadline = time.monotonic() + 30
    places = [(topic, index) for topic in (TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC) for index in range(3)]
    while any(len(cluster.partition(*place).in_sync) < 3 for place in places):
        assert time.monotonic() < deadline, "replicas do not catch up"
        time.sleep(0.01)


def check(cluster: KafkaCluster, committed: Sequence[bytes], offset: int) -> None:
    """Check that readers get each committed transaction completely and once, and the group has its offset."""
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "group.id": GROUP}
    read: list[bytes] = []
    with Consumer(cluster.bootstrap_servers, settings) as consumer:
        found = consumer.committed([(TOPIC, 0)])
        stored = next(iter(found.values()))
        assert stored is not None
        assert stored.offset == offset
        consumer.assign([(TOPIC, partition) for partition in range(PARTITIONS)])
        for partition in range(PARTITIONS):
            consumer.seek((TOPIC, partition), 0)
        deadline = time.monotonic() + 30
        while len(read) < len(committed) and time.monotonic() < deadline:
            read += [record.value or b"" for record in consumer.poll(500)]
    assert sorted(read) == sorted(committed)
    deadline = time.monotonic() + 30
    while any(is_open(cluster, partition) for partition in range(PARTITIONS)):
        assert time.monotonic() < deadline, "a transaction stays open"
        time.sleep(0.01)


def is_open(cluster: KafkaCluster, partition: int) -> bool:
    """Return True if a transaction is open at the leader of a partition."""

    def look() -> bool:
        leader = cluster._shared.quorum.image.topics[TOPIC].partitions[partition].leader
        found = cluster._shared.nodes[leader].cluster.topics[TOPIC].partitions[partition]
        return bool(found.last_stable_offset < found.log.end_offset)

    return cluster._call(look)
