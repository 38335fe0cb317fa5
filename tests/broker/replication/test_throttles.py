"""Tests of replication throttles (KIP-73), which limit only followers that are not in sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker.wire_client import WireClient
from for_each import for_each
from penstock.broker.config.values import BrokerConfig
from penstock.broker.replication.throttles import ReplicationThrottle
from penstock.clock import ManualClock
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch
from penstock.testing import KafkaCluster

RATE = {"leader.replication.throttled.rate": "1000", "follower.replication.throttled.rate": "1000"}


class Replicas:
    """A stand-in for a partition, with the attributes that a throttle reads."""

    def __init__(self, replicas: str, in_sync: tuple[int, ...] = (), index: int = 0) -> None:
        self.config = self
        self.in_sync = in_sync
        self.index = index
        self._replicas = replicas

    def text(self, name: str) -> str:
        return self._replicas


@for_each(
    [
        (side, replicas, in_sync, is_held_back)
        for replicas, in_sync, is_held_back in [
            ("*", (), True),
            ("0:1", (), True),
            ("5:3, 0:1", (), True),
            ("0:2", (), False),
            ("1:1", (), False),
            ("", (), False),
            ("*", (2,), False),
        ]
        for side in ["leader", "follower"]
    ]
)
def test_a_limit_is_about_replicas_that_are_listed_and_not_in_sync(
    side: str, replicas: str, in_sync: tuple[int, ...], is_held_back: bool
) -> None:
    throttle = ReplicationThrottle(side, 1, BrokerConfig({}).with_dynamic(RATE, {}))
    partition: Any = Replicas(replicas, in_sync)
    assert not throttle.holds_back(partition, 2, 0.0)
    throttle.took(partition, 20_000, 0.0)
    assert throttle.holds_back(partition, 2, 0.1) == is_held_back


def test_a_rate_is_measured_over_windows() -> None:
    rates = dict(RATE)
    throttle = ReplicationThrottle("leader", 1, BrokerConfig({}).with_dynamic(rates, {}))
    partition: Any = Replicas("*")
    throttle.took(partition, 10_000, 0.0)
    assert not throttle.holds_back(partition, 2, 0.5)  # in ten seconds it may be as much
    throttle.took(partition, 5_000, 1.0)
    assert throttle.holds_back(partition, 2, 1.5)
    rates["leader.replication.throttled.rate"] = "2000"
    assert not throttle.holds_back(partition, 2, 1.5)
    del rates["leader.replication.throttled.rate"]
    throttle.took(partition, 1 << 30, 2.0)
    assert not throttle.holds_back(partition, 2, 2.0)


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, clock=ManualClock(1_700_000_000_000), replica_fetch_max_bytes=1024) as cluster:
        cluster.create_topic("t", replicas=[[1, 2]])
        yield cluster


def ask(cluster: KafkaCluster, node: int, request: Any, version: int) -> Any:
    with WireClient(int(cluster.address(node).rpartition(":")[2])) as client:
        return client.ask(request, version)


def configure(cluster: KafkaCluster, node: int, kind: int, name: str, **settings: str) -> None:
    configs = [AlterableConfig(name=key.replace("_", "."), value=text) for key, text in settings.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    [done] = ask(cluster, node, IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert done.error_code == 0, done.error_message


def produce(cluster: KafkaCluster, count: int) -> None:
    for _ in range(count):
        batch = memoryview(bytearray(encode_batch([(None, b"v" * 1000, (), 5)])))
        topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=[topic])
        assert ask(cluster, 1, request, 9).responses[0].partition_responses[0].error_code == 0


def end_at(cluster: KafkaCluster, node: int) -> int:
    return next(each.log_end_offset for each in cluster.replicas("t") if each.node == node)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_follower_that_comes_late_takes_no_more_than_it_may(cluster: KafkaCluster, side: str) -> None:
    cluster.kill(2, fence=True)
    produce(cluster, 40)
    limits = {f"{side}_replication_throttled_rate": "500"}
    configure(cluster, 1, 4, "", **limits)
    configure(cluster, 1, 2, "t", **{f"{side}_replication_throttled_replicas": "0:1,0:2"})
    cluster.start(2)
    taken = []
    for _ in range(12):
        cluster.advance(seconds=1)
        taken.append(end_at(cluster, 2))
    assert 4 <= taken[-1] <= 20, taken  # 500 bytes in a second, a thousand for a record, ten seconds at once
    assert cluster.partition("t").in_sync == (1,)
    configure(cluster, 1, 4, "", **dict.fromkeys(limits, "1000000"))
    for _ in range(20):
        cluster.advance(seconds=1)
    assert end_at(cluster, 2) == 40
    assert cluster.partition("t").in_sync == (1, 2)


def test_replicas_that_are_in_sync_are_not_held_back(cluster: KafkaCluster) -> None:
    both = {f"{side}_replication_throttled_rate": "1" for side in ("leader", "follower")}
    configure(cluster, 1, 4, "", **both)
    configure(
        cluster,
        1,
        2,
        "t",
        **{f"{side}_replication_throttled_replicas": "*" for side in ("leader", "follower")},
    )
    produce(cluster, 10)
    for _ in range(3):
        cluster.advance(seconds=1)
    assert end_at(cluster, 2) == 10
