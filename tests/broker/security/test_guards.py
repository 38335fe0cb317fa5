"""Tests of authorization for each API in every version: required rights, refusals, and hidden resources."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from broker.bench_node import (
    EVERY_API,
    ask,
    ask_bytes,
    batch_of,
    context_of,
    make_node,
    make_topic,
    produce,
    produce_request,
)
from broker.groups.streams_bench import internal, subtopology, topology_of
from broker.handlers.test_every_version import CASES, REQUESTS, codes_in
from broker.wire_client import WireClient
from for_each import for_each
from penstock import Broker
from penstock.broker.context import CloseConnection
from penstock.broker.handlers import ROUTES
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import LogStore, MemoryStore
from penstock.broker.requests.purgatory import Wait
from penstock.broker.security.authorizer import AUTHORIZERS
from penstock.broker.security.guards.table import GUARDS, OPEN
from penstock.broker.security.image import record_of
from penstock.broker.session import Principal
from penstock.clock import ManualClock
from penstock.errors import ConfigError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_acls_request import DescribeAclsRequest
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from penstock.security.acls import Acl, Operation, Permission, parse_rule

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NOT_ASKED = -(2**31)


"""The value of the authorized-operations fields when a request did not ask for them."""

WITH_RANDOM_FIELDS = (
    ApiKey.METADATA,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.CREATE_TOPICS,
    ApiKey.JOIN_GROUP,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
)


def secured(*rules: str, store: LogStore | None = None, **settings: object) -> Node:
    """Return a broker with an authorizer and these rules, for sessions of the user ann."""
    settings = {**EVERY_API, **settings}
    node = make_node(store, authorizer_class_name=STANDARD, super_users="User:root", **settings)
    records = [record_of(acl) for rule in rules for acl in parse_rule(rule)]
    node.cluster.alter(records, 0)
    return node


@pytest.fixture(autouse=True)
def _as_ann(monkeypatch: pytest.MonkeyPatch) -> None:
    def context_of_ann(node: Node, version: int, waited_s: float = 0) -> Any:
        context = context_of(node, version, waited_s)
        context.session.principal = Principal("User", "ann")
        return context

    monkeypatch.setattr("broker.bench_node.context_of", context_of_ann)


DENIED = {
    ApiKey.PRODUCE: {29}, ApiKey.FETCH: {29}, ApiKey.LIST_OFFSETS: {29}, ApiKey.METADATA: {29, 100},
    ApiKey.OFFSET_COMMIT: {30}, ApiKey.OFFSET_FETCH: {30}, ApiKey.FIND_COORDINATOR: {30, 53, 31},
    ApiKey.JOIN_GROUP: {30}, ApiKey.HEARTBEAT: {30}, ApiKey.LEAVE_GROUP: {30}, ApiKey.SYNC_GROUP: {30},
    ApiKey.DESCRIBE_GROUPS: {30}, ApiKey.LIST_GROUPS: set(), ApiKey.CREATE_TOPICS: {29},
    ApiKey.DELETE_TOPICS: {29}, ApiKey.DELETE_RECORDS: {29}, ApiKey.INIT_PRODUCER_ID: {31, 53},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {29}, ApiKey.DESCRIBE_ACLS: {31}, ApiKey.CREATE_ACLS: {31},
    ApiKey.DELETE_ACLS: {31}, ApiKey.DESCRIBE_CONFIGS: {29, 31}, ApiKey.ALTER_CONFIGS: {29, 31},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {29, 31}, ApiKey.ALTER_REPLICA_LOG_DIRS: {31},
    ApiKey.DESCRIBE_LOG_DIRS: {31}, ApiKey.CREATE_PARTITIONS: {29}, ApiKey.DELETE_GROUPS: {30},
    ApiKey.ELECT_LEADERS: {31}, ApiKey.ALTER_PARTITION_REASSIGNMENTS: {31},
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {31}, ApiKey.OFFSET_DELETE: {30},
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {31}, ApiKey.ALTER_CLIENT_QUOTAS: {31},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {31}, ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {31},
    ApiKey.DESCRIBE_QUORUM: {31}, ApiKey.UPDATE_FEATURES: {31}, ApiKey.DESCRIBE_CLUSTER: set(),
    ApiKey.UNREGISTER_BROKER: {31}, ApiKey.UNREGISTER_CONTROLLER: {31},
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: {30},
    ApiKey.DESCRIBE_PRODUCERS: {29}, ApiKey.DESCRIBE_TRANSACTIONS: {53}, ApiKey.LIST_TRANSACTIONS: set(),
    ApiKey.ADD_PARTITIONS_TO_TXN: {31, 53}, ApiKey.ADD_OFFSETS_TO_TXN: {53}, ApiKey.END_TXN: {53},
    ApiKey.WRITE_TXN_MARKERS: {31}, ApiKey.TXN_OFFSET_COMMIT: {53},
    ApiKey.LIST_CONFIG_RESOURCES: {31}, ApiKey.DESCRIBE_TOPIC_PARTITIONS: {29},
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {30}, ApiKey.CONSUMER_GROUP_DESCRIBE: {30},
    ApiKey.SHARE_FETCH: {30}, ApiKey.SHARE_ACKNOWLEDGE: {30},
    ApiKey.SHARE_GROUP_HEARTBEAT: {30}, ApiKey.SHARE_GROUP_DESCRIBE: {30},
    ApiKey.STREAMS_GROUP_HEARTBEAT: {30}, ApiKey.STREAMS_GROUP_DESCRIBE: {30},
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: {30}, ApiKey.ALTER_SHARE_GROUP_OFFSETS: {30},
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: {30}, ApiKey.INITIALIZE_SHARE_GROUP_STATE: {31},
    ApiKey.READ_SHARE_GROUP_STATE: {31}, ApiKey.WRITE_SHARE_GROUP_STATE: {31},
    ApiKey.DELETE_SHARE_GROUP_STATE: {31}, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: {31},
}  # fmt: skip
"""A dict from API to the error codes of a refusal.

An empty set means that the response leaves out what the client may not see.
"""

FIRST_WITH_A_CODE = {ApiKey.DESCRIBE_LOG_DIRS: 3}
"""A dict from API to the first response version with an error code field."""


def test_every_api_has_a_guard_or_is_open() -> None:
    """A new handler fails this test until its API is listed in `GUARDS` or `OPEN`."""
    assert {int(key) for key in ROUTES} == {int(key) for key in (*GUARDS, *OPEN)}
    assert not GUARDS.keys() & OPEN
    assert DENIED.keys() == GUARDS.keys()


@for_each(CASES)
def test_without_any_rule_all_is_refused_or_hidden(key: ApiKey, version: int) -> None:
    node = secured()
    make_topic(node)
    produce(node, batch_of(b"before"))
    request = REQUESTS[key](node, version)
    response = ask_bytes(node, request, version)
    if key in OPEN:
        return
    codes = codes_in(response) - {0}
    if version >= FIRST_WITH_A_CODE.get(key, 0):
        # Where nothing exists that could be hidden, there may be an ordinary error beside the refusal.
        unresolved = {3, 100, 42, 33} if key in (ApiKey.DELETE_TOPICS, ApiKey.METADATA) else {100, 42}
        assert codes - unresolved <= DENIED[key]
        assert bool(codes & DENIED[key]) == bool(DENIED[key]) or codes <= {100}
    assert "before" not in repr(response)
    assert node.cluster.topics.keys() <= {"t"}
    assert not node.cluster.quotas


@for_each(CASES)
def test_a_super_user_is_answered_as_without_an_authorizer(key: ApiKey, version: int) -> None:
    if key in (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
        return

    def answer(node: Node) -> Any:
        make_topic(node)
        produce(node, batch_of(b"before"))
        for one in node.cluster.topics.values() if key != ApiKey.CREATE_PARTITIONS else ():
            node.cluster.topics_by_id.pop(one.id)
            one.id = b"\7" * 16
            node.cluster.topics_by_id[one.id] = one
        return ask_bytes(node, REQUESTS[key](node, version), version)

    privileged = make_node(authorizer_class_name=STANDARD, super_users="User:ann", **EVERY_API)
    expected, found = answer(make_node(**EVERY_API)), answer(privileged)
    random_fields = {"cluster_id", "topics", "leader", "member_id", "members"}
    random_fields |= {"client_instance_id", "subscription_id"}
    if key in WITH_RANDOM_FIELDS:
        for each in (expected, found):
            for field in random_fields & set(type(each).__slots__):
                setattr(each, field, None)
    if key in (ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.DESCRIBE_QUORUM, ApiKey.PRODUCE):
        assert codes_in(found) == codes_in(expected)
    else:
        assert found == expected


# --- produce and fetch -------------------------------------------------------------------------------------


def two_topics(*rules: str, **settings: object) -> Node:
    node = secured(*rules, **settings)
    make_topic(node, "mine")
    make_topic(node, "yours")
    return node


def test_a_produce_is_allowed_in_part() -> None:
    node = two_topics("allow ann write topic:mine")
    request = produce_request(batch_of(b"a"), topic="mine")
    request.topic_data += produce_request(batch_of(b"b"), topic="yours").topic_data
    response = ask_bytes(node, request, 9)
    found = {topic.name: topic.partition_responses[0] for topic in response.responses}
    assert (found["mine"].error_code, found["mine"].base_offset) == (0, 0)
    yours = found["yours"]
    assert (yours.error_code, yours.base_offset, yours.log_start_offset) == (29, -1, -1)
    assert node.cluster.topic("yours").partition(0).log.end_offset == 0


def test_a_produce_without_answer_to_a_refused_topic_closes_the_connection() -> None:
    node = two_topics("allow ann write topic:mine")
    with pytest.raises(CloseConnection):
        ask_bytes(node, produce_request(batch_of(b"a"), topic="yours", acks=0), 9)


def test_a_transactional_batch_needs_its_id() -> None:
    node = two_topics("allow ann write topic:mine")
    batch = batch_of(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    batch[22] |= 0x10
    request = produce_request(batch, topic="mine")
    request.transactional_id = "x"
    response = ask_bytes(node, request, 9)
    assert codes_in(response) == {0, 53}


def fetch_request(*topics: str, **fields: Any) -> FetchRequest:
    asked = [
        FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
        for topic in topics
    ]
    return FetchRequest(topics=asked, max_bytes=1 << 20, min_bytes=0, **fields)


def test_a_fetch_is_allowed_in_part_and_then_has_no_session() -> None:
    node = two_topics("allow ann read topic:mine")
    response = ask_bytes(node, fetch_request("mine", "yours", session_epoch=0), 12)
    found = {topic.topic: topic.partitions[0] for topic in response.responses}
    assert (found["mine"].error_code, found["yours"].error_code) == (0, 29)
    assert (found["yours"].high_watermark, found["yours"].records or b"") == (-1, b"")
    assert response.session_id == 0
    assert ask_bytes(node, fetch_request("mine", session_epoch=0), 12).session_id > 0


def test_a_session_tells_nothing_of_a_topic_that_may_not_be_read_any_more() -> None:
    node = two_topics("allow ann read topic:mine")
    node.cluster.alter([record_of(acl) for acl in parse_rule("allow ann write topic:mine")], 0)
    context = context_of(node, 12)
    context.session.principal = Principal("User", "ann")
    route = node.router.find(ApiKey.FETCH, 12)
    first: Any = route.handle(fetch_request("mine", session_epoch=0), context)
    node.cluster.alter([record_of(acl) for acl in parse_rule("deny ann read topic:mine")], 0)
    produce(node, batch_of(b"secret"), topic="mine")
    again: Any = route.handle(
        FetchRequest(session_id=first.session_id, session_epoch=1, max_bytes=1 << 20, min_bytes=0), context
    )
    assert [part.error_code for topic in again.responses for part in topic.partitions] == [29]
    assert "secret" not in repr(again)


def test_a_fetch_of_refused_topics_only_does_not_wait() -> None:
    node = two_topics()
    request = fetch_request("yours")
    request.min_bytes, request.max_wait_ms = 1, 10_000
    assert codes_in(ask_bytes(node, request, 12)) == {0, 29}


def test_what_waits_is_completed_with_what_is_refused() -> None:
    node = two_topics("allow ann read topic:mine")
    request = fetch_request("mine", "yours")
    request.min_bytes, request.max_wait_ms = 1, 10_000
    context = context_of(node, 12)
    context.session.principal = Principal("User", "ann")
    waiting = node.router.find(ApiKey.FETCH, 12).handle(request, context)
    assert isinstance(waiting, Wait)
    produce(node, batch_of(b"a"), topic="mine")
    assert waiting.answer is not None
    response: Any = waiting.answer()
    assert {topic.topic: topic.partitions[0].error_code for topic in response.responses} == {
        "mine": 0,
        "yours": 29,
    }


# --- metadata and topics -----------------------------------------------------------------------------------


def test_topics_that_may_not_be_described_are_hidden() -> None:
    node = two_topics("allow ann read topic:mine", "allow ann create cluster")
    everything = ask_bytes(node, MetadataRequest(topics=None), 12)
    assert [topic.name for topic in everything.topics] == ["mine"]
    assert [topic.name for topic in ask_bytes(node, MetadataRequest(topics=[]), 0).topics] == ["mine"]
    for name in ("yours", "missing"):
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        (topic,) = ask_bytes(node, asked, 12).topics
        assert (topic.error_code, topic.name, topic.topic_id, topic.partitions) == (29, name, bytes(16), [])
        (topic,) = ask_bytes(node, asked, 0).topics
        assert topic.error_code == 29
    assert "missing" not in node.cluster.topics


def test_topics_by_id() -> None:
    node = two_topics("allow ann read topic:mine")
    ids = [node.cluster.topic(name).id for name in ("mine", "yours")] + [b"\1" * 16]
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=each) for each in ids])
    found = {topic.topic_id: (topic.error_code, topic.name) for topic in ask_bytes(node, request, 12).topics}
    assert list(map(found.get, ids)) == [(0, "mine"), (29, None), (100, None)]


@pytest.mark.parametrize(
    ("rules", "code"),
    [(("allow ann write topic:new",), 29), (("allow ann write,create topic:new",), 0),
     (("allow ann describe topic:new", "allow ann create cluster"), 0), (("allow ann create cluster",), 29)],
)  # fmt: skip
def test_creation_by_asking_needs_both_rights(rules: tuple[str, ...], code: int) -> None:
    node = secured(*rules)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
    assert [topic.error_code for topic in ask_bytes(node, request, 9).topics] == [code]
    assert ("new" in node.cluster.topics) == (code == 0)


@pytest.mark.parametrize(
    ("rule", "bits"),
    [("allow ann all topic:*", 3576), ("allow ann read topic:mine", 264), ("allow ann write topic:m*", 272),
     ("allow ann describe topic:mine", 256)],
)  # fmt: skip
def test_authorized_operations(rule: str, bits: int) -> None:
    node = two_topics(rule)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="mine")])
    assert ask_bytes(node, request, 8).topics[0].topic_authorized_operations == NOT_ASKED
    request.include_topic_authorized_operations = True
    request.include_cluster_authorized_operations = True
    response = ask_bytes(node, request, 8)
    assert response.topics[0].topic_authorized_operations == bits
    assert response.cluster_authorized_operations == 0
    described = ask_bytes(node, DescribeTopicPartitionsRequest(), 0).topics
    assert [each.topic_authorized_operations for each in described if each.name == "mine"] == [bits]


def test_authorized_operations_of_cluster_and_groups() -> None:
    node = secured("allow ann all cluster", "allow ann read group:g")
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert ask_bytes(node, request, 1).cluster_authorized_operations == 8096
    groups = DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True)
    found = {group.group_id: group for group in ask_bytes(node, groups, 5).groups}
    assert (found["g"].authorized_operations, found["h"].error_code) == (264, 30)


def test_creation_without_describe_configs_tells_no_settings() -> None:
    node = secured("allow ann create topic:new*")
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in ("new1", "other")
        ]
    )
    made, refused = ask_bytes(node, request, 7).topics
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, -1, -1)
    assert (made.topic_config_error_code, made.configs or []) == (29, [])
    assert (refused.error_code, refused.error_message) == (29, "Authorization failed.")
    assert node.cluster.topics.keys() == {"new1"}


def test_deletion_hides_names() -> None:
    node = two_topics("allow ann describe topic:mine")
    ids = [node.cluster.topic(name).id for name in ("mine", "yours")]
    states = [DeleteTopicState(name=None, topic_id=each) for each in (*ids, b"\1" * 16)]
    states.append(DeleteTopicState(name="yours"))
    found = ask_bytes(node, DeleteTopicsRequest(topics=states), 6).responses
    assert sorted((each.error_code, str(each.name)) for each in found) == [
        (29, "None"),
        (29, "mine"),
        (29, "yours"),
        (100, "None"),
    ]
    assert len(node.cluster.topics) == 2


# --- groups and producers ----------------------------------------------------------------------------------


def test_offsets_of_a_group_are_told_in_part() -> None:
    node = two_topics("allow ann read group:g", "allow ann read topic:mine")
    named = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in ("mine", "yours")]
    groups = [OffsetFetchRequestGroup(group_id=each, topics=named) for each in ("g", "h")]
    [early, _] = ask_bytes(node, OffsetFetchRequest(groups=groups), 8).groups
    assert (early.error_code, early.topics) == (16, [])  # no client has asked for a coordinator yet
    node.groups.topic.create(0)
    found = {group.group_id: group for group in ask_bytes(node, OffsetFetchRequest(groups=groups), 8).groups}
    codes = {topic.name: topic.partitions[0].error_code for topic in found["g"].topics}
    assert codes == {"mine": 0, "yours": 29}
    assert (found["h"].error_code, found["h"].topics) == (30, [])


@pytest.mark.parametrize(
    ("rules", "code"),
    [((), 31), (("allow ann write topic:x",), 0), (("allow ann idempotent_write cluster",), 0),
     (("allow ann write topic:x", "deny ann write topic:*"), 31)],
)  # fmt: skip
def test_producer_ids(rules: tuple[str, ...], code: int) -> None:
    node = secured(*rules)
    response = ask_bytes(node, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
    assert response.error_code == code
    assert (response.producer_id == -1) == bool(code)


def test_coordinators() -> None:
    node = secured("allow ann read group:g")
    found = ask_bytes(node, FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4).coordinators
    assert {each.key: (each.error_code, each.port) for each in found}["h"] == (30, -1)
    assert {each.key: each.error_code for each in found}["g"] == 0
    older = ask_bytes(node, FindCoordinatorRequest(key="h"), 3)
    assert (older.error_code, older.error_message) == (30, "Group authorization failed.")


# --- entries -----------------------------------------------------------------------------------------------


def streams_member(node: Node) -> Any:
    """Send a heartbeat of a streams group that reads ``mine`` and needs ``log``; return the response."""
    topology = topology_of(subtopology(0, "mine", state_changelog_topics=[internal("log")]))
    request = StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        process_id="p",
        rebalance_timeout_ms=1000,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        topology=topology,
    )
    return ask_bytes(node, request, 0)


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (("allow ann describe topic:*",), 30),
        (("allow ann read group:g",), 29),
        (("allow ann read group:g", "allow ann describe topic:mine"), 29),
        (("allow ann read group:g", "allow ann describe topic:*"), 0),
    ],
)
def test_a_streams_group_needs_its_group_and_all_topics(rules: tuple[str, ...], code: int) -> None:
    node = two_topics(*rules)
    answer = streams_member(node)
    assert answer.error_code == code
    if not code:
        assert "Unauthorized to CREATE on topics log." in answer.status[-1].status_detail
    assert "log" not in node.cluster.topics
    described = ask_bytes(node, StreamsGroupDescribeRequest(group_ids=["g"]), 0).groups[0]
    assert described.error_code == {30: 30, 29: 69, 0: 0}[code]


@pytest.mark.parametrize("right", ["allow ann create topic:log", "allow ann create cluster"])
def test_internal_topics_are_made_for_who_may_create_them(right: str) -> None:
    node = two_topics("allow ann read group:g", "allow ann describe topic:*", right)
    assert "Unauthorized" not in streams_member(node).status[-1].status_detail
    assert "log" in node.cluster.topics


def test_a_streams_group_of_topics_that_may_not_be_seen_is_not_described() -> None:
    node = two_topics("allow ann read group:g", "allow ann describe topic:*")
    streams_member(node)
    node.cluster.alter([record_of(acl) for acl in parse_rule("deny ann describe topic:log")], 0)
    described = ask_bytes(node, StreamsGroupDescribeRequest(group_ids=["g"]), 0).groups[0]
    assert (described.error_code, described.members, described.topology) == (29, [], None)


def creation(text: str, **changes: Any) -> AclCreation:
    (acl,) = parse_rule(text)
    made = AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        resource_pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def entries(node: Node) -> set[Acl]:
    return set(node.cluster.security.acls.values())


def test_entries_are_created_once_and_kept_over_a_restart() -> None:
    store = MemoryStore(1, ManualClock(0))
    node = secured("allow ann alter cluster", store=store)
    rule = creation("allow bob read topic:t*")
    response = ask_bytes(
        node, CreateAclsRequest(creations=[rule, rule, creation("allow bob read group:g")]), 3
    )
    assert [(each.error_code, each.error_message) for each in response.results] == [(0, "")] * 3
    assert len(entries(node)) == 3
    again = make_node(store, authorizer_class_name=STANDARD)
    assert entries(again) == entries(node)
    assert again.authorizer is not None
    assert again.authorizer.rights("User:bob", "127.0.0.1").on_topic(3, "t1")


@pytest.mark.parametrize(
    "changes",
    [{"resource_type": 0}, {"resource_type": 99}, {"resource_type": 1}, {"resource_pattern_type": 2},
     {"operation": 1}, {"operation": 99}, {"permission_type": 1}, {"principal": "bob"}, {"resource_name": ""},
     {"resource_type": 4}],
)  # fmt: skip
def test_a_bad_entry_is_refused_alone(changes: dict[str, Any]) -> None:
    node = secured("allow ann alter cluster")
    creations = [creation("allow bob read topic:t", **changes), creation("allow bob read topic:t")]
    response = ask_bytes(node, CreateAclsRequest(creations=creations), 3)
    assert [each.error_code for each in response.results] == [42, 0]
    assert response.results[0].error_message


def test_entries_are_described_and_deleted_by_filters() -> None:
    node = secured(
        "allow ann alter,describe cluster", "allow bob read topic:orders", "deny * write topic:or*"
    )
    wanted = DescribeAclsRequest(
        resource_type_filter=2, resource_name_filter="orders", pattern_type_filter=2,
        principal_filter=None, host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    found = ask_bytes(node, wanted, 3)
    assert {(each.resource_name, each.pattern_type) for each in found.resources} == {("orders", 3), ("or", 4)}
    filters = [
        DeleteAclsFilter(
            resource_type_filter=2, resource_name_filter=name, pattern_type_filter=pattern,
            principal_filter=None, host_filter=None, operation=1, permission_type=1,
        )
        for name, pattern in (("orders", 2), ("or", 4), ("none", 3))
    ]  # fmt: skip
    deleted = ask_bytes(node, DeleteAclsRequest(filters=filters), 3)
    assert [len(each.matching_acls) for each in deleted.filter_results] == [2, 1, 0]
    assert {each.resource_type for each in entries(node)} == {4}
    assert ask_bytes(node, wanted, 3).resources == []


def test_names_of_authorizers() -> None:
    for name in AUTHORIZERS:
        assert make_node(authorizer_class_name=name).authorizer is not None
    assert make_node(authorizer_class_name="").authorizer is None
    with pytest.raises(ConfigError, match="StandardAuthorizer"):
        make_node(authorizer_class_name="com.example.Other")


def test_without_an_authorizer_routes_have_no_link_of_it() -> None:
    plain = make_node()
    assert plain.router.find(ApiKey.METADATA, 9).handle is ROUTES[ApiKey.METADATA].handle
    assert ask(plain, MetadataRequest(topics=None), 9).topics == []


def test_a_name_that_may_be_seen_is_told_to_be_missing() -> None:
    node = secured("allow ann describe topic:seen*")
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in ("seen-1", "hidden")], timeout_ms=1000
    )
    codes = {each.name: each.error_code for each in ask_bytes(node, request, 6).responses}
    assert codes == {"seen-1": 3, "hidden": 29}


def test_a_replica_needs_cluster_action_and_nothing_else() -> None:
    for rule, code in (("allow ann cluster_action cluster", 0), ("allow ann read topic:t", 29)):
        node = secured(rule)
        make_topic(node)
        place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topics = [FetchTopic(topic="t", partitions=[place])]
        answer = ask_bytes(node, FetchRequest(replica_id=1, max_wait_ms=0, topics=topics), 4)
        assert [each.error_code for topic in answer.responses for each in topic.partitions] == [code]


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"])
def test_rules_by_host_hold_at_a_listener_for_both_families(host: str, peer: str) -> None:
    """A listener for IPv4 and IPv6 gets IPv4 clients as `::ffff:127.0.0.1`.

    ACL entries for the plain IPv4 address still apply.
    """
    if not has_ipv6():
        return
    settings = {
        "authorizer.class.name": STANDARD,
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker(host="::", config=settings) as broker:
        over = socket.socket(socket.AF_INET6 if ":" in peer else socket.AF_INET)
        with over, WireClient(broker.port, over=over, host=peer) as client:
            entries = [
                AclCreation(
                    resource_type=2,
                    resource_name="t",
                    resource_pattern_type=3,
                    principal="User:ANONYMOUS",
                    host=where,
                    operation=Operation.ALL,
                    permission_type=permission,
                )
                for where, permission in (("*", Permission.ALLOW), (host, Permission.DENY))
            ]
            client.ask(
                CreateTopicsRequest(
                    topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
                ),
                5,
            )
            created = client.ask(CreateAclsRequest(creations=entries), 3)
            assert [each.error_code for each in created.results] == [0, 0]
            answer = client.ask(produce_request(batch_of(b"v")), 9)
            code = answer.responses[0].partition_responses[0].error_code
            described = client.ask(DescribeClusterRequest(), 0)
    is_meant = (host == "0:0:0:0:0:0:0:1") == (peer == "::1")
    assert code == (ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_meant else 0)
    assert described.brokers[0].host == peer


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
