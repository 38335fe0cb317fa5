"""Attacks on a cluster: those on one broker, sent to all brokers, and one with false replica ids."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence

from attack.attacks import (
    Attack,
    Target,
    connections,
    extremes,
    fetch_request,
    garbage_in_batches,
    many_tags,
    members_and_ids,
    nonsense,
    repetition,
    sessions,
    unread_answers,
)
from broker.wire_client import WireClient
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

GOOD_TOPIC = "good-topic"


class ClusterTarget(Target):
    """The brokers of a cluster that an attack uses: each new connection goes to a random one."""

    def __init__(self, ports: Sequence[int], rng: random.Random, seconds: float) -> None:
        super().__init__(ports[0], rng, seconds)
        self._ports = ports

    @property
    def port(self) -> int:
        """The port of a broker, drawn at random each time the property is read."""
        return self.rng.choice(self._ports)

    @port.setter
    def port(self, port: int) -> None:
        """Ignore an assigned port, because the target has the ports of several brokers."""


def false_replicas(target: Target) -> None:
    """Send Fetch requests with replica ids and false fetch offsets for the good client's topic.

    A broker that believed them would advance the high watermark too far.
    """
    rng = target.rng
    while target.goes_on:
        replica = rng.choice((0, 1, 2, 3, 4, 2**31 - 1))
        fetch = fetch_request(GOOD_TOPIC, 1, 1000)
        fetch.replica_id = replica
        fetch.max_wait_ms = 10
        part = fetch.topics[0].partitions[0]
        part.fetch_offset = part.log_start_offset = rng.choice((0, 1, 10**6, 2**63 - 1))
        part.current_leader_epoch = rng.choice((-1, 0, 1))
        part.last_fetched_epoch = rng.choice((-1, 0, 7))
        offsets = ListOffsetsRequest(replica_id=replica)
        offsets.topics = [
            ListOffsetsTopic(
                name=GOOD_TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
        ]
        epochs = OffsetForLeaderEpochRequest(replica_id=replica)
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=rng.choice((0, 5)))
        epochs.topics = [OffsetForLeaderTopic(topic=GOOD_TOPIC, partitions=[asked])]
        with contextlib.suppress(OSError), WireClient(target.port, timeout_s=5) as client:
            client.ask(fetch, 12)
            client.ask(offsets, 5)
            client.ask(epochs, 3)


CLUSTER_ATTACKS = (
    Attack(false_replicas),
    Attack(connections),
    Attack(garbage_in_batches),
    Attack(repetition),
    Attack(sessions),
    Attack(members_and_ids),
    Attack(unread_answers),
    Attack(nonsense),
    Attack(many_tags),
    Attack(extremes, 2),
)
