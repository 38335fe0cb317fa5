"""Tests of the search for messages nested in fields of other messages, such as assignments and records.

A field without a nested message is left unchanged.
"""

from __future__ import annotations

import pytest

from explorer.test_lines import encoded
from penstock.explorer.conversation import ConversationEntry, describe
from penstock.explorer.inside import unpack_bytes
from penstock.explorer.tree import Tree
from penstock.protocol.message import Message
from penstock.protocol.messages import (
    DescribeGroupsResponse,
    FetchResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ProduceRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from penstock.protocol.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, PartitionData
from penstock.protocol.messages.join_group_request import JoinGroupRequestProtocol
from penstock.protocol.messages.join_group_response import JoinGroupResponseMember
from penstock.protocol.messages.produce_request import PartitionProduceData, TopicProduceData
from penstock.protocol.messages.sync_group_request import SyncGroupRequestAssignment
from penstock.records.batch import encode_batch


def framed(name: str, version: int, form: object) -> bytes:
    return bytes.fromhex(str(encoded(name=name, version=version, framed=True, json=form)["hex"]))


TOPICS = {"topics": ["t"], "userData": None}
PARTITIONS = {"assignedPartitions": [{"topic": "t", "partitions": [0, 1]}], "userData": None}
SUBSCRIPTION = framed("ConsumerProtocolSubscription", 0, TOPICS)
ASSIGNMENT = framed("ConsumerProtocolAssignment", 0, PARTITIONS)
MEMBER = DescribedGroupMember(member_metadata=SUBSCRIPTION, member_assignment=ASSIGNMENT)


@pytest.mark.parametrize(
    ("message", "paths"),
    [
        (
            JoinGroupRequest(protocols=[JoinGroupRequestProtocol(metadata=SUBSCRIPTION)]),
            ["protocols[0].metadata"],
        ),
        (
            JoinGroupResponse(members=[JoinGroupResponseMember(metadata=SUBSCRIPTION)]),
            ["members[0].metadata"],
        ),
        (
            SyncGroupRequest(assignments=[SyncGroupRequestAssignment(assignment=ASSIGNMENT)]),
            ["assignments[0].assignment"],
        ),
        (SyncGroupResponse(assignment=ASSIGNMENT), ["assignment"]),
        (
            DescribeGroupsResponse(groups=[DescribedGroup(members=[MEMBER])]),
            ["groups[0].members[0].memberMetadata", "groups[0].members[0].memberAssignment"],
        ),
    ],
)
def test_what_members_send_each_other(message: Message, paths: list[str]) -> None:
    found = unpack_bytes(message)
    assert list(found) == paths
    forms = {"ConsumerProtocolSubscription": TOPICS, "ConsumerProtocolAssignment": PARTITIONS}
    for inner in found.values():
        assert inner["version"] == 0
        assert inner["json"] == forms[inner["name"]]


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    newer = b"\0\x63" + framed("ConsumerProtocolAssignment", 3, PARTITIONS)[2:] + b"more"
    assert unpack_bytes(SyncGroupResponse(assignment=newer))["assignment"]["json"] == PARTITIONS


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\xff\xff\xff\xff", ASSIGNMENT + b"x", b"connect"])
def test_other_bytes_are_left_alone(data: bytes) -> None:
    assert unpack_bytes(SyncGroupResponse(assignment=data)) == {}


def test_records_of_internal_topics() -> None:
    key = framed("OffsetCommitKey", 0, {"group": "g", "topic": "t", "partition": 5})
    form = {"offset": 7, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 9}
    batch = encode_batch(
        [
            (key, framed("OffsetCommitValue", 3, form), (), 1),
            (key, None, (), 2),
            (b"\0\x7f", b"what", (), 3),
            (None, b"x", (), 4),
        ]
    )
    produced = ProduceRequest(
        topic_data=[
            TopicProduceData(name="plain", partition_data=[PartitionProduceData(records=batch)]),
            TopicProduceData(name="__consumer_offsets", partition_data=[PartitionProduceData(records=batch)]),
        ]
    )
    entry = ConversationEntry()
    describe(produced, 9, entry)
    plain = entry.records["topicData[0].partitionData[0].records"][0]["records"]
    known = entry.records["topicData[1].partitionData[0].records"][0]["records"]
    assert "keyBase64" in plain[0]
    assert known[0]["key"]["json"] == {"group": "g", "topic": "t", "partition": 5}
    assert known[0]["value"] == {"name": "OffsetCommitValue", "version": 3, "json": form}
    assert known[1]["value"] is None
    assert known[2:] == plain[2:]

    transactions = encode_batch([(framed("TransactionLogKey", 0, {"transactionalId": "x"}), None, (), 1)])
    topic = FetchableTopicResponse(
        topic="__transaction_state", partitions=[PartitionData(records=transactions)]
    )
    entry = ConversationEntry()
    describe(FetchResponse(responses=[topic]), 12, entry)
    (record,) = entry.records["responses[0].partitions[0].records"][0]["records"]
    assert record["key"] == {"name": "TransactionLogKey", "version": 0, "json": {"transactionalId": "x"}}


def test_the_tree_shows_them_in_their_place() -> None:
    entry = ConversationEntry()
    describe(SyncGroupResponse(assignment=ASSIGNMENT), 0, entry)
    assert entry.as_json()["inside"].keys() == {"assignment"}
    text = "\n".join(Tree(colour=False).entry(entry))
    assert "assignedPartitions (1)" in text
    assert "partitions: [0, 1]" in text
