"""Translation of OffsetCommit 0 and 1, and OffsetFetch 0 and 1.

With version 0, Kafka stored offsets in ZooKeeper: any broker accepted them, for a group without members. The
gateway commits them at the group's coordinator, like a consumer that is not a member of the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.coordinators import ATTEMPTS, MOVED, find_coordinator
from penstock.gateway.translation.errors import replace_codes
from penstock.gateway.translation.fields import convert
from penstock.gateway.translation.rules import answered
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from penstock.gateway.translation.rules import Steps, TranslatedRequest
    from penstock.protocol.messages.offset_commit_request import OffsetCommitRequest
    from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest

NO_GENERATION = -1
NO_OFFSET = -1

_GROUP_ERRORS = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
"""Error codes about group membership, which brokers never returned in version 0. They become 7
(REQUEST_TIMED_OUT), which clients retry.
"""


def commit(asked: TranslatedRequest) -> Steps:
    """Translate an OffsetCommit of version 0 or 1. The commit timestamps of version 1 are dropped."""
    request = convert(asked.request, asked.version, asked.version)
    for topic in request.topics:
        for partition in topic.partitions:
            partition.commit_timestamp = -1
    converted: OffsetCommitRequest = convert(request, asked.version, asked.target)
    response: OffsetCommitResponse
    if not converted.member_id:
        # 0.8.2 looked at neither: with no members in the group, a generation means nothing.
        converted.generation_id_or_member_epoch = NO_GENERATION
    if asked.version:
        response = yield NodeCall(asked.api_key, asked.target, converted)
        return answered(response, asked)
    for _ in range(ATTEMPTS):
        node_id, error = yield from find_coordinator(request.group_id, asked.upstream)
        if error:
            response = _commit_failure(converted, error)
            continue
        response = yield NodeCall(asked.api_key, asked.target, converted, node_id)
        codes = {each.error_code for topic in response.topics for each in topic.partitions}
        if not codes & MOVED:
            break
    response = answered(response, asked)
    for topic in response.topics:
        for each in topic.partitions:
            each.error_code = _as_zookeeper(each.error_code)
    return response


def fetch(asked: TranslatedRequest) -> Steps:
    """Translate an OffsetFetch of version 0 or 1, whose responses have error codes only for partitions."""
    converted = convert(asked.request, asked.version, asked.target)
    response: OffsetFetchResponse
    if asked.version:
        response = yield NodeCall(asked.api_key, asked.target, converted)
        return _fetched(response, asked)
    for _ in range(ATTEMPTS):
        node_id, error = yield from find_coordinator(asked.request.group_id, asked.upstream)
        if error:
            response = _fetch_failure(converted, error)
            continue
        response = yield NodeCall(asked.api_key, asked.target, converted, node_id)
        codes = {each.error_code for topic in response.topics for each in topic.partitions}
        if not (codes | {response.error_code}) & MOVED:
            break
    response = _fetched(response, asked)
    for topic in response.topics:
        for each in topic.partitions:
            each.error_code = _as_zookeeper(each.error_code)
            if not each.error_code and each.committed_offset == NO_OFFSET:
                each.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return response


def _fetched(response: OffsetFetchResponse, asked: TranslatedRequest) -> OffsetFetchResponse:
    """Return the OffsetFetch response in the client's version; copy its error to each partition."""
    found = _fetch_failure(asked.request, response.error_code) if response.error_code else response
    converted: OffsetFetchResponse = convert(found, asked.target, asked.version, may_lose=True)
    replace_codes(converted, asked.version)
    return converted


def _as_zookeeper(code: int) -> int:
    return ErrorCode.REQUEST_TIMED_OUT if code in _GROUP_ERRORS else code


def _commit_failure(request: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _fetch_failure(request: OffsetFetchRequest, code: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )
