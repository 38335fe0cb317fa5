"""Tests of creating and deleting topics, and of the metadata records from which a restart restores them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, batch_of, make_node, make_topic, produce
from for_each import for_each
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.metadata_log import MetadataLog, frame, unframe
from penstock.broker.metadata.planning import Planner
from penstock.broker.metadata.stores import open_disk_store
from penstock.broker.node import Node
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.broker.partitions.internal_topics import METADATA_TOPIC_ID
from penstock.broker.partitions.log_store import MemoryStore
from penstock.clock import ManualClock
from penstock.errors import ConfigError, DecodeError, KafkaError, StorageError
from penstock.log.disk.data_directory import DataDirectory
from penstock.log.memory import MemoryLog
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.records.batch import encode_batch


def disk_node(path: Path, **settings: str) -> Node:
    clock = ManualClock(NOW_MS)
    return make_node(open_disk_store(str(path), BrokerConfig(), clock), clock, **settings)


RECORDS = [
    TopicRecord(name="t", topic_id=bytes(range(16))),
    PartitionRecord(
        partition_id=300, topic_id=bytes(16), replicas=[1], isr=[1], leader=1, directories=[bytes(16)]
    ),
    ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None),
    RemoveTopicRecord(topic_id=bytes(range(16))),
    ProducerIdsRecord(broker_id=1, next_producer_id=1 << 40),
    FeatureLevelRecord(name="metadata.version", feature_level=25),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.NAME)
def test_metadata_records_come_back_from_their_frames(record: Any) -> None:
    value = frame(record)
    assert value[0] == 1
    assert value[1] == record.API_KEY
    assert unframe(value) == record


def test_a_topic_record_in_bytes() -> None:
    """A topic record has KRaft's bytes: frame version 1, type 2, version 0, compact name, id, no tags."""
    assert (
        frame(TopicRecord(name="ab", topic_id=bytes(range(16)))) == b"\1\2\0\3ab" + bytes(range(16)) + b"\0"
    )


@pytest.mark.parametrize("value", [b"", b"\1", b"\1\2", b"\2\2\0", b"\1\2\x09", b"\1\2\0\x7fab"])
def test_damaged_metadata_records_are_refused(value: bytes) -> None:
    with pytest.raises(DecodeError):
        unframe(value)


def test_records_that_mean_nothing_here_are_passed_over() -> None:
    assert unframe(b"\1\x7e\0whatever") is None


def test_control_batches_in_the_metadata_log_are_passed_over() -> None:
    log = MemoryLog(now_ms=0)
    leader_change = encode_batch([(b"\0\0\0\2", b"anything", (), 0)], is_control=True, base_offset=0)
    log.append(leader_change, first_offset=0, last_offset=0, max_timestamp=0, now_ms=0)
    metadata = MetadataLog(log)
    metadata.append(RECORDS, 0)
    assert list(metadata.replay()) == RECORDS


def test_a_damaged_metadata_log_is_a_storage_error() -> None:
    log = MemoryLog(now_ms=0)
    batch = encode_batch([(None, b"\1\2", (), 0)])
    log.append(batch, first_offset=0, last_offset=0, max_timestamp=0, now_ms=0)
    with pytest.raises(StorageError, match="__cluster_metadata-0 cannot be read near offset 1"):
        list(MetadataLog(log).replay())


@for_each(
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (".", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("ä", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a\n", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("there.is", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("there_is", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
)
def test_names_that_are_refused(name: str, code: ErrorCode) -> None:
    node = make_node()
    make_topic(node, "there.is")
    with pytest.raises(KafkaError) as caught:
        Planner(node.cluster).new_topic(name)
    assert caught.value.code == code


@for_each(
    [
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"partitions": 2**31 - 1}, ErrorCode.POLICY_VIOLATION),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"assignments": {0: [1]}, "partitions": 1}, ErrorCode.INVALID_REQUEST),
        ({"assignments": {1: [1]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": {0: [2]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": {0: []}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"configs": {"retention.sm": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"retention.ms": "x"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG),
    ]
)
def test_wishes_that_are_refused(wanted: dict[str, Any], code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        Planner(make_node().cluster).new_topic("t", **wanted)
    assert caught.value.code == code


def test_defaults_of_the_broker_apply() -> None:
    node = make_node(num_partitions=3, log_retention_ms=5)
    plan = Planner(node.cluster).new_topic("t")
    assert (plan.partitions, plan.config["retention.ms"]) == (3, 5)
    assert Planner(node.cluster).new_topic("t", assignments={0: [1], 1: [1]}).partitions == 2


def test_a_broken_default_replication_factor_is_told() -> None:
    with pytest.raises(KafkaError, match="INVALID_REPLICATION_FACTOR"):
        Planner(make_node(default_replication_factor=3).cluster).new_topic("t")


@pytest.mark.parametrize(("release", "code"), [(None, 3), ("3.9", 3), ("2.8", 38)])
def test_a_topic_that_metadata_cannot_make_is_unknown_for_now(release: str | None, code: int) -> None:
    """Metadata answers UNKNOWN_TOPIC_OR_PARTITION for a topic that it cannot create with three replicas.

    Older releases, such as 2.8, place replicas at the broker and answer INVALID_REPLICATION_FACTOR (38).
    Newer brokers answer before the controller has decided.
    """
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({"default.replication.factor": "3"}, release)
    node = Node(config, MemoryStore(1, clock), clock)
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    [topic] = ask(node, asked, 4).topics
    assert topic.error_code == code
    assert "t" not in node.cluster.topics


@pytest.mark.parametrize("key_type", [0, 1], ids=["group", "transaction"])
def test_without_a_topic_for_it_there_is_no_coordinator_yet(
    key_type: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator's internal topic cannot be created, as with too few brokers.

    FindCoordinator then answers COORDINATOR_NOT_AVAILABLE, where an earlier release closed the connection.
    """
    node = make_node()

    def refuse(*_: object, **__: object) -> None:
        raise error_for(ErrorCode.INVALID_REPLICATION_FACTOR, "too few brokers")

    monkeypatch.setattr(type(node.cluster), "plan_topic", refuse)
    for version in (1, 3, 4, 6):
        request = FindCoordinatorRequest(key="k", key_type=key_type, coordinator_keys=["k"])
        answer = ask(node, request, version)
        found = answer if version < 4 else answer.coordinators[0]
        assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_everything_survives_a_restart(place: str, tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    memory = MemoryStore(1, clock)

    def start() -> Node:
        return make_node(memory, clock) if place == "memory" else disk_node(tmp_path)

    node = start()
    kept = make_topic(node, "kept", 3, retention_ms="77")
    gone = make_topic(node, "gone")
    produce(node, batch_of(b"a", b"b"), topic="kept", partition=2)
    produce(node, batch_of(b"a"), topic="gone")
    node.cluster.delete_topics([gone], NOW_MS)
    producer_ids = [node.cluster.new_producer_id(NOW_MS) for _ in range(3)]
    node.store.close()

    again = start()
    topic = again.cluster.topic("kept")
    assert (topic.id, len(topic.partitions), topic.config["retention.ms"]) == (kept.id, 3, 77)
    assert again.cluster.topic_by_id(kept.id) is topic
    assert [partition.high_watermark for partition in topic.partitions] == [0, 0, 2]
    assert set(again.cluster.topics) == {"kept"}
    assert again.cluster.new_producer_id(NOW_MS) > max(producer_ids)
    assert again.cluster.cluster_id == node.cluster.cluster_id
    assert make_topic(again, "gone").partitions[0].high_watermark == 0
    again.store.close()


def test_producer_ids_are_reserved_in_blocks() -> None:
    node = make_node()
    ids = [node.cluster.new_producer_id(NOW_MS) for _ in range(1001)]
    assert ids == list(range(1001))
    assert node.store.metadata_log().end_offset == 5


def test_the_metadata_log_has_kafkas_topic_id(tmp_path: Path) -> None:
    disk_node(tmp_path).store.close()
    directory = DataDirectory(str(tmp_path))
    assert directory.topic_id(TopicPartition("__cluster_metadata", 0)) == METADATA_TOPIC_ID
    directory.abandon()


def test_data_of_a_removed_topic_go_after_a_crash_in_between(tmp_path: Path) -> None:
    node = disk_node(tmp_path)
    topic = make_topic(node, "t")
    produce(node, batch_of(b"a"))
    # The record is written, then the process dies before it can delete the data.
    log = node.cluster.authority.log_on_disk
    assert log is not None
    log.append([RemoveTopicRecord(topic_id=topic.id)], NOW_MS)
    abandon(node)
    again = disk_node(tmp_path)
    assert not again.cluster.topics
    assert not (tmp_path / "t-0").exists()
    assert make_topic(again, "t").partitions[0].high_watermark == 0
    again.store.close()


def test_data_that_no_record_names_are_taken_in(tmp_path: Path) -> None:
    directory = DataDirectory(str(tmp_path))
    for index in (0, 2):
        log = directory.create_log(TopicPartition("found", index), bytes(range(16)), now_ms=0)
        batch = encode_batch([(b"k", b"v", (), NOW_MS)], partition_leader_epoch=4)
        log.append(batch, first_offset=0, last_offset=0, max_timestamp=NOW_MS, now_ms=0)
    directory.close()
    node = disk_node(tmp_path)
    topic = node.cluster.topic("found")
    assert topic.id == bytes(range(16))
    assert [partition.high_watermark for partition in topic.partitions] == [1, 0, 1]
    assert topic.partitions[0].leader_epoch == 4
    assert produce(node, batch_of(b"a"), topic="found").base_offset == 1
    node.store.close()
    again = disk_node(tmp_path)
    assert again.cluster.topic("found").partitions[0].high_watermark == 2
    again.store.close()


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    disk_node(tmp_path).store.close()
    with pytest.raises(ConfigError, match="belongs to node 1"):
        open_disk_store(str(tmp_path), BrokerConfig({"node.id": "2"}), ManualClock())
    open_disk_store(str(tmp_path), BrokerConfig({"node.id": "1"}), ManualClock()).close()


def test_another_topics_data_under_the_same_name_are_not_touched(tmp_path: Path) -> None:
    node = disk_node(tmp_path)
    make_topic(node, "t")
    produce(node, batch_of(b"a"))
    node.store.close()
    (tmp_path / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw")
    again = disk_node(tmp_path)
    assert produce(again, batch_of(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    again.store.close()


def abandon(node: Node) -> None:
    """Release the lock of a data directory without a clean shutdown, as a killed process does."""
    assert isinstance(node.store, DiskStore)
    node.store._directory.abandon()


def test_retention_applies_to_every_topic_that_deletes() -> None:
    clock = ManualClock(NOW_MS)
    node = make_node(clock=clock)
    make_topic(node, "old", retention_ms="1000")
    make_topic(node, "compacted", retention_ms="1000", cleanup_policy="compact")
    for name in ("old", "compacted"):
        produce(node, batch_of(b"a"), topic=name)
    clock.advance(20_000)
    assert node.maintain(clock.now_ms()) == []
    assert node.cluster.topic("old").partitions[0].log_start_offset == 0, "not before its time"
    clock.advance(20_000)
    node.maintain(clock.now_ms())
    assert node.cluster.topic("old").partitions[0].log_start_offset == 1
    assert node.cluster.topic("compacted").partitions[0].log_start_offset == 0


@pytest.mark.parametrize(
    "left", ["", "\0" * 40, "version: 0\ntopic_id: Ss9"], ids=["nothing", "zeros", "half"]
)
def test_a_power_cut_may_leave_no_topic_id(tmp_path: Path, left: str) -> None:
    node = disk_node(tmp_path)
    make_topic(node)
    produce(node, batch_of(b"a"))
    node.store.abandon()
    noted = tmp_path / "t-0" / "partition.metadata"
    before = noted.read_text()
    noted.write_text(left)
    again = disk_node(tmp_path)
    assert produce(again, batch_of(b"b")).base_offset == 1
    assert noted.read_text() == before
    again.store.close()
