"""Tests of requests that name very many topics: one metadata write for all, and a limit per request.

No log is opened before it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, ask_bytes, batch_of, make_node, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.metadata_log import MetadataLog
from penstock.broker.node import Node
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.broker.partitions.upkeep import retention as retention_module
from penstock.clock import ManualClock
from penstock.errors import StorageError
from penstock.log.directory.files import storage_error
from penstock.log.segments.closed import may_be_due, size_of
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.message import Message
from penstock.protocol.messages import alter_client_quotas_request as quotas
from penstock.protocol.messages import alter_configs_request as configs
from penstock.protocol.messages import incremental_alter_configs_request as increments
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

E = ErrorCode
NAMES = [f"topic-{number}" for number in range(30)]
SOME = 20
"""The number of changes that one request may make in these tests."""


def limited_node() -> Node:
    return make_node(penstock_request_changes_max=SOME)


def metadata_of(names: list[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True
    )


def topics_of(names: list[str], partitions: int = 1) -> CreateTopicsRequest:
    wanted = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=wanted, timeout_ms=1000)


def growth_of(names: list[str], count: int = 2) -> CreatePartitionsRequest:
    wanted = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name in names]
    return CreatePartitionsRequest(topics=wanted, timeout_ms=1000)


def removal_of(names: list[str], version: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=names, timeout_ms=1000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=1000)


def settings_of(names: list[str]) -> increments.IncrementalAlterConfigsRequest:
    change = increments.AlterableConfig(name="retention.ms", config_operation=0, value="77")
    return increments.IncrementalAlterConfigsRequest(
        resources=[
            increments.AlterConfigsResource(resource_type=2, resource_name=name, configs=[change])
            for name in names
        ]
    )


def older_settings_of(names: list[str]) -> configs.AlterConfigsRequest:
    change = configs.AlterableConfig(name="retention.ms", value="78")
    return configs.AlterConfigsRequest(
        resources=[
            configs.AlterConfigsResource(resource_type=2, resource_name=name, configs=[change])
            for name in names
        ]
    )


def quotas_of(names: list[str]) -> quotas.AlterClientQuotasRequest:
    change = quotas.OpData(key="producer_byte_rate", value=1000.0, remove=False)
    return quotas.AlterClientQuotasRequest(
        entries=[
            quotas.EntryData(
                entity=[quotas.EntityData(entity_type="client-id", entity_name=name)], ops=[change]
            )
            for name in names
        ]
    )


def codes_of(response: Any) -> list[int]:
    """Return the error code of each topic or resource in a response."""
    for field in ("topics", "results", "responses", "entries"):
        if hasattr(response, field):
            return [int(each.error_code) for each in getattr(response, field)]
    raise AssertionError(response)


CHANGES: list[tuple[Message, int, int, bool]] = [
    (metadata_of(NAMES), 9, E.LEADER_NOT_AVAILABLE, False),
    (topics_of(NAMES), 7, E.THROTTLING_QUOTA_EXCEEDED, False),
    (topics_of(NAMES), 5, E.POLICY_VIOLATION, False),
    (growth_of(NAMES), 3, E.THROTTLING_QUOTA_EXCEEDED, True),
    (growth_of(NAMES), 2, E.POLICY_VIOLATION, True),
    (settings_of(NAMES), 1, E.POLICY_VIOLATION, True),
    (older_settings_of(NAMES), 2, E.POLICY_VIOLATION, True),
    (quotas_of(NAMES), 1, E.POLICY_VIOLATION, False),
    (removal_of(NAMES, 6), 6, E.THROTTLING_QUOTA_EXCEEDED, True),
    (removal_of(NAMES, 4), 4, E.POLICY_VIOLATION, True),
]
"""Requests that change many topics: request, version, error code beyond the limit, needs topics.

The last element is True if the topics must exist before.
"""
IDS = [f"{type(request).__name__}-{version}" for request, version, _, _ in CHANGES]


@pytest.mark.parametrize(("request_", "version", "excess", "needs_topics"), CHANGES, ids=IDS)
def test_one_request_is_one_step_and_has_a_limit(
    request_: Message, version: int, excess: int, needs_topics: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = limited_node()
    if needs_topics:
        for name in NAMES:
            make_topic(node, name)
    appended: list[int] = []
    real = MetadataLog.append

    def append(log: MetadataLog, records: Any, now_ms: int, *, flushes: bool = True) -> None:
        appended.append(len(records))
        real(log, records, now_ms, flushes=flushes)

    monkeypatch.setattr(MetadataLog, "append", append)
    response = ask_bytes(node, request_, version)
    assert sorted(codes_of(response)) == sorted([0] * SOME + [excess] * (len(NAMES) - SOME))
    assert len(appended) == 1
    assert appended[0] >= SOME


@pytest.mark.parametrize(("request_", "version", "excess", "needs_topics"), CHANGES, ids=IDS)
def test_a_step_that_cannot_be_written_has_not_happened(
    request_: Message, version: int, excess: int, needs_topics: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make_node()
    if needs_topics:
        for name in NAMES:
            make_topic(node, name)
    before = set(node.cluster.topics)

    def fail(log: MetadataLog, records: Any, now_ms: int, *, flushes: bool = True) -> None:
        raise StorageError("no space left")

    monkeypatch.setattr(MetadataLog, "append", fail)
    assert set(codes_of(ask(node, request_, version))) == {E.KAFKA_STORAGE_ERROR}
    assert set(node.cluster.topics) == before
    assert not node.cluster.quotas
    assert all(len(topic.partitions) == 1 for topic in node.cluster.topics.values())


def test_clients_that_ask_again_get_the_rest() -> None:
    node = limited_node()
    ask(node, metadata_of(NAMES), 9)
    assert len(node.cluster.topics) == SOME
    assert set(codes_of(ask(node, metadata_of(NAMES), 9))) == {0}
    assert set(node.cluster.topics) == set(NAMES)


def test_partitions_count_for_the_whole_request() -> None:
    node = make_node()
    assert codes_of(ask(node, topics_of(["a", "b", "c"], 4000), 7)) == [0, 0, E.POLICY_VIOLATION]
    assert codes_of(ask(node, growth_of(["a", "b"], 10_000), 3)) == [0, E.POLICY_VIOLATION]
    node = make_node(num_partitions=6000)
    assert codes_of(ask(node, metadata_of(["a", "b"]), 9)) == [0, E.LEADER_NOT_AVAILABLE]
    assert codes_of(ask(node, metadata_of(["a", "b"]), 9)) == [0, 0]


def test_names_that_collide_within_a_request_do_not_both_become_topics() -> None:
    node = make_node()
    assert codes_of(ask(node, topics_of(["a.b", "a_b"]), 7)) == [0, E.INVALID_TOPIC_EXCEPTION]
    assert codes_of(ask(node, metadata_of(["c_d", "c.d"]), 9)) == [0, E.INVALID_TOPIC_EXCEPTION]


def test_many_topics_are_few_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    node = make_node()
    ask(node, metadata_of(NAMES), 9)
    ask(node, removal_of(NAMES, 6), 6)
    ask(node, metadata_of(["alone"]), 9)
    lines = [record.getMessage() for record in caplog.records]
    assert [line[:18] for line in lines] == ["created 30 topics:", "deleted 30 topics:", "created topic alon"]
    assert lines[0].endswith("topic-9 with 1 partitions and 20 more")


# --- logs that nobody uses -------------------------------------------------------------------------------


def disk_node(path: Path, clock: ManualClock | None = None, **settings: str) -> Node:
    clock = clock or ManualClock(NOW_MS)
    config = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})
    return make_node(DiskStore(str(path), config, clock), clock, **settings)


def reads_of(name: str) -> list[tuple[Message, int]]:
    """Return requests of several APIs that read from partition 0 of a topic, with their versions."""
    fetch = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=-1)
    requests: list[tuple[Message, int]] = [
        (FetchRequest(topics=[FetchTopic(topic=name, partitions=[fetch])], max_wait_ms=0), 11),
        (DescribeLogDirsRequest(topics=None), 4),
        (DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0])]), 0),
        (
            OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderTopic(
                        topic=name,
                        partitions=[
                            OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)
                        ],
                    )
                ]
            ),
            3,
        ),
        (
            DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)]
                    )
                ],
                timeout_ms=1000,
            ),
            2,
        ),
    ]
    for timestamp, version in ((-1, 1), (-2, 1), (-3, 7), (NOW_MS, 1), (-1, 0), (-2, 0), (NOW_MS, 0)):
        asked = ListOffsetsPartition(
            partition_index=0,
            timestamp=timestamp,
            max_num_offsets=1 if version else 5,
            current_leader_epoch=-1,
        )
        topics = [ListOffsetsTopic(name=name, partitions=[asked])]
        requests.append((ListOffsetsRequest(topics=topics), version))
    return requests


def test_what_was_never_written_to_is_read_without_a_file(tmp_path: Path) -> None:
    node = disk_node(tmp_path)
    make_topic(node, "unused")
    make_topic(node, "compacted", cleanup_policy="compact")
    for request, version in reads_of("unused") + reads_of("compacted"):
        ask_bytes(node, request, version)
    node.clock.advance(3_600_000)  # type: ignore[attr-defined]
    assert node.maintain(node.clock.now_ms()) == []
    assert not node.cluster.opened
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["__cluster_metadata-0"]
    partition = node.cluster.topic("unused").partition(0)
    assert (partition.log_start_offset, partition.high_watermark, partition.size_bytes) == (0, 0, 0)
    assert produce(node, batch_of(b"v"), topic="unused").base_offset == 0
    assert list(node.cluster.opened) == [partition]
    assert partition.high_watermark == 1
    ask(node, removal_of(["unused"], 6), 6)
    assert not node.cluster.opened
    node.store.close()


def test_retention_opens_those_logs_only_from_which_something_goes(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    node = disk_node(tmp_path, clock)
    hour = 3_600_000
    kept = ("long", "small", "compacted", "empty")
    make_topic(node, "long", retention_ms=str(100 * hour))
    make_topic(node, "short", retention_ms=str(hour))
    make_topic(node, "small", retention_bytes="10000", retention_ms="-1")
    make_topic(node, "large", retention_bytes="100", retention_ms="-1", segment_bytes="100")
    make_topic(node, "compacted", retention_ms=str(hour), cleanup_policy="compact")
    make_topic(node, "empty", retention_ms=str(hour))
    make_topic(node, "unused", retention_ms=str(hour))
    for name in ("long", "short", "small", "large", "compacted"):
        for _ in range(3):
            assert produce(node, batch_of(b"value"), topic=name).error_code == 0
    produce(node, batch_of(b"value"), topic="empty")
    node.cluster.topic("empty").partition(0).delete_records(-1)
    sizes = {name: topic.partition(0).size_bytes for name, topic in node.cluster.topics.items()}
    node.store.close()
    node = disk_node(tmp_path, clock)
    found = {name: topic.partition(0).size_bytes for name, topic in node.cluster.topics.items()}
    assert (found, list(node.cluster.opened)) == (sizes, [])
    clock.advance(2 * hour)
    assert node.maintain(clock.now_ms()) == []
    assert {partition.topic for partition in node.cluster.opened} == {"short", "large"}
    assert node.cluster.topic("short").partition(0).log_start_offset == 3
    assert node.cluster.topic("large").partition(0).log_start_offset == 1
    assert all(not node.cluster.topic(name).partition(0).is_open for name in kept)
    node.store.close()


def test_retention_goes_through_closed_logs_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention_module, "LOOKED_AT_PER_STEP", 10)
    monkeypatch.setattr(retention_module, "OPENED_PER_STEP", 2)
    clock = ManualClock(NOW_MS)
    node = disk_node(tmp_path, clock)
    for name in NAMES[:5]:
        make_topic(node, name, retention_ms="1000")
        produce(node, batch_of(b"v"), topic=name)
    make_topic(node, "unused", partitions=20)
    node.store.close()
    node = disk_node(tmp_path, clock)
    clock.advance(60_000)
    opened = []
    for _ in range(6):
        assert node.maintain(clock.now_ms()) == []
        opened.append(len(node.cluster.opened))
    assert opened == [2, 4, 5, 5, 5, 5]
    assert [node.cluster.topic(name).partition(0).log_start_offset for name in NAMES[:5]] == [1] * 5
    node.store.close()


def test_what_a_listing_says_of_a_closed_log(tmp_path: Path) -> None:
    node = disk_node(tmp_path)
    make_topic(node)
    produce(node, batch_of(b"v"))
    node.store.close()
    directory = tmp_path / "t-0"
    size = (directory / f"{0:020d}.log").stat().st_size
    assert size_of(str(directory)) == size
    assert not may_be_due(str(directory), -1, -1, 1 << 60)
    assert may_be_due(str(directory), 1000, -1, NOW_MS + 1001)
    assert not may_be_due(str(directory), 1000, -1, NOW_MS + 1000)
    index = directory / f"{0:020d}.timeindex"
    written_ms = int((directory / f"{0:020d}.log").stat().st_mtime * 1000)
    for left in (b"", bytes(24)):
        index.write_bytes(left)
        assert not may_be_due(str(directory), 1000, -1, written_ms + 1000)
        assert may_be_due(str(directory), 1000, -1, written_ms + 1001)
    with pytest.raises(StorageError):
        size_of(str(tmp_path / "none"))


def test_a_log_whose_files_cannot_be_looked_at_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(NOW_MS)
    node = disk_node(tmp_path, clock)
    for name in ("a", "b", "c"):
        make_topic(node, name, retention_ms="1000")
        produce(node, batch_of(b"v"), topic=name)
    node.store.close()
    node = disk_node(tmp_path, clock)
    real = DiskStore.may_shrink

    def fail(store: DiskStore, topic: str, *rest: Any) -> bool:
        if topic == "b":
            raise storage_error("read", "b-0", OSError(5, "broken"))
        return real(store, topic, *rest)

    monkeypatch.setattr(DiskStore, "may_shrink", fail)
    clock.advance(60_000)
    assert [str(error) for error in node.maintain(clock.now_ms())] == [
        "cannot read b-0: the device reports an input/output error"
    ]
    assert {partition.topic for partition in node.cluster.opened} == {"a", "c"}
    node.store.close()


# --- opening takes time ----------------------------------------------------------------------------------


def test_opening_logs_has_a_share_of_each_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(NOW_MS)
    node = disk_node(tmp_path, clock)
    make_topic(node, "t", partitions=20)
    real = DiskStore._open_log

    def slowly(store: DiskStore, *what: Any) -> Any:
        clock.advance(110)
        return real(store, *what)

    monkeypatch.setattr(DiskStore, "_open_log", slowly)

    def write_all() -> list[int]:
        return [produce(node, batch_of(b"v"), partition=index).error_code for index in range(20)]

    assert write_all() == [0] * 5 + [E.NOT_LEADER_OR_FOLLOWER] * 15  # half a second
    assert write_all() == [0] * 5 + [E.NOT_LEADER_OR_FOLLOWER] * 15
    assert node.cluster.topic("t").partition(19).high_watermark == 0, "nothing has to be opened for that"
    clock.advance(600)
    assert write_all() == [0] * 10 + [E.NOT_LEADER_OR_FOLLOWER] * 10
    node.groups.create_topic(clock.now_ms())
    node.cluster.topic("__consumer_offsets").partition(0).log.flush()
    node.store.close()


def test_a_log_that_takes_long_is_opened_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(NOW_MS)
    node = disk_node(tmp_path, clock)
    make_topic(node, "t", partitions=3)
    real = DiskStore._open_log

    def slowly(store: DiskStore, *what: Any) -> Any:
        clock.advance(30_000)
        return real(store, *what)

    monkeypatch.setattr(DiskStore, "_open_log", slowly)
    assert produce(node, batch_of(b"v")).error_code == 0
    assert produce(node, batch_of(b"v"), partition=1).error_code == E.NOT_LEADER_OR_FOLLOWER
    clock.advance(700)
    assert produce(node, batch_of(b"v"), partition=1).error_code == 0
    node.store.close()


@pytest.mark.parametrize(
    ("timestamp", "offsets"),
    [(-1, [0]), (-2, [0]), (0, []), (NOW_MS - 1, []), (NOW_MS, [0]), (NOW_MS + 500, [0])],
)
def test_offsets_before_a_time_of_a_partition_that_was_never_written_to(
    timestamp: int, offsets: list[int]
) -> None:
    """ListOffsets v0 compares the time with those of segments; the first segment is as old as the topic."""
    node = make_node()
    make_topic(node, "t")
    node.clock.advance(1000)  # type: ignore[attr-defined]
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=1)
    topics = [ListOffsetsTopic(name="t", partitions=[asked])]
    response: Any = ask(node, ListOffsetsRequest(topics=topics), 0)
    assert response.topics[0].partitions[0].old_style_offsets == offsets


def test_version_0_answers_each_time_that_is_asked_of_a_partition() -> None:
    node = make_node()
    make_topic(node, "t")
    produce(node, batch_of(b"x"))
    asked = [
        ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=1)
        for timestamp in (-1, -2, -1)
    ]
    response: Any = ask(node, ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=asked)]), 0)
    assert [each.old_style_offsets for each in response.topics[0].partitions] == [[1], [0]]
