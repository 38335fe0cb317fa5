"""Tests of KIP-848 groups in a cluster: answered changes are replicated, and survive their coordinator."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from broker.replication.test_cluster import ask, until
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.common.java_hash import partition_of
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.testing import KafkaCluster

GROUP = "g"


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, replica_lag_time_max_ms=3_600_000, broker_session_timeout_ms=3_600_000) as cluster:
        cluster.create_topic("t", partitions=4, replicas=[[1, 2, 3]] * 4)
        cluster.create_topic(OFFSETS_TOPIC, replicas=[[1, 2, 3], [2, 3, 1]], cleanup_policy="compact")
        yield cluster


def beat(cluster: KafkaCluster, member: str, epoch: int, node: int | None = None, **fields: Any) -> Any:
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member, member_epoch=epoch, **fields)
    return ask(cluster, node or cluster.coordinator(group=GROUP), request, 1)


def describe(cluster: KafkaCluster) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=[GROUP])
    return ask(cluster, cluster.coordinator(group=GROUP), request, 1).groups[0]


def test_a_group_goes_on_where_its_coordinator_moves_to(cluster: KafkaCluster) -> None:
    first = cluster.coordinator(group=GROUP)
    joined = beat(cluster, "a", 0)
    assert (joined.error_code, joined.member_epoch) == (0, 2)
    before = describe(cluster)
    others = [node for node in (1, 2, 3) if node != first]
    assert beat(cluster, "a", 2, node=others[0]).error_code == ErrorCode.NOT_COORDINATOR
    cluster.kill(first, fence=True)
    until(lambda: cluster.coordinator(group=GROUP) in others)
    until(lambda: describe(cluster).error_code == 0)
    assert describe(cluster) == before
    answer = beat(cluster, "a", 2)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, None)
    assert beat(cluster, "a", 3).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(cluster, "a", -1).error_code == 0
    assert describe(cluster).group_state == "Empty"


def test_an_epoch_is_answered_when_followers_have_it(cluster: KafkaCluster) -> None:
    """A join that only the leader has stored gets no answer until the followers have it."""
    partition = partition_of(GROUP, 2)
    leader = cluster.partition(OFFSETS_TOPIC, partition).leader
    others = [node for node in (1, 2, 3) if node != leader]
    for node in others:
        cluster.freeze_follower(node)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(beat(cluster, "a", 0, node=leader)))
    asking.start()
    asking.join(0.3)
    assert not answers
    for node in others:
        cluster.thaw_follower(node)
    asking.join(20)
    assert answers[0].member_epoch == 2
