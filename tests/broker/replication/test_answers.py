"""Tests of response fields that only a cluster of several brokers fills: leader epochs, offline replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker.wire_client import WireClient
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from penstock.protocol.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch
from penstock.testing import KafkaCluster

TOPIC = "t"
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2]])
        yield cluster


def ask(cluster: KafkaCluster, node: int, request: Any, version: int) -> Any:
    with WireClient(int(cluster.address(node).rpartition(":")[2])) as client:
        return client.ask(request, version)


def produced(cluster: KafkaCluster, node: int, version: int = 9) -> Any:
    data = PartitionProduceData(index=0, records=memoryview(bytearray(encode_batch([(None, b"v", (), 5)]))))
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic])
    return ask(cluster, node, request, version).responses[0].partition_responses[0]


def offset_at(cluster: KafkaCluster, node: int, timestamp: int, version: int = 7) -> tuple[int, int, int]:
    """Send ListOffsets for partition 0; return the error code, the leader epoch and the offset."""
    place = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=[place])])
    found = ask(cluster, node, request, version).topics[0].partitions[0]
    return found.error_code, found.leader_epoch, found.offset


def test_an_offset_comes_with_the_epoch_in_which_it_was_written(cluster: KafkaCluster) -> None:
    assert produced(cluster, 1).error_code == 0
    cluster.move_leader(TOPIC, node=2)
    assert produced(cluster, 2).error_code == 0
    assert offset_at(cluster, 2, EARLIEST) == (0, 0, 0)
    assert offset_at(cluster, 2, 5) == (0, 0, 0)
    assert offset_at(cluster, 2, MAX_TIMESTAMP) == (0, 0, 0)
    assert offset_at(cluster, 2, LATEST) == (0, 1, 2)


@pytest.mark.parametrize("node", [1, 2, 3])
def test_a_time_that_a_version_does_not_have_is_refused_wherever_it_is_asked_for(
    cluster: KafkaCluster, node: int
) -> None:
    assert offset_at(cluster, node, MAX_TIMESTAMP, version=6)[0] == ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_that_does_not_lead_has_no_log_start_to_give(cluster: KafkaCluster) -> None:
    for node in (2, 3):
        refused = produced(cluster, node)
        assert (refused.error_code, refused.log_start_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_replicas_that_are_away_are_named_by_both_apis(cluster: KafkaCluster) -> None:
    cluster.kill(2, fence=True)
    described = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=TOPIC)])
    [partition] = ask(cluster, 1, described, 0).topics[0].partitions
    assert partition.offline_replicas == [2]
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    assert ask(cluster, 3, asked, 12).topics[0].partitions[0].offline_replicas == [2]


def test_the_first_version_of_metadata_leaves_out_who_is_away(cluster: KafkaCluster) -> None:
    cluster.kill(2, fence=True)
    cluster.kill(1, fence=True)
    cluster.start(2)
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    [partition] = ask(cluster, 3, asked, 0).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2], [])


def test_the_wrong_coordinator_refuses_each_partition_where_versions_have_no_other_place() -> None:
    with KafkaCluster(3, offsets_topic_num_partitions=1) as cluster:
        cluster.create_topic("__consumer_offsets", replicas=[[1, 2, 3]])
        asked = OffsetFetchRequest(
            group_id="g", topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0, 1])]
        )
        [topic] = ask(cluster, 2, asked, 1).topics
        assert [each.error_code for each in topic.partitions] == [ErrorCode.NOT_COORDINATOR] * 2
        refused = ask(cluster, 2, asked, 2)
        assert (refused.error_code, refused.topics) == (ErrorCode.NOT_COORDINATOR, [])


ASSIGNMENTS = [
    # The first partition of a new topic, and what a topic of two replicas grows by.
    ([[1, 2]], None),
    ([[1, 2], [3, 1]], None),
    ([[1]], "partition 1 has 1 replica(s);"),
    ([[1, 2, 3]], "partition 1 has 3 replica(s);"),
    ([[1, 2], [3]], "partition 2 has 1 replica(s);"),
    ([[]], "partition 1: "),
    ([[1, 1]], "partition 1: "),
    ([[1, 9]], "partition 1: brokers [9] are not registered"),
]


def test_assigned_partitions_have_as_many_replicas_as_the_first(cluster: KafkaCluster) -> None:
    """The first partition has two replicas.

    CreateTopics and CreatePartitions give the same answers to assignments of the other partitions.
    """
    for assigned, refusal in ASSIGNMENTS:
        made = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate([[2, 3], *assigned])
        ]
        new = CreatableTopic(name="new", num_partitions=-1, replication_factor=-1, assignments=made)
        grown = CreatePartitionsTopic(
            name=TOPIC,
            count=1 + len(assigned),
            assignments=[CreatePartitionsAssignment(broker_ids=brokers) for brokers in assigned],
        )
        [created] = ask(cluster, 1, CreateTopicsRequest(topics=[new], validate_only=True), 7).topics
        [growth] = ask(cluster, 1, CreatePartitionsRequest(topics=[grown], validate_only=True), 3).results
        for answer in (created, growth):
            expected = ErrorCode.NONE if refusal is None else ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert answer.error_code == expected, (assigned, answer)
            assert (answer.error_message or "").startswith(refusal or ""), (assigned, answer)


def test_assignments_that_leave_partitions_out_say_so(cluster: KafkaCluster) -> None:
    for indexes in ([1, 2], [0, 2], [-1, 0]):
        made = [CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in indexes]
        new = CreatableTopic(name="new", num_partitions=-1, replication_factor=-1, assignments=made)
        [created] = ask(cluster, 1, CreateTopicsRequest(topics=[new], validate_only=True), 7).topics
        assert created.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        text = (
            "partitions should be a consecutive 0-based integer sequence;"
            f" 2 are assigned, from {indexes[0]} to {indexes[1]}"
        )
        assert created.error_message == text
    for count, given, text in ((3, 1, "but only 1"), (3, 0, "but only 0"), (2, 3, "but 3")):
        assigned = [CreatePartitionsAssignment(broker_ids=[1, 2])] * given
        grown = CreatePartitionsTopic(name=TOPIC, count=count, assignments=assigned)
        [growth] = ask(cluster, 1, CreatePartitionsRequest(topics=[grown], validate_only=True), 3).results
        assert growth.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert growth.error_message == (
            f"Attempted to add {count - 1} additional partition(s), {text} assignment(s) were specified."
        )
