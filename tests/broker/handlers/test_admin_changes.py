"""Tests of admin requests that change settings, partition counts and log start offsets, also on restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, batch_of, make_node, make_topic, produce
from for_each import for_each
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_store
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import MemoryStore
from penstock.clock import ManualClock
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages import (
    alter_configs_request,
    alter_partition_reassignments_request,
    create_partitions_request,
    delete_records_request,
    describe_client_quotas_request,
    describe_configs_request,
    describe_topic_partitions_request,
    incremental_alter_configs_request,
    offset_for_leader_epoch_request,
    update_features_request,
)
from penstock.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER = 2, 4


def alter(
    node: Node, *changes: tuple[str, int, str | None], kind: int = TOPIC, name: str = "t", dry: bool = False
) -> tuple[int, str | None]:
    """Send IncrementalAlterConfigs for one resource; return the error code and the error message."""
    api = incremental_alter_configs_request
    configs = [
        api.AlterableConfig(name=setting, config_operation=operation, value=value)
        for setting, operation, value in changes
    ]
    resource = api.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = api.IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry)
    (result,) = ask(node, request, 1).responses
    return result.error_code, result.error_message


def replace(node: Node, settings: dict[str, str | None], name: str = "t") -> int:
    api = alter_configs_request
    configs = [api.AlterableConfig(name=setting, value=value) for setting, value in settings.items()]
    resource = api.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs)
    (result,) = ask(node, api.AlterConfigsRequest(resources=[resource]), 2).responses
    return int(result.error_code)


def described(node: Node, setting: str, kind: int = TOPIC, name: str = "t") -> Any:
    resource = describe_configs_request.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[setting]
    )
    request = describe_configs_request.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (entry,) = ask(node, request, 4).results[0].configs
    return entry


# --- settings -----------------------------------------------------------------------------------------------


def test_single_settings_are_set_deleted_appended_to_and_subtracted_from() -> None:
    node = make_node()
    topic = make_topic(node)
    assert alter(node, ("retention.ms", SET, "5"), ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert topic.config.overrides == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    assert topic.config.compacted
    assert alter(node, ("cleanup.policy", SUBTRACT, "delete"), ("retention.ms", DELETE, None))[0] == 0
    assert topic.config.overrides == {"cleanup.policy": "compact"}
    assert alter(node, ("cleanup.policy", APPEND, "compact"))[0] == 0
    assert topic.config.overrides == {"cleanup.policy": "compact"}


@for_each(
    [
        ([("retention.ms", SET, "soon")], {}, 40),
        ([("retention.mss", SET, "5")], {}, 40),
        ([("retention.ms", APPEND, "5")], {}, 40),
        ([("cleanup.policy", APPEND, "shred")], {}, 40),
        ([("retention.ms", SET, None)], {}, 42),
        ([("retention.ms", 9, "5")], {}, 42),
        ([("retention.ms", SET, "5"), ("retention.ms", SET, "6")], {}, 42),
        ([("retention.ms", SET, "5")], {"name": "missing"}, 3),
        ([("retention.ms", SET, "5")], {"name": "bad/name"}, 17),
        ([("log.retention.ms", SET, "5")], {"kind": BROKER, "name": "2"}, 42),
        ([("log.retention.ms", SET, "5")], {"kind": BROKER, "name": "x"}, 42),
        ([("node.id", SET, "5")], {"kind": BROKER, "name": "1"}, 42),
        ([("log.retention.ms", SET, "x")], {"kind": BROKER, "name": "1"}, 42),
        ([("a", SET, "b")], {"kind": 99}, 42),
    ]
)
def test_changes_that_are_refused_change_nothing(changes: Any, where: dict[str, Any], code: int) -> None:
    node = make_node()
    topic = make_topic(node)
    before = node.cluster.metadata_end_offset
    found, message = alter(node, *changes, **where)
    assert found == code
    assert message
    assert (topic.config.overrides, node.cluster.metadata_end_offset) == ({}, before)


@pytest.mark.parametrize(
    ("setting", "name", "text"),
    [
        ("security.inter.broker.protocol", "1", "Cannot update these configs dynamically: [{}]"),
        (
            "listener.name.internal.ssl.keystore.location",
            "",
            "Cannot update these configs at default cluster level, broker id must be specified: [{}]",
        ),
        ("listener.name.internal.ssl.keystore.location", "1", None),
        ("listener.name.internal.max.connections", "", None),
    ],
)
def test_what_can_be_changed_for_one_broker_or_all_is_as_in_kafka(
    setting: str, name: str, text: str | None
) -> None:
    value = "9" if "max" in setting else "PLAINTEXT"
    code, message = alter(make_node(), (setting, SET, value), kind=BROKER, name=name, dry=True)
    expected = ErrorCode.NONE if text is None else ErrorCode.INVALID_REQUEST
    assert (code, message) == (expected, text and text.format(setting))


def test_validating_only_changes_nothing() -> None:
    node = make_node()
    topic = make_topic(node)
    assert alter(node, ("retention.ms", SET, "5"), dry=True)[0] == 0
    assert alter(node, ("retention.ms", SET, "x"), dry=True)[0] == 40
    assert topic.config.overrides == {}


def test_the_older_api_replaces_everything_that_was_set() -> None:
    node = make_node()
    topic = make_topic(node, segment_bytes="1000")
    assert replace(node, {"retention.ms": "5"}) == 0
    assert topic.config.overrides == {"retention.ms": "5"}
    assert replace(node, {"retention.ms": None}) == 42
    assert replace(node, {}) == 0
    assert topic.config.overrides == {}


def test_a_resource_named_twice_is_refused_twice() -> None:
    node = make_node()
    make_topic(node)
    api = alter_configs_request
    resource = api.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[])
    found = ask(node, api.AlterConfigsRequest(resources=[resource, resource]), 2).responses
    assert [result.error_code for result in found] == [42, 42]


def test_defaults_of_the_broker_reach_topics_that_exist_and_say_where_they_come_from() -> None:
    node = make_node(log_retention_hours=1)
    topic = make_topic(node)
    assert topic.config.integer("retention.ms") == 3_600_000
    assert alter(node, ("log.retention.ms", SET, "7"), kind=BROKER, name="")[0] == 0
    assert topic.config.integer("retention.ms") == 7
    assert alter(node, ("log.retention.ms", SET, "8"), kind=BROKER, name="1")[0] == 0
    assert topic.config.integer("retention.ms") == 8
    entry = described(node, "retention.ms")
    assert (entry.value, entry.config_source) == ("8", 2)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms] == [
        ("log.retention.ms", "8", 2),
        ("log.retention.ms", "7", 3),
        ("log.retention.hours", "1", 4),
        ("log.retention.hours", "168", 5),
    ]
    own = described(node, "log.retention.ms", BROKER, "1")
    assert (own.value, own.config_source, own.read_only) == ("8", 2, False)
    assert described(node, "log.retention.ms", BROKER, "").value == "7"
    assert alter(node, ("log.retention.ms", DELETE, None), kind=BROKER, name="1")[0] == 0
    assert topic.config.integer("retention.ms") == 7


# --- partitions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count", "brokers", "code"),
    [
        ("t", 3, None, 0),
        ("t", 3, [[1], [1]], 0),
        ("t", 1, None, 37),
        ("t", 0, None, 37),
        ("t", 3, [[1]], 39),
        ("t", 2, [[2]], 39),
        ("t", 20_000, None, 44),
        ("missing", 3, None, 3),
    ],
)
def test_topics_grow(name: str, count: int, brokers: list[list[int]] | None, code: int) -> None:
    node = make_node()
    topic = make_topic(node)
    api = create_partitions_request
    assigned = brokers and [api.CreatePartitionsAssignment(broker_ids=ids) for ids in brokers]
    wanted = api.CreatePartitionsTopic(name=name, count=count, assignments=assigned)
    for dry in (True, False):
        request = api.CreatePartitionsRequest(topics=[wanted], validate_only=dry)
        (result,) = ask(node, request, 3).results
        assert result.error_code == code
        assert len(topic.partitions) == (count if not (dry or code) else 1)
    assert [partition.index for partition in topic.partitions] == list(range(len(topic.partitions)))


def test_a_topic_that_is_to_grow_twice_does_not() -> None:
    node = make_node()
    make_topic(node)
    wanted = create_partitions_request.CreatePartitionsTopic(name="t", count=2, assignments=None)
    request = create_partitions_request.CreatePartitionsRequest(topics=[wanted, wanted])
    assert [result.error_code for result in ask(node, request, 3).results] == [42]


def test_a_partition_on_another_broker_is_named() -> None:
    node = make_node()
    make_topic(node, "t", 4)
    api = create_partitions_request
    assigned = [api.CreatePartitionsAssignment(broker_ids=[broker]) for broker in (1, 9)]
    wanted = api.CreatePartitionsTopic(name="t", count=6, assignments=assigned)
    (result,) = ask(node, api.CreatePartitionsRequest(topics=[wanted]), 3).results
    assert (result.error_code, result.error_message) == (
        39,
        "partition 5: brokers [9]; there is only broker 1",
    )


def test_partitions_are_described_page_by_page() -> None:
    node = make_node()
    for name, count in (("a", 3), ("b", 1), ("c", 2)):
        make_topic(node, name, count)
    api = describe_topic_partitions_request
    seen, cursor = [], None
    for _ in range(10):
        answer = ask(node, api.DescribeTopicPartitionsRequest(response_partition_limit=2, cursor=cursor), 0)
        assert sum(len(topic.partitions) for topic in answer.topics) <= 2
        seen += [(t.name, p.partition_index) for t in answer.topics for p in t.partitions]
        if answer.next_cursor is None:
            break
        where = answer.next_cursor
        cursor = api.Cursor(topic_name=where.topic_name, partition_index=where.partition_index)
    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]
    asked = [api.TopicRequest(name=name) for name in ("b", "missing", "bad/name")]
    answer = ask(node, api.DescribeTopicPartitionsRequest(topics=asked), 0)
    assert {topic.name: topic.error_code for topic in answer.topics} == {"b": 0, "missing": 3, "bad/name": 17}


# --- deleting records ---------------------------------------------------------------------------------------


def delete_up_to(node: Node, offset: int, name: str = "t", partition: int = 0) -> tuple[int, int]:
    api = delete_records_request
    where = api.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = api.DeleteRecordsRequest(topics=[api.DeleteRecordsTopic(name=name, partitions=[where])])
    (result,) = ask(node, request, 2).topics[0].partitions
    return result.error_code, result.low_watermark


def test_records_are_deleted_up_to_an_offset() -> None:
    node = make_node()
    topic = make_topic(node)
    for _ in range(4):
        produce(node, batch_of(b"a", b"b", b"c"))
    assert delete_up_to(node, 5) == (0, 5)
    assert delete_up_to(node, 2) == (0, 5)
    assert delete_up_to(node, 13) == (1, -1)
    assert delete_up_to(node, -2) == (1, -1)
    assert delete_up_to(node, 5, partition=3) == (3, -1)
    assert delete_up_to(node, 5, name="missing") == (3, -1)
    assert delete_up_to(node, -1) == (0, 12)
    assert topic.partitions[0].log_start_offset == topic.partitions[0].high_watermark == 12
    assert produce(node, batch_of(b"d")).base_offset == 12


def test_compacted_and_internal_topics_keep_their_records() -> None:
    node = make_node()
    make_topic(node, "c", cleanup_policy="compact")
    make_topic(node, "both", cleanup_policy="compact,delete")
    make_topic(node, "__consumer_offsets")
    assert delete_up_to(node, 0, name="c") == (44, -1)
    assert delete_up_to(node, 0, name="both") == (0, 0)
    assert delete_up_to(node, 0, name="__consumer_offsets") == (17, -1)


# --- what lasts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_finds_every_change(tmp_path: Path, crash: bool) -> None:
    clock = ManualClock(NOW_MS)

    def start() -> tuple[Node, Any]:
        config = BrokerConfig({"log.dirs": str(tmp_path)})
        store = open_store(config, clock)
        return Node(config, store, clock), store

    node, store = start()
    make_topic(node, segment_bytes="1000")
    for _ in range(4):
        produce(node, batch_of(b"a", b"b", b"c"))
    wanted = create_partitions_request.CreatePartitionsTopic(name="t", count=3, assignments=None)
    ask(node, create_partitions_request.CreatePartitionsRequest(topics=[wanted]), 3)
    alter(node, ("retention.ms", SET, "-1"), ("segment.bytes", DELETE, None))
    alter(node, ("log.retention.bytes", SET, "77"), kind=BROKER, name="")
    assert delete_up_to(node, 5) == (0, 5)
    if crash:
        store._directory.abandon()
    else:
        store.close()

    node, store = start()
    topic = node.cluster.topic("t")
    assert len(topic.partitions) == 3
    assert topic.config.overrides == {"retention.ms": "-1"}
    assert topic.config.integer("retention.bytes") == 77
    assert topic.partitions[0].log_start_offset == 5
    assert topic.partitions[0].high_watermark == 12
    assert produce(node, batch_of(b"d"), partition=2).base_offset == 0
    store.close()


# --- the rest -----------------------------------------------------------------------------------------------


def test_where_a_leader_epoch_ended() -> None:
    node = make_node()
    partition = make_topic(node).partitions[0]
    produce(node, batch_of(b"a", b"b"))
    partition.leader_epoch = 3
    produce(node, batch_of(b"c"))
    api = offset_for_leader_epoch_request

    def end_of(epoch: int, own: int = -1, index: int = 0) -> tuple[int, int, int]:
        asked = api.OffsetForLeaderPartition(partition=index, current_leader_epoch=own, leader_epoch=epoch)
        topics = [api.OffsetForLeaderTopic(topic="t", partitions=[asked])]
        (found,) = ask(node, api.OffsetForLeaderEpochRequest(topics=topics), 4).topics[0].partitions
        return found.error_code, found.leader_epoch, found.end_offset

    assert end_of(0) == (0, 0, 2)
    assert end_of(2) == (0, 0, 2)
    assert end_of(3) == (0, 3, 3)
    assert end_of(4) == (0, -1, -1)
    assert end_of(-1) == (0, -1, -1)
    assert end_of(0, own=3) == (0, 0, 2)
    assert end_of(0, own=2) == (74, -1, -1)
    assert end_of(0, own=4) == (75, -1, -1)
    assert end_of(0, index=9) == (3, -1, -1)
    # A leader that has written nothing yet in its epoch has the one before to its end.
    node.cluster.topics["t"].partitions[0].leader_epoch = 5
    assert end_of(3) == (0, 3, 3)


def test_features() -> None:
    node = make_node()
    api = update_features_request

    def update(version: int, **fields: Any) -> Any:
        key = api.FeatureUpdateKey(**fields)
        return ask(node, api.UpdateFeaturesRequest(feature_updates=[key]), version)

    same = update(2, feature="metadata.version", max_version_level=25)
    assert (same.error_code, same.results) == (0, [])
    other = update(2, feature="metadata.version", max_version_level=24)
    assert other.error_code == 95
    assert "feature had an error: Invalid update version 24 for" in other.error_message
    assert "(INVALID_UPDATE_VERSION)" not in other.error_message
    for version in (0, 1):
        unknown = update(version, feature="wings", max_version_level=1)
        assert (unknown.error_code, unknown.results) == (95, [])
    answer = ask(node, ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    both = [("metadata.version", 25), ("transaction.version", 2)]
    groups = [("group.version", 1), ("share.version", 2), ("streams.version", 1)]
    assert [(f.name, f.max_version_level) for f in answer.finalized_features] == [*both, *groups]
    supported = [*both, ("eligible.leader.replicas.version", 1), *groups, ("kraft.version", 1)]
    assert [(f.name, f.max_version) for f in answer.supported_features] == supported
    assert {f.name for f in answer.supported_features if f.min_version} == {"metadata.version"}
    older = ask(node, ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    assert [f.name for f in older.supported_features] == ["metadata.version"]
    for release, is_listed in (("3.8", False), ("3.9", True), ("4.3", True)):
        clock = ManualClock(NOW_MS)
        config = BrokerConfig({}, release)
        as_release = Node(config, MemoryStore(config.node_id, clock), clock)
        told = ask(as_release, ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
        assert ("kraft.version" in {f.name for f in told.supported_features}) is is_listed
        shares = [each.max_version for each in told.supported_features if each.name == "share.version"]
        final = [each.max_version_level for each in told.finalized_features if each.name == "share.version"]
        assert shares == final == ([1] if release == "4.3" else [])


def test_a_feature_that_cannot_be_updated_is_an_error_of_its_own_before_4_0() -> None:
    node = make_node(as_version="3.9")
    api = update_features_request
    key = api.FeatureUpdateKey(feature="wings", max_version_level=1)
    answer = ask(node, api.UpdateFeaturesRequest(feature_updates=[key]), 1)
    assert (answer.error_code, answer.results[0].error_code) == (0, 95)


DOWN, UP = "without setting the upgrade type", "Can't downgrade to a newer version."
NO_KIND, OTHER_LEVELS = "does not support the given upgrade type", "This broker supports"

UPDATES: list[tuple[str, dict[str, int], list[tuple[int, int, str]]]] = [
    # The release whose level the metadata have; then levels, upgrade types, and what is wrong with them.
    (
        "4.0",
        {"share.version": 2},
        [(2, 0, NO_KIND), (2, 4, NO_KIND), (2, 1, ""), (2, 2, ""), (1, 1, DOWN), (3, 1, OTHER_LEVELS),
         (-1, 2, OTHER_LEVELS), (1, 2, ""), (1, 1, ""), (2, 2, UP), (0, 2, ""), (1, 3, UP), (2, 1, ""),
         (0, 3, "")],
    ),
    (
        "4.0",
        {"transaction.version": 2},
        [(1, 1, DOWN), (1, 2, ""), (0, 1, DOWN), (2, 3, UP), (2, 1, ""), (3, 1, OTHER_LEVELS)],
    ),
    ("4.0", {"eligible.leader.replicas.version": 0}, [(1, 3, UP), (1, 1, ""), (0, 1, DOWN), (0, 3, "")]),
    ("3.9", {"eligible.leader.replicas.version": 0}, [(1, 1, "metadata.version level 23"), (0, 1, "")]),
    ("4.0", {"kraft.version": 0}, [(0, 1, ""), (0, 2, ""), (1, 1, "one voter"), (2, 1, "one voter")]),
    ("3.9", {"metadata.version": 21}, [(21, 1, ""), (25, 2, UP), (20, 2, OTHER_LEVELS), (25, 1, "")]),
    (
        "4.3",
        {"metadata.version": 30},
        [(30, 1, ""), (30, 3, ""), (25, 1, DOWN), (25, 2, "cannot be taken back"), (29, 3, OTHER_LEVELS)],
    ),
]  # fmt: skip


@for_each(UPDATES)
def test_levels_of_features_go_up_and_down_as_the_upgrade_type_says(
    release: str, begin: dict[str, int], steps: list[tuple[int, int, str]]
) -> None:
    node = make_node(penstock_metadata_version=release)
    [(feature, level)] = begin.items()
    for wanted, kind, wrong in steps:
        api = update_features_request
        key = api.FeatureUpdateKey(feature=feature, max_version_level=wanted, upgrade_type=kind)
        for dry in (True, False):
            answer = ask(node, api.UpdateFeaturesRequest(feature_updates=[key], validate_only=dry), 2)
            assert answer.error_code == (95 if wrong else 0), (wanted, kind, answer)
            assert wrong in (answer.error_message or ""), (wanted, kind, answer)
        level = level if wrong else wanted
        default = 2 if feature == "share.version" else 0
        assert node.cluster.features.get(feature, default) == level, (wanted, kind)


def test_version_0_has_a_flag_for_downgrades() -> None:
    node = make_node()
    for may, code in ((False, 95), (True, 0)):
        key = update_features_request.FeatureUpdateKey(
            feature="transaction.version", max_version_level=1, allow_downgrade=may
        )
        asked = update_features_request.UpdateFeaturesRequest(feature_updates=[key])
        assert ask(node, asked, 0).error_code == code


def test_the_level_of_transactions_can_be_changed() -> None:
    node = make_node()

    def update(level: int) -> int:
        key = update_features_request.FeatureUpdateKey(
            feature="transaction.version",
            max_version_level=level,
            upgrade_type=1 if level > node.cluster.features.get("transaction.version", 0) else 2,
        )
        request = update_features_request.UpdateFeaturesRequest(feature_updates=[key])
        return int(ask(node, request, 2).error_code)

    for level in (0, 1, 2):
        assert update(level) == 0
        assert node.transactions.open().registry.feature_level == level
        assert node.cluster.features.get("transaction.version", 0) == level
    assert update(3) == 95


@for_each(
    [
        ([], 0),
        ([("user", 0, "ada"), ("client-id", 1, None)], 0),
        ([("ip", 2, None)], 0),
        ([("", 0, "ada")], 42),
        ([("user", 0, "ada"), ("user", 1, None)], 42),
        ([("colour", 0, "red")], 35),
        ([("user", 0, None)], 42),
        ([("user", 1, "ada")], 42),
        ([("user", 3, None)], 42),
        ([("ip", 0, "127.0.0.1"), ("user", 1, None)], 42),
    ]
)
def test_filters_of_quotas(components: list[tuple[str, int, str | None]], code: int) -> None:
    wanted = [
        describe_client_quotas_request.ComponentData(entity_type=kind, match_type=how, match=match)
        for kind, how, match in components
    ]
    request = describe_client_quotas_request.DescribeClientQuotasRequest(components=wanted)
    answer = ask(make_node(), request, 1)
    assert (answer.error_code, answer.entries) == (code, [] if code == 0 else None)


@pytest.mark.parametrize(
    ("length", "partition", "expected"),
    [
        (213, 0, ErrorCode.LOG_DIR_NOT_FOUND),
        (214, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (212, 10, ErrorCode.LOG_DIR_NOT_FOUND),
        (213, 10, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (249, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_partitions_with_long_names_cannot_move(length: int, partition: int, expected: int) -> None:
    """The directory of a replica that moves has a suffix of 41 characters.

    The request fails if the name with the suffix is longer than 255 bytes, the limit of file systems.
    """
    node, topic = make_node(), "x" * length
    make_topic(node, topic, 11)
    moved = AlterReplicaLogDirTopic(name=topic, partitions=[partition])
    asked = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/elsewhere", topics=[moved])])
    [result] = ask(node, asked, 2).results
    assert result.partitions[0].error_code == expected


def test_log_directories(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({"log.dirs": str(tmp_path)})
    store = open_store(config, clock)
    node = Node(config, store, clock)
    make_topic(node, "t", 2)
    produce(node, batch_of(b"a"))
    (found,) = ask(node, DescribeLogDirsRequest(topics=None), 4).results
    assert found.log_dir == str(tmp_path)
    sizes = {p.partition_index: p.partition_size for p in found.topics[0].partitions}
    assert sizes == {0: node.cluster.topic("t").partitions[0].log.size_bytes, 1: 0}
    assert found.total_bytes >= found.usable_bytes > 0
    store.close()


def test_nobody_else_can_be_elected_or_given_a_partition() -> None:
    node = make_node()
    make_topic(node)
    [everywhere] = ask(node, ElectLeadersRequest(topic_partitions=None), 2).replica_election_results
    assert (everywhere.topic, everywhere.partition_result) == ("t", [])
    assert ask(node, ElectLeadersRequest(election_type=7, topic_partitions=None), 2).error_code == 42
    api = alter_partition_reassignments_request
    wanted = [api.ReassignablePartition(partition_index=n, replicas=[1]) for n in (0, 9)]
    request = api.AlterPartitionReassignmentsRequest(
        topics=[api.ReassignableTopic(name="t", partitions=wanted)]
    )
    assert [p.error_code for p in ask(node, request, 0).responses[0].partitions] == [0, 3]
