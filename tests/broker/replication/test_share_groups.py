"""Tests of share groups (KIP-932) in a cluster: both coordinators move, answered writes are replicated."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.replication.test_cluster import ask, until
from penstock import Admin, Producer, Record, ShareConsumer
from penstock.broker.groups.share_state.keys import ShareKey
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from penstock.common.java_hash import partition_of
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages import alter_share_group_offsets_request as alter
from penstock.protocol.messages import describe_share_group_offsets_request as describe
from penstock.protocol.messages import write_share_group_state_request as write
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.testing import KafkaCluster

GROUP = "g"
PARTITIONS = 4


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    settings = {"replica_lag_time_max_ms": 3_600_000, "broker_session_timeout_ms": 3_600_000}
    with KafkaCluster(3, group_share_max_assignment_interval_ms=15_000, **settings) as cluster:
        cluster.create_topic("t", partitions=PARTITIONS, replicas=[[1, 2, 3]] * PARTITIONS)
        cluster.create_topic(OFFSETS_TOPIC, replicas=[[1, 2, 3], [2, 3, 1]], cleanup_policy="compact")
        cluster.create_topic(SHARE_STATE_TOPIC, replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        yield cluster


def coordinator(cluster: KafkaCluster) -> int:
    node: int = cluster.coordinator(group=GROUP)
    return node


def beat(cluster: KafkaCluster, member: str, epoch: int, node: int | None = None) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=["t"] if epoch == 0 else None,
    )
    return ask(cluster, node or coordinator(cluster), request, 1)


def described(cluster: KafkaCluster) -> Any:
    return ask(cluster, coordinator(cluster), ShareGroupDescribeRequest(group_ids=[GROUP]), 1).groups[0]


def offsets(cluster: KafkaCluster) -> dict[int, tuple[int, int]]:
    asked = describe.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    request = describe.DescribeShareGroupOffsetsRequest(groups=[asked])
    group = ask(cluster, coordinator(cluster), request, 1).groups[0]
    return {
        each.partition_index: (each.start_offset, each.lag)
        for topic in group.topics
        for each in topic.partitions
    }


def join(cluster: KafkaCluster, member: str) -> int:
    """Let a member join and wait until it has all partitions; return its epoch."""
    epoch: int = beat(cluster, member, 0).member_epoch
    until(lambda: len(offsets(cluster)) == PARTITIONS)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        answer = beat(cluster, member, epoch)
        epoch = answer.member_epoch
        if answer.assignment is not None and answer.assignment.topic_partitions:
            assert answer.assignment.topic_partitions[0].partitions == list(range(PARTITIONS))
            return epoch
        time.sleep(0.1)
    raise AssertionError("no partitions are assigned")


def topic_id(cluster: KafkaCluster) -> bytes:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    found: bytes = ask(cluster, 1, asked, 12).topics[0].topic_id
    return found


def test_partitions_are_initialized_by_coordinators_on_all_nodes_and_survive_each(
    cluster: KafkaCluster,
) -> None:
    epoch = join(cluster, "a")
    before = described(cluster)
    first = coordinator(cluster)
    others = [node for node in (1, 2, 3) if node != first]
    assert beat(cluster, "a", epoch, node=others[0]).error_code == ErrorCode.NOT_COORDINATOR
    cluster.kill(first, fence=True)
    until(lambda: coordinator(cluster) in others)
    until(lambda: described(cluster).error_code == 0)
    assert described(cluster) == before
    answer = beat(cluster, "a", epoch)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, epoch, None)
    until(lambda: len(offsets(cluster)) == PARTITIONS)
    assert beat(cluster, "a", -1).error_code == 0
    deleted = ask(cluster, coordinator(cluster), DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert deleted.results[0].error_code == 0
    assert described(cluster).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_are_set_at_every_coordinator_and_survive_each(cluster: KafkaCluster) -> None:
    topic = alter.AlterShareGroupOffsetsRequestTopic(
        topic_name="t",
        partitions=[
            alter.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=index + 5)
            for index in range(PARTITIONS)
        ],
    )
    request = alter.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[topic])
    response = ask(cluster, coordinator(cluster), request, 0)
    assert {each.error_code for each in response.responses[0].partitions} == {0}
    expected = {index: (index + 5, -index - 5) for index in range(PARTITIONS)}
    assert offsets(cluster) == expected
    cluster.kill(coordinator(cluster), fence=True)
    until(lambda: offsets(cluster) == expected)


def test_a_state_is_answered_when_followers_have_it(cluster: KafkaCluster) -> None:
    join(cluster, "a")
    key = ShareKey(GROUP, topic_id(cluster), 0)
    leader = cluster.partition(SHARE_STATE_TOPIC, partition_of(key.text, 3)).leader
    others = [node for node in (1, 2, 3) if node != leader]
    for node in others:
        cluster.freeze_follower(node)
    data = write.PartitionData(partition=0, state_epoch=2, leader_epoch=0, start_offset=3)
    asked = write.WriteShareGroupStateRequest(
        group_id=GROUP, topics=[write.WriteStateData(topic_id=key.topic_id, partitions=[data])]
    )
    wrong = ask(cluster, others[0], asked, 1).results[0].partitions[0]
    assert wrong.error_code == ErrorCode.NOT_COORDINATOR
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(ask(cluster, leader, asked, 1)))
    asking.start()
    asking.join(0.3)
    assert not answers
    for node in others:
        cluster.thaw_follower(node)
    asking.join(20)
    assert answers[0].results[0].partitions[0].error_code == 0
    assert offsets(cluster)[0][0] == 3


def reject_all(cluster: KafkaCluster, count: int) -> None:
    """Let a share consumer reject this number of records of the topic."""
    seen: set[tuple[int, int]] = set()
    with ShareConsumer(cluster.bootstrap_servers, group_id=GROUP) as consumer:
        consumer.subscribe("t")

        def reject(record: Record) -> str:
            seen.add((record.partition, record.offset))
            if len(seen) == count:
                consumer.stop()
            return "reject"

        consumer.run(reject, idle_ms=60_000)


def letters(cluster: KafkaCluster, partition: int) -> int:
    """Return the number of dead letters in a partition: the highest high watermark of its replicas."""
    return max(each.high_watermark for each in cluster.replicas("dlq.t", partition))


def test_dead_letters_go_to_the_leaders_of_their_partitions() -> None:
    """Records and their dead letters have different leaders, so that dead letters cross between nodes."""
    fast = {"group_share_assignment_interval_ms": 0, "group_share_min_heartbeat_interval_ms": 100}
    with KafkaCluster(3, group_share_heartbeat_interval_ms=100, **fast) as cluster:
        cluster.create_topic("t", partitions=2, replicas=[[1, 2, 3], [2, 3, 1]])
        places = [[3, 1, 2], [1, 2, 3]]
        cluster.create_topic("dlq.t", replicas=places, errors_deadletterqueue_group_enable="true")
        with Admin(cluster.bootstrap_servers) as admin, Producer(cluster.bootstrap_servers) as producer:
            settings = {"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": "dlq.t"}
            admin.alter_config(group=GROUP, set=settings)
            for number in range(10):
                producer.send("t", b"%d" % number, partition=number % 2)
            producer.flush()
            reject_all(cluster, 10)
            assert [cluster.partition("dlq.t", index).leader for index in range(2)] == [3, 1]
            until(lambda: [letters(cluster, index) for index in range(2)] == [5, 5])
            until(lambda: {each.lag for each in admin.list_share_group_offsets(GROUP).values()} == {0})
            cluster.kill(3, fence=True)
            until(lambda: cluster.partition("dlq.t", 0).leader == 1)
            producer.send("t", b"more", partition=0)
            producer.flush()
            reject_all(cluster, 1)
            until(lambda: letters(cluster, 0) == 6)
