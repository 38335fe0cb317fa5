"""Tests of the handlers that transfer no records: topics, settings, cluster, offsets, producer ids."""

from __future__ import annotations

from typing import Any

import pytest

from broker.bench_node import (
    EVERY_API,
    NOW_MS,
    ask,
    ask_bytes,
    batch_of,
    context_of,
    make_node,
    make_topic,
    produce,
)
from broker.wire_client import WireClient
from penstock import Broker
from penstock.broker.handlers import ROUTES
from penstock.broker.node import Node
from penstock.broker.requests.dispatch import answer
from penstock.errors import StorageError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import decode_response
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse
from penstock.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic


def fail(*args: Any, **kwargs: Any) -> None:
    raise StorageError("cannot write x: the disk is full")


# --- ApiVersions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "of_producer_ids"), [("false", (0, 5)), ("true", (0, 6))])
def test_the_registered_handlers_are_the_answer(setting: str, of_producer_ids: tuple[int, int]) -> None:
    settings = EVERY_API | {"unstable_api_versions_enable": setting}
    entries = ask(make_node(**settings), ApiVersionsRequest(), 0).api_keys
    found = {entry.api_key: (entry.min_version, entry.max_version) for entry in entries}
    registered = {route.key: (route.min_version, route.max_version) for route in ROUTES.values()}
    assert found == {**registered, ApiKey.INIT_PRODUCER_ID: of_producer_ids}
    assert found[ApiKey.PRODUCE] == (0, 13)
    assert list(found) == sorted(found)


def test_apis_of_clients_metrics_are_offered_where_these_are_taken() -> None:
    """ApiVersions lists the telemetry APIs only if `penstock.client.metrics` is on.

    Apache Kafka, too, offers them only with a configured receiver of client metrics (KIP-714).
    """
    names = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    for settings, offered in (({}, set()), ({"penstock_client_metrics": "true"}, names)):
        entries = ask(make_node(**settings), ApiVersionsRequest(), 0).api_keys
        assert {entry.api_key for entry in entries} & names == offered


@pytest.mark.parametrize("version", [6, 99, -1])
def test_an_unknown_version_is_answered_in_version_0_with_the_versions_known(version: int) -> None:
    frame = (
        ApiKey.API_VERSIONS.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + b"\0\0\0\7" + b"?!"
    )
    pieces = answer(memoryview(bytearray(frame)), context_of(make_node(), 0))
    assert isinstance(pieces, list)
    correlation_id, response = decode_response(b"".join(pieces)[4:], ApiVersionsResponse, 0)
    assert (correlation_id, response.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert [(entry.api_key, entry.max_version) for entry in response.api_keys] == [(18, 5)]


@pytest.mark.parametrize(
    ("name", "version", "code"),
    [
        ("librdkafka", "2.16.1", 0),
        ("a", "b", 0),
        ("", "1", 42),
        ("x", "", 42),
        ("-x", "1", 42),
        ("x y", "1", 42),
    ],
)
def test_software_names(name: str, version: str, code: int) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert ask(make_node(), request, 3).error_code == code
    assert ask(make_node(), request, 2).error_code == 0


def test_a_client_of_another_cluster_or_node_is_sent_back_to_its_bootstrap_servers() -> None:
    """ApiVersions with another cluster or node id gets error 129 (KIP-1242).

    Without a cluster id, and before version 5, the ids are not compared.
    """
    node = make_node()
    here, there = node.cluster.cluster_id, "another"
    for version, cluster_id, node_id, code in (
        (5, here, node.node_id, 0),
        (5, here, node.node_id + 1, 129),
        (5, there, node.node_id, 129),
        (5, None, node.node_id + 1, 0),
        (4, there, node.node_id, 0),
    ):
        request = ApiVersionsRequest(
            client_software_name="x", client_software_version="1", cluster_id=cluster_id, node_id=node_id
        )
        response = ask(node, request, version)
        assert (response.error_code, bool(response.api_keys)) == (code, not code)


# --- Metadata -----------------------------------------------------------------------------------------------


def names_asked(*names: str | None, **fields: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


@pytest.mark.parametrize(
    ("request_", "version", "found"),
    [
        (MetadataRequest(topics=[]), 0, ["a", "b"]),
        (MetadataRequest(topics=[]), 1, []),
        (MetadataRequest(topics=None), 1, ["a", "b"]),
        (names_asked("b"), 1, ["b"]),
    ],
)
def test_which_topics(request_: MetadataRequest, version: int, found: list[str]) -> None:
    node = make_node()
    make_topic(node, "a")
    make_topic(node, "b")
    assert [topic.name for topic in ask(node, request_, version).topics] == found


def test_a_topic_and_its_cluster() -> None:
    node = make_node(node_id=3, broker_rack="r")
    topic = make_topic(node, "__consumer_offsets", 2)
    response = ask(node, names_asked("__consumer_offsets"), 12)
    [broker] = response.brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (3, "127.0.0.1", 9092, "r")
    assert (response.controller_id, response.cluster_id) == (3, node.cluster.cluster_id)
    [found] = response.topics
    assert (found.topic_id, found.is_internal, len(found.partitions)) == (topic.id, True, 2)
    [_, last] = found.partitions
    assert (last.partition_index, last.leader_id, last.leader_epoch) == (1, 3, 0)
    assert last.replica_nodes == last.isr_nodes == [3]


def test_advertised_listeners_are_what_clients_are_told() -> None:
    config = {"advertised.listeners": "PLAINTEXT://broker.example:19092"}
    with Broker(config=config) as running, WireClient(running.port) as client:
        [broker] = client.ask(MetadataRequest(topics=[]), 1).brokers
        [coordinator] = client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators
    assert (broker.host, broker.port) == ("broker.example", 19092)
    assert (coordinator.host, coordinator.port) == ("broker.example", 19092)


def test_asking_for_a_topic_creates_it() -> None:
    node = make_node(num_partitions=3)
    [topic] = ask(node, names_asked("new"), 4).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 3)


@pytest.mark.parametrize(
    ("settings", "allowed", "name", "code"),
    [
        ({}, False, "new", 3),
        ({"auto_create_topics_enable": "false"}, True, "new", 3),
        ({}, True, "no/name", 17),
        ({}, True, "there_is", 17),
    ],
)
def test_when_it_does_not(settings: dict[str, str], allowed: bool, name: str, code: int) -> None:
    node = make_node(**settings)
    make_topic(node, "there.is")
    [topic] = ask(node, names_asked(name, allow_auto_topic_creation=allowed), 4).topics
    assert (topic.error_code, topic.name, topic.partitions) == (code, name, [])
    assert set(node.cluster.topics) == {"there.is"}


def test_topics_by_id_since_version_12() -> None:
    node = make_node()
    topic = make_topic(node)
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic.id)])
    assert ask(node, by_id, 12).topics[0].name == "t"
    assert ask(node, by_id, 10).topics[0].error_code == ErrorCode.INVALID_REQUEST
    unknown = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"\1" * 16)])
    assert ask(node, unknown, 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_librdkafkas_stray_bytes_behind_a_request_are_ignored() -> None:
    """librdkafka encodes a null array as four zero bytes where the compact format has one.

    The surplus bytes at the end of the request do no harm.
    """
    node = make_node()
    make_topic(node)
    frame = b"\0\3\0\x0c\0\0\0\7\0\1x\0" + b"\0\0\0\0\0\0\0"
    pieces = answer(memoryview(bytearray(frame)), context_of(node, 12))
    assert isinstance(pieces, list)


def test_a_disk_that_is_full_creates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node()
    monkeypatch.setattr(node.store.metadata_log(), "append", fail)
    assert ask(node, names_asked("new"), 4).topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    created = ask(node, create_request("new"), 7).topics[0]
    assert created.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert ask(node, InitProducerIdRequest(transactional_id=None), 4).error_code == 15
    assert node.cluster.topics == {}


# --- CreateTopics, DeleteTopics -----------------------------------------------------------------------------


def create_request(*names: str, validate_only: bool = False, partitions: int = 1) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


def test_created_topics_tell_what_they_are() -> None:
    node = make_node()
    request = create_request("t", partitions=2)
    request.topics[0].configs = [CreatableTopicConfig(name="retention.ms", value="5")]
    [result] = ask(node, request, 7).topics
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)
    assert result.topic_id == node.cluster.topic("t").id
    config = {config.name: config for config in result.configs}["retention.ms"]
    assert (config.value, config.config_source) == ("5", 1)


def test_an_internal_setting_is_told_where_it_was_set() -> None:
    node, name = make_node(), "internal.segment.bytes"
    request = create_request("t", "u")
    request.topics[0].configs = [CreatableTopicConfig(name=name, value="1000")]
    with_it, without = ask(node, request, 7).topics
    assert {config.name: config.value for config in with_it.configs}[name] == "1000"
    assert name not in {config.name for config in without.configs}


def test_each_topic_has_its_own_outcome() -> None:
    node = make_node()
    make_topic(node, "old")
    results = ask(node, create_request("new", "old", "bad/name", "__cluster_metadata"), 7).topics
    assert [result.error_code for result in results] == [0, 36, 17, 42]
    assert all(result.error_message for result in results[1:])
    assert results[3].error_message == "Creation of internal topic __cluster_metadata is prohibited."


def test_a_topic_named_twice_is_not_created() -> None:
    node = make_node()
    results = ask(node, create_request("t", "t"), 7).topics
    assert [(result.name, result.error_code) for result in results] == [("t", 42)]
    assert not node.cluster.topics


def test_validating_creates_nothing() -> None:
    node = make_node()
    [result] = ask(node, create_request("t", validate_only=True), 7).topics
    assert result.error_code == 0
    assert result.topic_id != bytes(16), "Kafka makes one up, too"
    assert not node.cluster.topics


def test_replicas_by_hand() -> None:
    assignments = [CreatableReplicaAssignment(partition_index=n, broker_ids=[1]) for n in (0, 1)]
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=assignments)
    [result] = ask(make_node(), CreateTopicsRequest(topics=[topic]), 7).topics
    assert (result.error_code, result.num_partitions) == (0, 2)


def test_one_request_cannot_ask_for_everything() -> None:
    node = make_node()
    results = ask(node, create_request("a", "b", partitions=6000), 7).topics
    assert [result.error_code for result in results] == [0, ErrorCode.POLICY_VIOLATION]


def test_a_thousand_topics_in_one_request() -> None:
    node = make_node()
    results = ask(node, create_request(*(f"t{n}" for n in range(1000))), 7).topics
    assert len(results) == len(node.cluster.topics) == 1000


@pytest.mark.parametrize("version", [5, 6])
def test_deleting(version: int) -> None:
    node = make_node()
    topic = make_topic(node)
    produce(node, batch_of(b"a"))
    if version == 5:
        request = DeleteTopicsRequest(topic_names=["t", "missing"])
    else:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(topic_id=topic.id), DeleteTopicState(topic_id=b"\1" * 16)]
        )
    first, second = ask(node, request, version).responses
    assert (first.name, first.error_code) == ("t", 0)
    assert second.error_code == (3 if version == 5 else 100)
    assert not node.cluster.topics
    assert make_topic(node).partitions[0].high_watermark == 0


def test_deleting_twice_or_by_name_and_id_at_once() -> None:
    node = make_node()
    topic = make_topic(node)
    both = DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=topic.id)])
    assert ask(node, both, 6).responses[0].error_code == 42
    twice = DeleteTopicsRequest(topic_names=["t", "t"])
    assert [result.error_code for result in ask(node, twice, 5).responses] == [42]
    assert "t" in node.cluster.topics


@pytest.mark.parametrize(("version", "code"), [(2, 42), (3, 73)])
def test_deleting_can_be_switched_off(version: int, code: int) -> None:
    node = make_node(delete_topic_enable="false")
    make_topic(node)
    assert ask(node, DeleteTopicsRequest(topic_names=["t"]), version).responses[0].error_code == code
    assert node.cluster.topics


def test_what_cannot_be_written_is_not_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node()
    make_topic(node)
    monkeypatch.setattr(node.store.metadata_log(), "append", fail)
    assert ask(node, DeleteTopicsRequest(topic_names=["t"]), 5).responses[0].error_code == 56
    assert node.cluster.topics


# --- DescribeConfigs, DescribeCluster -----------------------------------------------------------------------


def describe(node: Node, kind: int, name: str, *keys: str, version: int = 4) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=version >= 1, include_documentation=version >= 3
    )
    return ask_bytes(node, request, version).results[0]


def test_settings_of_a_topic_with_their_sources() -> None:
    node = make_node(log_retention_hours=1, log_cleanup_policy="compact")
    make_topic(node, segment_bytes=" 2000 ")
    configs = {config.name: config for config in describe(node, 2, "t").configs}
    assert len(configs) > 25
    segment, retention = configs["segment.bytes"], configs["retention.ms"]
    assert (segment.value, segment.config_source, segment.config_type) == ("2000", 1, 3)
    assert [(s.name, s.value, s.source) for s in segment.synonyms] == [
        ("segment.bytes", "2000", 1),
        ("log.segment.bytes", "1073741824", 5),
    ]
    policy = configs["cleanup.policy"]
    assert (policy.value, policy.config_source) == ("compact", 4)
    assert [(s.value, s.source) for s in policy.synonyms] == [("compact", 4), ("delete", 5)]
    # What is set in another unit shows in the value, and not in where it comes from: as in Kafka.
    assert (retention.value, retention.config_source, retention.synonyms) == ("3600000", 5, [])
    assert retention.documentation


def test_only_the_settings_asked_for_and_the_older_flag() -> None:
    node = make_node()
    make_topic(node, retention_ms="5")
    result = describe(node, 2, "t", "retention.ms", "segment.ms", version=0)
    assert [(c.name, c.is_default) for c in result.configs] == [("retention.ms", False), ("segment.ms", True)]


def test_settings_of_the_broker() -> None:
    node = make_node(num_partitions=7)
    [config] = describe(node, 4, "1", "num.partitions").configs
    assert (config.value, config.config_source, config.read_only) == ("7", 4, True)
    assert describe(node, 4, "").configs == []


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "missing", 3),
        (2, "bad/name", 17),
        (4, "2", 42),
        (8, "x", 42),
        (16, "", 42),
        (32, "", 42),
        (99, "g", 42),
    ],
)
def test_things_without_settings(kind: int, name: str, code: int) -> None:
    result = describe(make_node(), kind, name)
    assert result.error_code == code
    assert result.error_message


@pytest.mark.parametrize(("endpoint", "code"), [(1, 0), (2, 114), (9, 115)])
def test_cluster(endpoint: int, code: int) -> None:
    node = make_node()
    response = ask(node, DescribeClusterRequest(endpoint_type=endpoint), 1)
    assert response.error_code == code
    assert [broker.broker_id for broker in response.brokers] == ([1] if code == 0 else [])


# --- ListOffsets --------------------------------------------------------------------------------------------


def list_offset(node: Node, timestamp: int, version: int = 11, epoch: int = -1, topic: str = "t") -> Any:
    partition = ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch, max_num_offsets=10
    )
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    return ask(node, request, version).topics[0].partitions[0]


def timed_node() -> Node:
    node = make_node()
    make_topic(node)
    for time_ms in (NOW_MS, NOW_MS + 20, NOW_MS + 10):
        produce(node, batch_of(b"a", b"b", time_ms=time_ms))
    return node


@pytest.mark.parametrize(
    ("timestamp", "offset", "time"),
    [
        (-1, 6, -1),
        (-2, 0, -1),
        (-3, 2, NOW_MS + 20),
        (-4, 0, -1),
        (-5, -1, -1),
        (-6, -1, -1),
        (0, 0, NOW_MS),
        (NOW_MS + 1, 2, NOW_MS + 20),
        (NOW_MS + 21, -1, -1),
    ],
)
def test_offsets_for_times(timestamp: int, offset: int, time: int) -> None:
    found = list_offset(timed_node(), timestamp)
    assert (found.error_code, found.offset, found.timestamp) == (0, offset, time)
    assert found.leader_epoch == (-1 if offset == -1 else 0)


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_special_times_of_later_versions(timestamp: int, version: int) -> None:
    assert list_offset(timed_node(), timestamp, version).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_version_0_lists_segments() -> None:
    node = timed_node()
    assert list_offset(node, -1, 0).old_style_offsets == [6, 0]
    assert list_offset(node, -2, 0).old_style_offsets == [0]
    assert list_offset(node, 5, 0).old_style_offsets == []


def test_list_offsets_errors() -> None:
    node = timed_node()
    assert list_offset(node, -1, topic="missing").error_code == 3
    assert list_offset(node, -1, epoch=1).error_code == 75


# --- InitProducerId, FindCoordinator ------------------------------------------------------------------------


def test_producer_ids_are_new_and_begin_with_epoch_0() -> None:
    node = make_node()
    first, second = (ask(node, InitProducerIdRequest(transactional_id=None), 4) for _ in range(2))
    assert first.producer_id != second.producer_id
    assert (first.error_code, first.producer_epoch) == (0, 0)


@pytest.mark.parametrize(("name", "timeout_ms", "code"), [("", 1000, 42), ("tx", 0, 50), ("tx", 900_001, 50)])
def test_wrong_transactional_ids_and_timeouts_are_refused(name: str, timeout_ms: int, code: int) -> None:
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
    response = ask(make_node(), request, 4)
    assert (response.error_code, response.producer_id) == (code, -1)


@pytest.mark.parametrize(("kind", "version", "code"), [(2, 6, 42), (2, 5, 42), (7, 6, 42)])
def test_there_is_no_coordinator_and_the_message_says_so(kind: int, version: int, code: int) -> None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["a"])
    [found] = ask(make_node(), request, version).coordinators
    assert (found.error_code, found.node_id) == (code, -1)
    assert found.error_message


def test_a_user_without_a_name_is_refused_whatever_is_asked_of_it() -> None:
    from penstock.protocol.messages import alter_user_scram_credentials_request as messages

    deletion = messages.ScramCredentialDeletion(name="", mechanism=1)
    upsertion = messages.ScramCredentialUpsertion(
        name="", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
    )
    for deletions, upsertions in (([deletion], []), ([], [upsertion]), ([deletion], [upsertion])):
        request = messages.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
        [result] = ask(make_node(), request, 0).results
        assert (result.error_code, result.error_message) == (93, "Username must not be empty")
    deletion.name = upsertion.name = "u"
    upsertion.mechanism = 9
    request = messages.AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[upsertion])
    assert [each.error_code for each in ask(make_node(), request, 0).results] == [33], "not 92, twice"
