"""Tests that kill a broker between an acknowledgement and its answer: stored results are not redelivered.

The tests use the real leader, share coordinator and state topic.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from broker.bench_node import batch_of, produce_request
from broker.sharing.test_over_sockets import acknowledge, acquired, fetch, until
from broker.wire_client import WireClient
from penstock.protocol.messages import alter_share_group_offsets_request as altering
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.testing import KafkaBroker, KafkaCluster

RECORDS = 12


def begin_group(port: int, version: int = 0) -> None:
    """Create group ``g`` on topic ``t`` at offset 0 with AlterShareGroupOffsets, without members."""
    with WireClient(port) as client:
        request = altering.AlterShareGroupOffsetsRequest(
            group_id="g",
            topics=[
                altering.AlterShareGroupOffsetsRequestTopic(
                    topic_name="t",
                    partitions=[altering.AlterShareGroupOffsetsRequestPartition(partition_index=0)],
                )
            ],
        )

        def ask() -> list[int]:
            answer = client.ask(request, version)
            return [
                answer.error_code,
                *(each.error_code for topic in answer.responses for each in topic.partitions),
            ]

        until(ask, lambda codes: codes == [0, 0])


def begun(client: WireClient, topic_id: bytes) -> Any:
    """Begin a share session; retry until the leader has read the state, and return the response."""
    return until(
        lambda: client.ask(fetch(topic_id, 0, max_wait_ms=1000), 2),
        lambda answer: bool(acquired(answer)) or _is_empty(answer),
    )


def _is_empty(answer: Any) -> bool:
    """Return True if a response has no acquired records and no error."""
    codes = [part.error_code for topic in answer.responses for part in topic.partitions]
    return answer.error_code == 0 and codes == [0]


def offsets(answer: Any) -> list[int]:
    return [offset for first, last, _ in acquired(answer) for offset in range(first, last + 1)]


@pytest.mark.parametrize("seed", range(3))
def test_a_broker_that_is_killed_before_it_answers(seed: int, tmp_path: Path) -> None:
    dice = Random(seed)
    left = list(range(RECORDS))
    with KafkaBroker(data_dir=tmp_path) as broker:
        broker.create_topic("t")
        begin_group(broker.port)
        now_ms = broker.clock.now_ms()
        with WireClient(broker.port) as client:
            client.ask(produce_request(batch_of(*[b"x"] * RECORDS, time_ms=now_ms)), 9)
        for _ in range(3):  # once more, and a record would come alone: it was delivered often
            assert broker.server is not None
            topic_id = broker.server.node.cluster.topic("t").id
            done = dice.choice(left)
            with WireClient(broker.port) as client:
                assert offsets(begun(client, topic_id)) == left
                fault = broker.faults.drop("ShareAcknowledge", applied=True, times=1)
                client.send(acknowledge(topic_id, 1, done), 2)
                fault.wait()
                broker.restart(kill=True)
            left.remove(done)


def test_a_leader_that_is_killed_before_it_answers() -> None:
    with KafkaCluster(3) as cluster:
        cluster.create_topic("t", replicas=3)
        begin_group(_port(cluster, _group_coordinator(cluster)))
        leader = cluster.partition("t").leader
        server = cluster._nodes[leader].server
        assert server is not None
        topic_id = server.node.cluster.topic("t").id
        with WireClient(_port(cluster, leader)) as client:
            client.ask(produce_request(batch_of(*[b"x"] * 3)), 9)
            assert offsets(begun(client, topic_id)) == [0, 1, 2]
            fault = cluster.faults.drop("ShareAcknowledge", applied=True, times=1)
            client.send(acknowledge(topic_id, 1, 1), 2)
            fault.wait()
            cluster.kill(leader, fence=True)
        moved = until(lambda: cluster.partition("t").leader, lambda node: node not in (leader, -1))
        with WireClient(_port(cluster, moved)) as client:
            assert offsets(begun(client, topic_id)) == [0, 2]


def _port(cluster: KafkaCluster, node: int) -> int:
    return cluster.ports[cluster.node_ids.index(node)]


def _group_coordinator(cluster: KafkaCluster) -> int:
    with WireClient(cluster.ports[0]) as client:
        request = FindCoordinatorRequest(coordinator_keys=["g"])
        answer = until(lambda: client.ask(request, 4), lambda found: found.coordinators[0].error_code == 0)
        return int(answer.coordinators[0].node_id)
