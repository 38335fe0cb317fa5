"""Tests of partitions whose logs cannot be opened yet or at all: they are retried and delay nothing else."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from broker.replication.test_cluster import ask, produce, until
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.broker.partitions.openings import Openings
from penstock.broker.replication import member
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch
from penstock.testing import KafkaCluster

TOPIC = "t"
PARTITIONS = 6


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "BEHIND_S", 0.01)


def leaders(cluster: KafkaCluster, node: int, topic: str = TOPIC) -> list[int]:
    answer = ask(cluster, node, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)
    return [each.leader_id for each in answer.topics[0].partitions]


def test_logs_that_are_not_opened_at_once_are_led_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first broker that starts is elected for many partitions at once.

    It used to stop applying the elections at the first log that it could not open.
    """
    with KafkaCluster(3, tmp_path) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replicas=3)
        for index in range(PARTITIONS):
            records = memoryview(bytearray(encode_batch([(None, b"v", (), 1000)])))
            data = TopicProduceData(
                name=TOPIC, partition_data=[PartitionProduceData(index=index, records=records)]
            )
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data])
            answer = ask(cluster, cluster.partition(TOPIC, index).leader, request, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
    calls = 0
    plain = Openings.__enter__

    def enter(self: Any) -> None:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, "too many logs are opened at once")
        plain(self)

    monkeypatch.setattr(Openings, "__enter__", enter)
    with caplog.at_level(logging.WARNING), KafkaCluster(3, tmp_path) as cluster:
        until(lambda: all(-1 not in leaders(cluster, node) for node in (1, 2, 3)))
        until(
            lambda: all(
                set(cluster.partition(TOPIC, index).in_sync) == {1, 2, 3} for index in range(PARTITIONS)
            )
        )
        assert not cluster._shared.failures.counts
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_replica_in_trouble_is_logged_once_and_holds_up_no_other_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries, refuses = 0, True
    plain = DiskStore.open_log

    def open_log(self: Any, topic: str, partition: int, topic_id: bytes, config: Any) -> Any:
        nonlocal tries
        if refuses and self.node_id == 2 and topic == TOPIC:
            tries += 1
            raise StorageError("the disk of broker 2 refuses")
        return plain(self, topic, partition, topic_id, config)

    monkeypatch.setattr(DiskStore, "open_log", open_log)
    with (
        caplog.at_level(logging.ERROR),
        KafkaCluster(3, tmp_path, replica_lag_time_max_ms=500) as cluster,
    ):
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        assert produce(cluster, 1, acks=1).error_code == 0
        until(lambda: tries > 5)
        lines = [each.getMessage() for each in caplog.records if "refuses" in each.getMessage()]
        assert lines == ["<Partition t-0> cannot be followed: the disk of broker 2 refuses"]
        cluster.create_topic("other", replicas=[[2, 1]])
        assert produce(cluster, 2, topic="other").error_code == 0
        refuses = False
        until(lambda: 2 in cluster.partition(TOPIC).in_sync)


def test_a_topic_whose_files_stay_is_deleted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KafkaCluster(3, tmp_path) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        assert produce(cluster, 1).error_code == 0
        plain = DiskStore.delete_log

        def delete_log(self: Any, topic: str, partition: int, topic_id: bytes) -> None:
            if self.node_id == 1:
                raise StorageError("the disk of broker 1 refuses")
            plain(self, topic, partition, topic_id)

        monkeypatch.setattr(DiskStore, "delete_log", delete_log)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)])
        assert ask(cluster, 1, request, 6).responses[0].error_code == 0
        monkeypatch.undo()
        cluster.create_topic("other", replicas=[[1, 2, 3]])
        assert produce(cluster, 1, topic="other").error_code == 0
    with KafkaCluster(3, tmp_path):
        assert not list(tmp_path.glob("broker-1/t-0"))
