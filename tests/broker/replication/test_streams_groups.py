"""Tests of streams groups (KIP-1071) in a cluster: the coordinator moves, and members keep their tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.groups.streams_bench import tasks_in, word_count
from broker.replication.test_cluster import ask, until
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from penstock.testing import KafkaCluster

GROUP = "g"


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    settings = {"replica_lag_time_max_ms": 3_600_000, "broker_session_timeout_ms": 3_600_000}
    with KafkaCluster(3, group_streams_initial_rebalance_delay_ms=0, **settings) as cluster:
        cluster.create_topic("t", partitions=2, replicas=[[1, 2, 3]] * 2)
        cluster.create_topic(OFFSETS_TOPIC, replicas=[[1, 2, 3], [2, 3, 1]], cleanup_policy="compact")
        yield cluster


def coordinator(cluster: KafkaCluster) -> int:
    node: int = cluster.coordinator(group=GROUP)
    return node


def beat(cluster: KafkaCluster, epoch: int, node: int | None = None) -> Any:
    request = StreamsGroupHeartbeatRequest(group_id=GROUP, member_id="a", member_epoch=epoch)
    if epoch == 0:
        request.topology, request.process_id, request.rebalance_timeout_ms = word_count(), "p", 10_000
        request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
    return ask(cluster, node or coordinator(cluster), request, 0)


def described(cluster: KafkaCluster) -> Any:
    request = StreamsGroupDescribeRequest(group_ids=[GROUP])
    return ask(cluster, coordinator(cluster), request, 0).groups[0]


def test_a_group_goes_on_at_another_node(cluster: KafkaCluster) -> None:
    epoch, tasks = beat(cluster, 0).member_epoch, None
    deadline = time.monotonic() + 30
    while not tasks:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        answer = beat(cluster, epoch)
        epoch, tasks = answer.member_epoch, tasks_in(answer.active_tasks)
    assert tasks == {"0": [0, 1], "1": [0, 1]}
    assert {len(cluster.partition(name, 1).replicas) for name in ("r", "c")}
    before, first = described(cluster), coordinator(cluster)
    others = [node for node in (1, 2, 3) if node != first]
    assert beat(cluster, epoch, node=others[0]).error_code == ErrorCode.NOT_COORDINATOR
    cluster.kill(first, fence=True)
    until(lambda: coordinator(cluster) in others)
    until(lambda: described(cluster).error_code == 0)
    assert described(cluster) == before
    answer = beat(cluster, epoch)
    assert (answer.error_code, answer.member_epoch, answer.active_tasks) == (0, epoch, None)
    assert beat(cluster, -1).error_code == 0
    deleted = ask(cluster, coordinator(cluster), DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert deleted.results[0].error_code == 0
    assert described(cluster).error_code == ErrorCode.GROUP_ID_NOT_FOUND
