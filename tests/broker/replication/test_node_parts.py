"""Tests of broker functions that must also work in a cluster: quotas, finding coordinators, the quorum."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.wire_client import WireClient
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch
from penstock.testing import KafkaCluster


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3) as cluster:
        for node in cluster.node_ids:
            cluster.create_topic(f"on{node}", replicas=[[node]])
        yield cluster


def client_of(cluster: KafkaCluster, node: int) -> WireClient:
    return WireClient(int(cluster.address(node).rpartition(":")[2]))


def ask(cluster: KafkaCluster, node: int, request: Any, version: int) -> Any:
    with client_of(cluster, node) as client:
        return client.ask(request, version)


def produced(cluster: KafkaCluster, node: int, size: int = 1) -> Any:
    batch = memoryview(bytearray(encode_batch([(None, b"v" * size, (), 5)])))
    topic = TopicProduceData(name=f"on{node}", partition_data=[PartitionProduceData(index=0, records=batch)])
    return ask(cluster, node, ProduceRequest(acks=1, timeout_ms=5000, topic_data=[topic]), 9)


def fetched(cluster: KafkaCluster, node: int) -> Any:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=f"on{node}", partitions=[partition])
    return ask(cluster, node, FetchRequest(max_bytes=1 << 20, topics=[topic]), 12)


def set_quota(cluster: KafkaCluster, node: int, key: str, value: float | None) -> None:
    op = OpData(key=key, value=value or 0.0, remove=value is None)
    entity = [EntityData(entity_type="client-id", entity_name=None)]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[op])])
    assert ask(cluster, node, request, 1).entries[0].error_code == 0
    cluster._call(lambda: None)  # what has been sent to the other brokers by then has arrived


@pytest.mark.parametrize("set_at", [1, 2])
def test_quotas_hold_at_every_broker_wherever_they_were_set(cluster: KafkaCluster, set_at: int) -> None:
    set_quota(cluster, set_at, "producer_byte_rate", 100)
    for node in cluster.node_ids:
        assert produced(cluster, node, 20_000).throttle_time_ms > 0, node
    set_quota(cluster, set_at, "producer_byte_rate", None)
    for node in cluster.node_ids:
        assert produced(cluster, node, 20_000).throttle_time_ms == 0, node


def test_quotas_of_fetching_and_of_time_hold_at_every_broker(cluster: KafkaCluster) -> None:
    for node in cluster.node_ids:
        produced(cluster, node, 20_000)
    set_quota(cluster, 1, "consumer_byte_rate", 100)
    for node in cluster.node_ids:
        assert fetched(cluster, node).throttle_time_ms > 0, node
    set_quota(cluster, 1, "consumer_byte_rate", None)
    set_quota(cluster, 1, "request_percentage", 1e-9)
    for node in cluster.node_ids:
        assert ask(cluster, node, MetadataRequest(topics=None), 9).throttle_time_ms > 0, node


def test_a_broker_that_starts_again_heeds_the_quotas_there_are(cluster: KafkaCluster) -> None:
    set_quota(cluster, 1, "producer_byte_rate", 100)
    cluster.restart(2)
    assert produced(cluster, 2, 20_000).throttle_time_ms > 0


def creation_at(cluster: KafkaCluster, node: int, name: str, partitions: int = 1) -> Any:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = ask(cluster, node, CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7)
    return response.topics[0].error_code, response.throttle_time_ms > 0


def test_changes_of_topics_are_counted_once_for_all_brokers(cluster: KafkaCluster) -> None:
    set_quota(cluster, 2, "controller_mutation_rate", 0.01)
    assert creation_at(cluster, 1, "many", 10) == (0, False)
    for node in cluster.node_ids:
        assert creation_at(cluster, node, "more") == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, True)
    cluster.restart(3)
    assert creation_at(cluster, 3, "more") == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, True)
    set_quota(cluster, 1, "controller_mutation_rate", None)
    assert creation_at(cluster, 3, "more") == (0, False)


def quorum_seen_by(cluster: KafkaCluster, node: int) -> Any:
    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    response = ask(cluster, node, DescribeQuorumRequest(topics=[topic]), 2)
    assert response.error_code == 0
    [found] = response.topics[0].partitions
    assert [each.node_id for each in response.nodes] == [found.leader_id]
    return found


def test_the_quorum_is_the_controller_and_the_brokers_read_its_log(cluster: KafkaCluster) -> None:
    for node in cluster.node_ids:
        found = quorum_seen_by(cluster, node)
        assert found.leader_id not in cluster.node_ids
        assert found.leader_epoch >= 1
        [voter] = found.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (found.leader_id, found.high_watermark)
        assert voter.replica_directory_id != bytes(16)
        assert [each.replica_id for each in found.observers] == cluster.node_ids
        for observer in found.observers:
            assert 0 < observer.log_end_offset <= found.high_watermark
            assert observer.last_caught_up_timestamp <= observer.last_fetch_timestamp


def test_a_broker_that_was_fenced_reads_no_log(cluster: KafkaCluster) -> None:
    cluster.kill(3, fence=True)
    assert [each.replica_id for each in quorum_seen_by(cluster, 1).observers] == [1, 2]


@pytest.mark.parametrize("kind", [0, 1])
def test_a_broker_that_is_stopping_makes_no_topics_any_more(
    cluster: KafkaCluster, kind: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The controller sends no metadata to a stopping broker, so it could not read the new topic's record."""
    with client_of(cluster, 2) as client:
        client.ask(MetadataRequest(topics=[]), 9)
        cluster._call(lambda: cluster._node(2).member.end())  # type: ignore[union-attr]
        answer = client.ask(FindCoordinatorRequest(key="x", key_type=kind), 1)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not any(each.exc_info for each in caplog.records)


def test_transactions_are_forgotten_at_every_broker_with_their_topic(
    cluster: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        found = ask(cluster, 3, FindCoordinatorRequest(key="x", key_type=1), 1)
        assert found.error_code == 0
        asked = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
        assert ask(cluster, found.node_id, asked, 4).error_code == 0
        deleter = next(each for each in cluster.node_ids if each != found.node_id)
        ask(cluster, deleter, DeleteTopicsRequest(topic_names=["__transaction_state"]), 4)
        coordinator = cluster._call(
            lambda node=found.node_id: cluster._node(node).server.node.transactions.coordinator  # type: ignore[union-attr]
        )
        assert not coordinator.registry.transactions
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_who_is_elected_for_more_logs_than_can_be_opened_at_once_leads_them_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A log that must wait before it is opened does not stop the broker from applying other metadata."""
    count = 3
    caplog.set_level(logging.ERROR)
    with KafkaCluster(3, data_dir=tmp_path, penstock_log_open_ms_max=1) as cluster:
        cluster.create_topic("t", replicas=[[2]] * count)
        cluster.create_topic("u", replicas=[[2, 1]] * count)
        for life in range(2):
            if life:
                cluster.restart(2, kill=True)
            with client_of(cluster, 2) as client:
                for index in range(count):
                    until_done(client, "t", index)
                    if not life:
                        until_done(client, "u", index)
    assert [each.getMessage() for each in caplog.records] == []


def until_done(client: WireClient, name: str, index: int) -> None:
    """Produce to a partition until its log is open and its broker leads it."""
    batch = encode_batch([(None, b"v", (), 5)])
    deadline = time.monotonic() + 60
    while True:
        data = PartitionProduceData(index=index, records=memoryview(bytearray(batch)))
        topic = TopicProduceData(name=name, partition_data=[data])
        request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=[topic])
        [answer] = client.ask(request, 9).responses[0].partition_responses
        if not answer.error_code:
            return
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert time.monotonic() < deadline
        time.sleep(0.05)
