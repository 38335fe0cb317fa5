"""Tests of error responses for every request and version: they can be encoded and have the error code.

They repeat the names in the request.
"""

from __future__ import annotations

import re
from typing import Any

from broker.bench_node import EVERY_API, make_node, make_topic
from broker.handlers.test_every_version import CASES, REQUESTS, codes_in
from for_each import for_each
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.error_response import error_entries, error_response
from penstock.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from penstock.protocol.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from penstock.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

UNKNOWN_SERVER_ERROR = -1

WITHOUT_A_PLACE = {
    (ApiKey.DESCRIBE_LOG_DIRS, 0), (ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.DESCRIBE_LOG_DIRS, 2),
}  # fmt: skip
"""Responses with no field that can hold an error code for a whole refused request."""


@for_each(CASES)
def test_every_request_can_be_refused(key: ApiKey, version: int) -> None:
    node = make_node(**EVERY_API)
    make_topic(node)
    request = REQUESTS[key](node, version)
    refused = error_response(key, version, request, UNKNOWN_SERVER_ERROR, "no")
    codec = codec_for(API_TABLE[key].response, version)
    decoded = codec.decode(codec.encode(refused))[0]
    if (key, version) not in WITHOUT_A_PLACE:
        found = codes_in(decoded) | set(re.findall(r"partition_error_code=(-?\d+)", repr(decoded)))
        assert found - {0} in ({UNKNOWN_SERVER_ERROR}, {str(UNKNOWN_SERVER_ERROR)})


def read_back(key: ApiKey, version: int, request: Any, code: int = 29) -> Any:
    codec = codec_for(API_TABLE[key].response, version)
    return codec.decode(codec.encode(error_response(key, version, request, code)))[0]


def fetch(partitions: int) -> FetchRequest:
    asked = [FetchPartition(partition=index) for index in range(partitions)]
    topic = FetchTopic(topic="t", topic_id=b"\7" * 16, partitions=asked)
    return FetchRequest(topics=[topic], forgotten_topics_data=[ForgottenTopic(topic="old", partitions=[3])])


def test_entries_repeat_names_and_numbers() -> None:
    (topic,) = read_back(ApiKey.FETCH, 4, fetch(2)).responses
    found = [(each.partition_index, each.error_code, each.high_watermark) for each in topic.partitions]
    assert (topic.topic, found) == ("t", [(0, 29, -1), (1, 29, -1)])


def test_a_code_at_the_top_stands_for_everything() -> None:
    response = read_back(ApiKey.FETCH, 12, fetch(2))
    assert (response.error_code, response.responses) == (29, [])


def test_topics_are_named_by_id_where_the_version_does() -> None:
    (topic,) = error_entries(ApiKey.FETCH, 13, "responses", fetch(1).topics, 29)
    assert (topic.topic_id, topic.partitions[0].error_code, topic.partitions[0].records) == (
        b"\7" * 16,
        29,
        b"",
    )


def test_what_a_request_asks_with_is_not_the_answer() -> None:
    asked = ListOffsetsPartition(partition_index=5, current_leader_epoch=3, timestamp=1234)
    (topic,) = error_entries(
        ApiKey.LIST_OFFSETS, 9, "topics", [ListOffsetsTopic(name="t", partitions=[asked])], 6
    )
    (found,) = topic.partitions
    assert (found.partition_index, found.timestamp, found.offset, found.leader_epoch) == (5, -1, -1, -1)


def test_a_marker_keeps_its_producer_and_a_producer_gets_none() -> None:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[4])
    marker = WritableTxnMarker(producer_id=77, producer_epoch=1, coordinator_epoch=0, topics=[topic])
    (answer,) = read_back(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=[marker])).markers
    found = answer.topics[0].partitions[0]
    assert (answer.producer_id, answer.topics[0].name) == (77, "t")
    assert (found.partition_index, found.error_code) == (4, 29)
    asked = InitProducerIdRequest(transactional_id="x", producer_id=77, producer_epoch=3)
    response = read_back(ApiKey.INIT_PRODUCER_ID, 4, asked)
    assert (response.producer_id, response.producer_epoch) == (-1, -1)


def test_null_where_the_version_has_it() -> None:
    asked = JoinGroupRequest(group_id="g", member_id="m", protocol_type="consumer")
    assert [read_back(ApiKey.JOIN_GROUP, version, asked).protocol_name for version in (6, 7)] == ["", None]
    assert read_back(ApiKey.JOIN_GROUP, 7, asked).generation_id == -1


def test_a_level_that_the_response_does_not_have() -> None:
    topic = AlterReplicaLogDirTopic(name="t", partitions=[1, 2])
    directories = [AlterReplicaLogDir(path=path, topics=[topic]) for path in ("/a", "/b")]
    response = read_back(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, AlterReplicaLogDirsRequest(dirs=directories))
    assert [each.topic_name for each in response.results] == ["t", "t"]
    assert [each.partition_index for each in response.results[0].partitions] == [1, 2]


def test_a_list_within_entries_of_a_list() -> None:
    from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequestTopics

    asked = OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])
    (topic,) = error_entries(ApiKey.OFFSET_FETCH, 8, "groups.topics", [asked], 29)
    assert [(each.partition_index, each.committed_offset) for each in topic.partitions] == [(0, -1), (1, -1)]


def test_directories_are_no_topics() -> None:
    """Before DescribeLogDirs 3 the response has no top-level error code.

    It lists no directories, since the request names only topics.
    """
    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="t", partitions=[0])])
    assert read_back(ApiKey.DESCRIBE_LOG_DIRS, 1, asked, 31).results == []
    refused = read_back(ApiKey.DESCRIBE_LOG_DIRS, 3, asked, 31)
    assert (refused.error_code, refused.results) == (31, [])
