"""Translation of ListOffsets 0, whose response is a list of offsets before a time.

Version 0 returned the first offsets of segments, newest first, and the end of the log. Newer versions return
one offset for a time; the gateway returns a list of that offset and the log start offset. Requests for the
latest (-1) or the earliest (-2) offset mean the same in all versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import replace_codes
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import READ_COMMITTED
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.protocol.since import LIST_OFFSETS_ISOLATION_SINCE, LIST_OFFSETS_MAX_TIMESTAMP_SINCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.gateway.translation.rules import Steps, TranslatedRequest

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3

TIMEOUT_MS = 30_000
"""Timeout in ms for the cluster's search in tiered storage: the default request timeout of Kafka's clients.
"""

TIMES_MAX = 100
"""The most times that a client may request for one partition. The cluster needs a separate request for
each.
"""


class _Question:
    """A time for which a client requests offsets of a partition, and the offsets to return, newest first."""

    __slots__ = ("error_code", "found_ms", "index", "is_of_record", "offsets", "time", "topic", "wanted")

    def __init__(self, topic: str, asked: ListOffsetsPartition) -> None:
        self.topic = topic
        self.index = asked.partition_index
        self.time = asked.timestamp
        self.wanted = asked.max_num_offsets
        if self.time < EARLIEST:
            # Version 0 found nothing for such a time; to clusters of today some of them mean something else.
            self.time, self.wanted = EARLIEST, 0
        self.offsets: list[int] = []
        self.error_code = 0
        self.found_ms = -1
        """The timestamp in the cluster's last response, in milliseconds since 1970; -1 if there is none."""
        self.is_of_record = False
        """True if `offsets[0]` is the offset of the first record at or after the requested time."""

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.index


def list_offsets(asked: TranslatedRequest) -> Steps:
    """Translate a ListOffsets request of version 0."""
    questions = [
        _Question(topic.name, partition) for topic in asked.request.topics for partition in topic.partitions
    ]
    for turn in _turns(questions):
        yield from _ask(turn, asked)
    return _answer(asked, questions)


def _turns(questions: list[_Question]) -> list[list[_Question]]:
    """Divide the requested times into requests with one time per partition, as since version 1."""
    counts: dict[tuple[str, int], int] = {}
    turns: list[list[_Question]] = []
    for question in questions:
        turn = counts.get(question.place, 0)
        counts[question.place] = turn + 1
        if turn >= TIMES_MAX:
            question.error_code = ErrorCode.INVALID_REQUEST
            continue
        if turn == len(turns):
            turns.append([])
        turns[turn].append(question)
    return turns


def _ask(questions: list[_Question], asked: TranslatedRequest) -> Steps:
    found = yield _call(asked, ((each, each.time) for each in questions))
    _take(found, questions)
    later = [each for each in questions if each.offsets == [-1]]
    if later and asked.target >= LIST_OFFSETS_MAX_TIMESTAMP_SINCE:
        found = yield _call(asked, ((each, MAX_TIMESTAMP) for each in later))
        _take(found, later)
        # Records of producers before 0.10 have no times: nothing is known to be before one.
        untimed = [each for each in later if each.found_ms < 0]
        later = [each for each in later if each.found_ms >= 0]
        for each in untimed:
            each.offsets = []
    if later:
        # No record is as late as the time: all of them are before it.
        for each in later:
            each.offsets = []
        found = yield _call(asked, ((each, LATEST) for each in later))
        _take(found, later)
    for each in questions:
        each.is_of_record = each.time >= 0
    for each in later:
        each.is_of_record = False
    needing_start = [
        each
        for each in questions
        if each.offsets and each.time != EARLIEST and (each.wanted > 1 or each.is_of_record)
    ]
    if needing_start:
        found = yield _call(asked, ((each, EARLIEST) for each in needing_start))
        _take(found, needing_start)
    for each in questions:
        if len(each.offsets) == 2 and each.offsets[1] >= each.offsets[0]:
            each.offsets.pop()
            if each.is_of_record:  # the log begins after the time: nothing is before it
                each.offsets.pop()
        del each.offsets[max(each.wanted, 0) :]
    return None


def _call(asked: TranslatedRequest, times: Iterable[tuple[_Question, int]]) -> NodeCall:
    topics: dict[str, ListOffsetsTopic] = {}
    for question, time in times:
        topic = topics.setdefault(question.topic, ListOffsetsTopic(name=question.topic))
        topic.partitions.append(ListOffsetsPartition(partition_index=question.index, timestamp=time))
    message = ListOffsetsRequest(
        replica_id=asked.request.replica_id,
        # The end is that of what a translated Fetch reads.
        isolation_level=READ_COMMITTED if asked.target >= LIST_OFFSETS_ISOLATION_SINCE else 0,
        topics=list(topics.values()),
        timeout_ms=TIMEOUT_MS,
    )
    return NodeCall(asked.api_key, asked.target, message)


def _take(response: ListOffsetsResponse, questions: list[_Question]) -> None:
    """Append the offsets in a response from the cluster to the `offsets` of the matching `_Question`s."""
    by_place = {each.place: each for each in questions}
    for topic in response.topics:
        for partition in topic.partitions:
            question = by_place.get((topic.name, partition.partition_index))
            if question is not None:
                question.error_code = question.error_code or partition.error_code
                if not partition.error_code:
                    question.offsets.append(partition.offset)
                    question.found_ms = partition.timestamp


def _answer(asked: TranslatedRequest, questions: list[_Question]) -> ListOffsetsResponse:
    topics: dict[str, ListOffsetsTopicResponse] = {}
    for question in questions:
        topic = topics.setdefault(question.topic, ListOffsetsTopicResponse(name=question.topic))
        topic.partitions.append(
            ListOffsetsPartitionResponse(
                partition_index=question.index,
                error_code=question.error_code,
                old_style_offsets=[] if question.error_code else question.offsets,
            )
        )
    response = ListOffsetsResponse(topics=list(topics.values()))
    replace_codes(response, asked.version)
    return response
