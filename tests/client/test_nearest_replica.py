"""Tests of clients that read from the replica in their rack, and lose no records when it dies (KIP-392)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Consumer, Producer, read_topic
from penstock.broker.interceptors import Stage
from penstock.broker.network.server import Server
from penstock.model import TopicPartition
from penstock.protocol.api_keys import ApiKey
from penstock.testing import KafkaCluster

TOPIC = "t"
T0 = TopicPartition(TOPIC, 0)


class WatchedCluster(KafkaCluster):
    """A cluster that counts the Fetch requests of consumers at each node."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.served: Counter[int] = Counter()

    def _prepare(self, node: int, server: Server) -> None:
        super()._prepare(node, server)
        server.node.interceptors.set(Stage.CUSTOM, lambda route: self._counting(node, route))

    def _counting(self, node: int, route: Any) -> Any:
        if route.key != ApiKey.FETCH:
            return route

        def handle(request: Any, context: Any) -> Any:
            if request.replica_id < 0 and request.replica_state.replica_id < 0:
                self.served[node] += 1
            return route.handle(request, context)

        return route._replace(handle=handle)


@pytest.fixture
def cluster() -> Iterator[WatchedCluster]:
    with WatchedCluster(
        3, racks=("r1", "r2", "r3"), replica_selector_class="RackAwareReplicaSelector"
    ) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]], min_insync_replicas=2)
        yield cluster


def produce(cluster: KafkaCluster, first: int, end: int) -> None:
    with Producer(cluster.bootstrap_servers, acks="all") as producer:
        for future in [producer.send(TOPIC, b"%d" % number) for number in range(first, end)]:
            future.result(timeout=20)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read(consumer: Consumer, count: int) -> list[int]:
    found: list[int] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        found += [int(record.value or b"") for record in consumer.poll(200)]
    return found


def test_a_consumer_reads_from_its_rack_and_from_the_leader_when_that_broker_dies(
    cluster: WatchedCluster,
) -> None:
    produce(cluster, 0, 100)
    until(lambda: all(each.high_watermark == 100 for each in cluster.replicas(TOPIC)))
    cluster.served.clear()
    options = {"auto.offset.reset": "earliest", "client.rack": "r3", "fetch.max.wait.ms": 50}
    with Consumer(cluster.bootstrap_servers, options) as consumer:
        consumer.assign([T0])
        assert read(consumer, 100) == list(range(100))
        assert cluster.served[1] == 1
        assert cluster.served[3] >= 1
        assert not cluster.served[2]
        cluster.kill(3, fence=True)
        produce(cluster, 100, 200)
        assert read(consumer, 100) == list(range(100, 200))
        assert cluster.served[1] > 1


def test_tables_are_read_from_the_rack_too(cluster: WatchedCluster) -> None:
    produce(cluster, 0, 100)
    until(lambda: all(each.high_watermark == 100 for each in cluster.replicas(TOPIC)))
    cluster.served.clear()
    table = read_topic(TOPIC, cluster.bootstrap_servers, columns=["value"], config={"client.rack": "r2"})
    assert [int(value) for value in table["value"].to_pylist()] == list(range(100))
    assert cluster.served[1] == 1
    assert cluster.served[2] >= 1


def test_a_follower_leaves_out_what_was_aborted(cluster: WatchedCluster) -> None:
    with Producer(cluster.bootstrap_servers, {"transactional.id": "x"}) as producer:
        producer.begin_transaction()
        producer.send(TOPIC, b"0").result(timeout=20)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(TOPIC, b"1").result(timeout=20)
        producer.commit_transaction()
    until(lambda: all(each.high_watermark == 4 for each in cluster.replicas(TOPIC)))
    options = {
        "auto.offset.reset": "earliest",
        "client.rack": "r2",
        "isolation.level": "read_committed",
        "fetch.max.wait.ms": 50,
    }
    cluster.served.clear()
    with Consumer(cluster.bootstrap_servers, options) as consumer:
        consumer.assign([T0])
        assert read(consumer, 1) == [1]
    assert cluster.served[2] >= 1
