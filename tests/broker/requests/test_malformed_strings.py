"""Tests of names in requests that are not UTF-8: answers are those of Apache Kafka, which reads U+FFFD."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from broker.wire_client import WireClient
from penstock import Broker
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
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
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic

HERE = "QQQQ"
"""A placeholder in a request, which is replaced with bytes that are not UTF-8."""

SENT, READ = b"a\xff\xfeb", "a\ufffd\ufffdb"

INVALID_TOPIC, UNKNOWN_TOPIC = 17, 3


@pytest.fixture
def client() -> Iterator[WireClient]:
    with Broker() as broker, WireClient(broker.port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        yield client


def ask(client: WireClient, request: Message, version: int) -> Any:
    client.socket.sendall(client.bytes_of(request, version).replace(HERE.encode(), SENT))
    return client.receive()[1]


@pytest.mark.parametrize("version", [0, 9])
def test_metadata_of_such_a_topic_is_an_invalid_topic(client: WireClient, version: int) -> None:
    answer = ask(client, MetadataRequest(topics=[MetadataRequestTopic(name=HERE)]), version)
    assert [(each.error_code, each.name) for each in answer.topics] == [(INVALID_TOPIC, READ)]


def test_such_a_topic_is_not_created(client: WireClient) -> None:
    topic = CreatableTopic(name=HERE, num_partitions=1, replication_factor=1)
    answer = ask(client, CreateTopicsRequest(topics=[topic], timeout_ms=1000), 2)
    assert [(each.error_code, each.name) for each in answer.topics] == [(INVALID_TOPIC, READ)]


def test_such_a_topic_is_not_found(client: WireClient) -> None:
    fetched = ask(client, FetchRequest(topics=[FetchTopic(topic=HERE, partitions=[FetchPartition()])]), 4)
    assert (fetched.responses[0].topic, fetched.responses[0].partitions[0].error_code) == (
        READ,
        UNKNOWN_TOPIC,
    )
    topics = [ListOffsetsTopic(name=HERE, partitions=[ListOffsetsPartition(timestamp=-1)])]
    listed = ask(client, ListOffsetsRequest(topics=topics), 1)
    assert (listed.topics[0].name, listed.topics[0].partitions[0].error_code) == (READ, UNKNOWN_TOPIC)


def test_group_and_metadata_are_kept_as_they_were_read(client: WireClient) -> None:
    partition = OffsetCommitRequestPartition(committed_offset=7, committed_metadata=HERE)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    committed = ask(client, OffsetCommitRequest(group_id=HERE, topics=topics), 2)
    assert committed.topics[0].partitions[0].error_code == 0
    asked = OffsetFetchRequest(
        group_id=HERE, topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    )
    (found,) = ask(client, asked, 1).topics[0].partitions
    assert (found.error_code, found.committed_offset, found.metadata) == (0, 7, READ)


def test_a_member_joins_with_names_that_are_not_utf8(client: WireClient) -> None:
    request = JoinGroupRequest(
        group_id=HERE,
        session_timeout_ms=10_000,
        protocol_type=HERE,
        protocols=[JoinGroupRequestProtocol(name=HERE, metadata=b"")],
    )
    joined = ask(client, request, 0)
    assert (joined.error_code, joined.protocol_name) == (0, READ)


def test_a_client_id_is_any_identifier(client: WireClient) -> None:
    client.socket.sendall(struct.pack(">ihhih", 10 + len(SENT), 18, 0, 7, len(SENT)) + SENT)
    assert client.receive_frame()[:6] == struct.pack(">ih", 7, 0)
    assert ask(client, ApiVersionsRequest(), 0).error_code == 0
