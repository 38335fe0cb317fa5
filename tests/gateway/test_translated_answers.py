"""Tests that a translated request gets the response of a broker that accepts the old version itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker.bench_node import batch_of
from broker.wire_client import WireClient
from gateway.old_client import OldClient
from gateway.test_translation_table import dropped, taken
from penstock import Broker
from penstock.gateway.calls import NodeCall
from penstock.gateway.translation import NotForwarded, translate
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.message import Message
from penstock.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from penstock.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.messages.describe_acls_request import DescribeAclsRequest
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from penstock.protocol.messages.offset_fetch_response import OffsetFetchResponse
from penstock.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.releases import api_versions
from penstock.records.legacy import encode_message_set

NEWER = {
    key: (low + 1, high)
    for key, (low, high) in api_versions("4.3").items()
    if low < high and key not in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.API_VERSIONS)
}
"""The version ranges of an imagined cluster that has dropped one more version of every API."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Start a broker that accepts every version, so that a test can compare both responses."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "auto.create.topics.enable": "true",
    }
    with Broker(config=settings) as broker, WireClient(broker.port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        data = PartitionProduceData(index=0, records=batch_of(*[b"v%d" % number for number in range(9)]))
        topic = TopicProduceData(name="t", partition_data=[data])
        client.ask(ProduceRequest(acks=1, timeout_ms=100, topic_data=[topic]), 9)
        yield broker


@pytest.fixture
def new(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.port) as client:
        yield client


def fetch(offset: int, limit: int) -> FetchRequest:
    partitions = [
        FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=limit),
        FetchPartition(partition=7, fetch_offset=offset, partition_max_bytes=limit),
    ]
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic="t", partitions=partitions)])


def offsets(*times: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=time) for time in times]
    partitions.append(ListOffsetsPartition(partition_index=5, timestamp=-1))
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])


def commit(group: str, offset: int = 4, **fields: Any) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m"),
        OffsetCommitRequestPartition(partition_index=9, committed_offset=offset, committed_metadata=""),
    ]
    topics = [OffsetCommitRequestTopic(name=name, partitions=partitions) for name in ("t", "missing")]
    return OffsetCommitRequest(group_id=group, topics=topics, **fields)


def committed(group: str) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[0, 9]) for name in ("t", "missing")]
    return OffsetFetchRequest(group_id=group, topics=topics)


def acl(name: str) -> AclCreation:
    return AclCreation(
        resource_type=2,
        resource_name=name,
        principal="User:bob",
        host="*",
        operation=3,
        permission_type=3,
    )


FILTER = {"principal_filter": "User:bob", "host_filter": None, "operation": 1, "permission_type": 1}

CREATED = CreatableTopic(name="made", num_partitions=2, replication_factor=1)

SAME: dict[str, tuple[Callable[[], Message], tuple[int, ...]]] = {
    "Fetch": (lambda: fetch(0, 10_000), (0, 1, 2, 3)),
    "Fetch of a part": (lambda: fetch(4, 10_000), (0, 1, 2, 3)),
    "Fetch cut": (lambda: fetch(2, 70), (0, 1, 2)),
    "Fetch out of range": (lambda: fetch(99, 70), (0, 1, 2, 3)),
    "Fetch at the end": (lambda: fetch(9, 70), (0, 1, 2, 3)),
    "ListOffsets of the end": (lambda: offsets(-1), (0,)),
    "ListOffsets of the start": (lambda: offsets(-2), (0,)),
    "ListOffsets twice": (lambda: offsets(-1, -2), (0,)),
    "OffsetCommit": (lambda: commit("same"), (0, 1)),
    "OffsetFetch": (lambda: committed("same"), (0,)),
    "OffsetFetch of nothing": (lambda: committed("never"), (0,)),
    "CreateTopics that is there": (lambda: CreateTopicsRequest(topics=[CreatableTopic(name="t")]), (0, 1)),
    "CreateTopics for nothing": (lambda: CreateTopicsRequest(topics=[CREATED], validate_only=True), (1,)),
    "DeleteTopics": (lambda: DeleteTopicsRequest(topic_names=["missing", "absent"], timeout_ms=100), (0,)),
    "OffsetForLeaderEpoch": (
        lambda: OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic="t", partitions=[OffsetForLeaderPartition(partition=index) for index in (0, 7)]
                )
            ]
        ),
        (0, 1),
    ),
    "DescribeConfigs": (
        lambda: DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=2, resource_name="t"),
                DescribeConfigsResource(resource_type=4, resource_name="0"),
                DescribeConfigsResource(resource_type=2, resource_name="missing"),
            ]
        ),
        (0,),
    ),
    "CreateAcls": (lambda: CreateAclsRequest(creations=[acl("a"), acl("b")]), (0,)),
    "DescribeAcls": (
        lambda: DescribeAclsRequest(resource_type_filter=1, resource_name_filter="a", **FILTER),
        (0,),
    ),
    "DeleteAcls": (
        lambda: DeleteAclsRequest(
            filters=[DeleteAclsFilter(resource_type_filter=1, resource_name_filter=None, **FILTER)]
        ),
        (0,),
    ),
    "CreateDelegationToken": (lambda: CreateDelegationTokenRequest(), (0,)),
    "DescribeDelegationToken": (lambda: DescribeDelegationTokenRequest(owners=None), (0,)),
    "DescribeLogDirs": (lambda: DescribeLogDirsRequest(topics=None), (0,)),
}


@pytest.mark.parametrize(
    ("name", "version"), [(name, version) for name, (_, versions) in SAME.items() for version in versions]
)
def test_dropped_versions_are_answered_as_before(new: WireClient, name: str, version: int) -> None:
    request = SAME[name][0]()
    assert request.API_KEY is not None
    assert (request.API_KEY, version) in dropped("4.3")
    if name == "DeleteAcls":
        new.ask(SAME["CreateAcls"][0](), 0)
    expected = new.ask(request, version)
    found = OldClient(new, taken("4.3")).ask(request, version)
    if name == "DeleteAcls":  # the first has deleted what there was
        assert (len(expected.filter_results[0].matching_acls), found.filter_results[0].matching_acls) == (
            2,
            [],
        )
    else:
        assert found == expected


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
def test_produced_is_as_before(new: WireClient, version: int, magic: int) -> None:
    answers = []
    for client in (new, OldClient(new, taken("4.3"))):
        name = f"p{version}{magic}{type(client).__name__}"
        new.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 4)
        records = encode_message_set([(b"k", b"v", 1_700_000_000_000)] * 3, magic)
        data = [PartitionProduceData(index=index, records=records) for index in (0, 8)]
        topics = [TopicProduceData(name=name, partition_data=data)]
        answer: Any = client.ask(ProduceRequest(acks=-1, timeout_ms=100, topic_data=topics), version)
        answers.append(answer.responses[0].partition_responses)
    assert answers[0] == answers[1]


def test_metadata_means_what_it_did(new: WireClient) -> None:
    old = OldClient(new, NEWER)
    for request in (MetadataRequest(topics=[]), MetadataRequest(topics=[MetadataRequestTopic(name="t")])):
        assert old.ask(request, 0) == new.ask(request, 0)
    made = MetadataRequest(topics=[MetadataRequestTopic(name="made-by-asking")])
    assert old.ask(made, 0).topics[0].error_code == 0
    assert new.ask(made, 0).topics[0].partitions[0].leader_id == 1


@pytest.mark.parametrize("upstream", [api_versions("4.0"), NEWER, {ApiKey.JOIN_GROUP: (6, 9)}])
@pytest.mark.parametrize("version", [0, 1])
def test_groups_of_0_9_and_0_10(new: WireClient, upstream: Any, version: int) -> None:
    """A member joins, syncs, sends heartbeats and leaves.

    The cluster accepts only JoinGroup from version 2 or from version 5 on.
    """
    whole = {**api_versions("4.3"), **upstream}
    old = OldClient(new, whole)
    client: Any = old
    group = f"g{version}{whole[ApiKey.JOIN_GROUP]}{whole[ApiKey.HEARTBEAT]}"
    asked = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000 if version else -1,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"meta")],
    )
    joined = client.ask(asked, version)
    assert joined.error_code == 0
    assert joined.leader == joined.member_id == joined.members[0].member_id
    assert (joined.generation_id, joined.protocol_name, joined.members[0].metadata) == (1, "range", b"meta")
    timeouts = [call.message.rebalance_timeout_ms for call in old.calls]
    assert set(timeouts) == {20_000 if version else 10_000}
    assert len(timeouts) == (2 if whole[ApiKey.JOIN_GROUP][0] >= 4 else 1)

    def ask(request: Message, key: int) -> Any:
        is_taken = whole[key][0] == 0
        return (new if is_taken else client).ask(request, 0)

    member = {"group_id": group, "member_id": joined.member_id}
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")
    synced = ask(SyncGroupRequest(**member, generation_id=1, assignments=[assignment]), ApiKey.SYNC_GROUP)
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    assert ask(HeartbeatRequest(**member, generation_id=1), ApiKey.HEARTBEAT).error_code == 0
    assert ask(HeartbeatRequest(**member, generation_id=5), ApiKey.HEARTBEAT).error_code == 22
    described = ask(DescribeGroupsRequest(groups=[group]), ApiKey.DESCRIBE_GROUPS).groups[0]
    assert (described.group_state, described.members[0].member_assignment) == ("Stable", b"mine")
    assert group in [each.group_id for each in ask(ListGroupsRequest(), ApiKey.LIST_GROUPS).groups]
    # Offsets beside members are refused, those of the member are taken.
    alone = commit(group)
    assert client.ask(alone, 0).topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    own = commit(group, member_id=joined.member_id, generation_id_or_member_epoch=1)
    assert client.ask(own, 1).topics[0].partitions[0].error_code == 0
    assert ask(LeaveGroupRequest(**member), ApiKey.LEAVE_GROUP).error_code == 0
    assert ask(LeaveGroupRequest(**member), ApiKey.LEAVE_GROUP).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert client.ask(alone, 0).topics[0].partitions[0].error_code == 0


def test_a_leave_for_lists_of_members(new: WireClient) -> None:
    old = OldClient(new, {ApiKey.LEAVE_GROUP: (3, 5)})
    answer = old.ask(LeaveGroupRequest(group_id="g", member_id="m"), 1)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("newest", [(3, 3), (4, 6)])
def test_find_coordinator(new: WireClient, version: int, newest: tuple[int, int]) -> None:
    if version >= newest[0]:
        return
    old = OldClient(new, {ApiKey.FIND_COORDINATOR: newest})
    request = FindCoordinatorRequest(key="g")
    expected = new.ask(request, version)
    expected.error_message = ""
    found = old.ask(request, version)
    found.error_message = ""
    assert found == expected


def test_offsets_of_0_8(new: WireClient) -> None:
    """In a commit without a member id, the generation is ignored and the timestamp is dropped."""
    old = OldClient(new, taken("4.3"))
    request = commit("of-0.8.2", 7, generation_id_or_member_epoch=0)
    for topic in request.topics:
        topic.partitions[0].commit_timestamp = 1234
    assert [each.error_code for each in old.ask(request, 1).topics[0].partitions] == [0, 3]
    found = old.ask(committed("of-0.8.2"), 0)
    assert [
        (each.committed_offset, each.metadata, each.error_code)
        for topic in found.topics
        for each in topic.partitions
    ] == [(7, "m", 0), (-1, "", 3), (-1, "", 3), (-1, "", 3)]
    assert found == new.ask(committed("of-0.8.2"), 0)
    later = OldClient(new, NEWER)
    assert later.ask(committed("of-0.8.2"), 1) == new.ask(committed("of-0.8.2"), 1)


# --- coordinators that move ---------------------------------------------------------------------------------

UPSTREAM = {ApiKey.OFFSET_COMMIT: (2, 9), ApiKey.OFFSET_FETCH: (1, 7), ApiKey.FIND_COORDINATOR: (0, 6)}


def run(request: Message, version: int, answers: list[Message]) -> tuple[Any, list[NodeCall]]:
    """Answer each call of a translation with the next of `answers`; return the result and the calls."""
    assert request.API_KEY is not None
    steps = translate(request.API_KEY, version, request, UPSTREAM)
    calls: list[NodeCall] = []
    response: Any = None
    try:
        while True:
            calls.append(steps.send(response))
            response = answers[len(calls) - 1]
    except StopIteration as done:
        return done.value, calls


def coordinator(node_id: int, error: int = 0) -> Message:
    one = Coordinator(key="g", node_id=node_id, host="h", port=1, error_code=error)
    return FindCoordinatorResponse(coordinators=[one])


def commit_answer(code: int) -> Message:
    partitions = [OffsetCommitResponsePartition(partition_index=0, error_code=code)]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=partitions)])


def test_commits_go_to_the_coordinator_once_more_where_it_has_moved() -> None:
    moved = [coordinator(3), commit_answer(ErrorCode.NOT_COORDINATOR), coordinator(4), commit_answer(0)]
    answer, calls = run(commit("g"), 0, moved)
    assert [call.node_id for call in calls] == [None, 3, None, 4]
    assert [each.error_code for topic in answer.topics for each in topic.partitions] == [0]


@pytest.mark.parametrize("code", [14, 15, 16])
def test_what_zookeeper_never_answered_can_be_tried_again(code: int) -> None:
    answer, calls = run(commit("g"), 0, [coordinator(-1, code)] * 2)
    assert len(calls) == 2
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 4
    answer, calls = run(committed("g"), 0, [coordinator(-1, code)] * 2)
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 4
    nothing = FindCoordinatorResponse()
    assert len(run(commit("g"), 0, [nothing, nothing])[1]) == 2


def test_an_error_of_the_whole_is_that_of_each_partition() -> None:
    steps = translate(ApiKey.OFFSET_FETCH, 1, committed("g"), {ApiKey.OFFSET_FETCH: (2, 9)})
    next(steps)
    with pytest.raises(StopIteration) as done:
        steps.send(OffsetFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    codes = [each.error_code for topic in done.value.value.topics for each in topic.partitions]
    assert codes == [30] * 4


@pytest.mark.parametrize("key", [4, 5, 6, 7])
def test_requests_of_brokers_are_refused_in_words(key: int) -> None:
    with pytest.raises(NotForwarded, match="is sent by"):
        translate(key, 0, API_TABLE[key].request(), taken("4.3"))
