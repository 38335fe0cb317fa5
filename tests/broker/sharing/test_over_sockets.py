"""Tests of share groups over sockets: injected faults, a test clock, and leaders that move."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from broker.bench_node import batch_of, produce_request
from broker.sharing.memory_persister import MemoryPersister
from broker.wire_client import WireClient
from penstock.protocol.messages import share_acknowledge_request as acknowledging
from penstock.protocol.messages import share_fetch_request as fetching
from penstock.testing import KafkaBroker, KafkaCluster


def fetch(topic_id: bytes, epoch: int, max_wait_ms: int = 0) -> fetching.ShareFetchRequest:
    asked = [fetching.FetchPartition(partition_index=0)]
    return fetching.ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_records=500,
        batch_size=500,
        topics=[fetching.FetchTopic(topic_id=topic_id, partitions=asked)],
    )


def acknowledge(topic_id: bytes, epoch: int, offset: int) -> acknowledging.ShareAcknowledgeRequest:
    batch = acknowledging.AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=[1])
    asked = acknowledging.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    return acknowledging.ShareAcknowledgeRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        topics=[acknowledging.AcknowledgeTopic(topic_id=topic_id, partitions=[asked])],
    )


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for part in topic.partitions
        for each in part.acquired_records
    ]


def prepared(node: Any, persister: MemoryPersister) -> bytes:
    node.share_persister = persister
    node.cluster.resource_configs[32, "g"] = {"share.auto.offset.reset": "earliest"}
    return bytes(node.cluster.topic("t").id)


def until(tried: Callable[[], Any], done: Callable[[Any], bool]) -> Any:
    for _ in range(2000):
        answer = tried()
        if done(answer):
            return answer
        time.sleep(0.005)
    raise AssertionError(f"still {answer}")


def test_the_clock_of_tests_ends_locks_and_waits() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t")
        assert broker.server is not None
        topic_id = prepared(broker.server.node, MemoryPersister())
        with WireClient(broker.port) as client, WireClient(broker.port) as other:
            now_ms = broker.clock.now_ms()
            client.ask(produce_request(batch_of(b"x", b"y", time_ms=now_ms)), 9)
            assert acquired(client.ask(fetch(topic_id, 0), 2)) == [(0, 1, 1)]
            request = fetch(topic_id, 0, max_wait_ms=300_000)
            request.member_id = "other"
            other.send(request, 2)
            until(lambda: broker.server and len(broker.server.node.sharing.sessions), lambda n: n == 2)
            broker.advance(31)
            assert acquired(other.receive()[1]) == [(0, 1, 2)]


def test_an_answer_that_is_lost_ends_the_session_with_its_connection() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t")
        assert broker.server is not None
        persister = MemoryPersister()
        topic_id = prepared(broker.server.node, persister)
        with WireClient(broker.port) as client:
            client.ask(produce_request(batch_of(b"x", b"y")), 9)
            assert acquired(client.ask(fetch(topic_id, 0), 2)) == [(0, 1, 1)]
            broker.faults.close("ShareAcknowledge", applied=True, times=1)
            client.send(acknowledge(topic_id, 1, 0), 2)
            assert client.is_closed_by_peer()
        with WireClient(broker.port) as client:
            assert acquired(client.ask(fetch(topic_id, 0), 2)) == [(1, 1, 2)], (
                "0 was acknowledged all the same"
            )
            broker.faults.fail("ShareAcknowledge", "INVALID_RECORD_STATE", topic="t", times=1)
            answer = client.ask(acknowledge(topic_id, 1, 1), 2)
            assert answer.responses[0].partitions[0].error_code == 121
        assert persister.states["g", topic_id, 0].start_offset == 1


def test_the_next_leader_goes_on_with_what_is_stored() -> None:
    with KafkaCluster(3) as cluster:
        cluster.create_topic("t", replicas=3)
        persister = MemoryPersister()
        for node in cluster.node_ids:
            server = cluster._nodes[node].server
            assert server is not None
            topic_id = prepared(server.node, persister)
        leader = cluster.partition("t").leader
        with WireClient(cluster.ports[cluster.node_ids.index(leader)]) as client:
            client.ask(produce_request(batch_of(b"x", b"y", b"z")), 9)
            assert acquired(client.ask(fetch(topic_id, 0), 2)) == [(0, 2, 1)]
            assert client.ask(acknowledge(topic_id, 1, 0), 2).responses[0].partitions[0].error_code == 0
            client.send(fetch(topic_id, 2, max_wait_ms=60_000), 2)
            cluster.move_leader("t")
            answer = client.receive()[1]
            moved = cluster.partition("t").leader
            assert moved != leader
            part = answer.responses[0].partitions[0]
            assert (part.error_code, part.current_leader.leader_id) == (6, moved)
            assert [each.node_id for each in answer.node_endpoints] == [moved]
            refused = client.ask(acknowledge(topic_id, 3, 1), 2)
            assert refused.responses[0].partitions[0].error_code == 6
            assert [each.node_id for each in refused.node_endpoints] == [moved]
        with WireClient(cluster.ports[cluster.node_ids.index(moved)]) as client:
            assert acquired(client.ask(fetch(topic_id, 0, max_wait_ms=5000), 2)) == [(1, 2, 1)]
