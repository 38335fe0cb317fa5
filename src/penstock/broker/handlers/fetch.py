"""Fetch (1): read records, and wait for them.

v1 adds the throttle time; v3 a limit for the whole response; v4 isolation and last stable offset; v5 the log
start offset; v7 sessions; v9 the client's leader epoch; v10 zstd; v11 the preferred replica; v12 the
diverging epoch; v13 topics by id; v15-v18 fields for replicas.

The response waits until `min_bytes` are available or `max_wait_ms` is over; an error in any partition ends
the wait. The first batch found is complete even if it exceeds the limits. Before v3 there is no limit for the
whole response, and every partition gets as many bytes as its entry asks for, the last message cut if
necessary. Versions below 4 get records converted down (magic 0 for v0 and v1, magic 1 for v2 and v3). A
thread converts records that would block the event loop too long. If the batches read contain no record for an
older client, but only transaction markers, for example, the request continues after them (`older_fetches`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.replica_manager import Topic
from penstock.broker.partitions.fetch_sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    FetchSession,
    OwnedSessions,
)
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.repetition import in_order
from penstock.broker.requests.side_thread import (
    answer_later,
    full_budget,
    inline_budget,
)
from penstock.errors import KafkaError, StorageError, UnpackLimitError
from penstock.log.contract import DamagedLogError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import READ_COMMITTED
from penstock.protocol.message import Records
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from penstock.protocol.since import FETCH_MAGIC_2_SINCE, FETCH_TOPIC_IDS_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.older_fetches import Conversion
    from penstock.broker.handlers.serving_node import ServingNode

WHOLE_BATCHES_SINCE = 3
STORAGE_ERROR_SINCE = 6
ZSTD_SINCE = 10


FOLLOWERS_SERVE_SINCE = 11
"""The first version in which followers serve consumers, too (KIP-392)."""
DEBUGGING_REPLICA = -2
"""The replica id of debugging tools: any replica answers their Fetch and ListOffsets requests, as in Apache
Kafka 2.3."""

INLINE_BYTES = 64 << 10
"""The most bytes of one partition's batches that the event loop converts; a thread converts more.

The decompressed size has a limit, too.
"""

CONVERTED_BYTES_MAX = 1 << 20
"""The maximum size in bytes of one partition's batches that are converted for one request; only a first batch
may be larger. Clients that use Fetch before v4 request no more by default."""

LEFT_OUT_BYTES_MAX = 256 << 10
"""The most bytes of one partition's batches that a request skips before it lets other requests run.

A request skips batches without a record that could be converted for its older client.
"""

HELD_BYTES_MAX = 8 << 20
"""The maximum size in bytes of the batches that one request keeps in memory for conversion in a thread.

Partitions beyond this limit get no records in this response.
"""

_NONE_ABORTED: list[AbortedTransaction] = []

_NO_NODES: list[NodeEndpoint] = []

# The parts of a response get their fields one by one: a call of a class takes three to four times as long.
_new = object.__new__


class _Reading:
    """The state while a Fetch reads its partitions: bytes found, bytes still allowed, conversions to do."""

    __slots__ = (
        "context",
        "conversions",
        "failed",
        "found_bytes",
        "goes_on",
        "held_bytes",
        "keys",
        "left_bytes",
        "request",
    )

    def __init__(self, request: FetchRequest, context: Context[ServingNode]) -> None:
        self.request = request
        self.context = context
        # The fast way of a Fetch calls neither `min` nor `max`: such a call takes ten comparisons' time.
        most = context.node.fetch_bytes_max
        self.left_bytes = request.max_bytes if request.max_bytes < most else most
        self.found_bytes = 0
        self.held_bytes = 0
        self.conversions: list[Conversion] = []
        """Conversions of records that would block the event loop too long; a thread does them."""
        self.failed = False
        self.goes_on = False
        """True if the request must read on, because the batches found have no record to convert."""
        self.keys: list[Hashable] = []


def fetch(request: FetchRequest, context: Context[ServingNode]) -> FetchResponse | Wait:
    """Read from every partition in the request; if less than `min_bytes` are found, wait for more."""
    topics = request.topics
    if len(topics) > 1 or (topics and len(topics[0].partitions) > 1):
        # Kafka keeps what is asked in a table, too: a partition that is named twice is read once.
        request.topics = in_order(topics, _name, "partitions", _index)
    if request.session_epoch != FINAL_EPOCH:
        return _fetch_in_session(request, context)
    if request.session_id != NO_SESSION:
        context.node.fetch_sessions.remove(request.session_id)
    found = _read_all(request.topics, request, context)
    if isinstance(found, Wait):
        return found
    return _response(found, NO_SESSION)


_name, _index = attrgetter("topic", "topic_id"), attrgetter("partition")


def _response(responses: list[FetchableTopicResponse], session_id: int) -> FetchResponse:
    """Return a Fetch response that consists of these topic entries."""
    response = _new(FetchResponse)
    response.throttle_time_ms = response.error_code = 0
    response.session_id = session_id
    response.responses = responses
    response.node_endpoints = _NO_NODES
    response.unknown_tags = None
    return response


def _read_all(
    topics: Sequence[FetchTopic],
    request: FetchRequest,
    context: Context[ServingNode],
    again: Callable[[], FetchResponse | Wait] | None = None,
) -> list[FetchableTopicResponse] | Wait:
    """Read from every partition; if this yields too few bytes, return a `Wait` that calls `again` later."""
    reading = _Reading(request, context)
    responses = []
    for topic in topics:
        responses.append(_read_topic(topic, reading))  # noqa: PERF401  a comprehension is a call more
    if reading.goes_on:
        return Wait((), context.now, answer=partial(fetch, request, context))
    missing_bytes = request.min_bytes - reading.found_bytes
    if missing_bytes > 0 and reading.keys:
        profile = context.node.profile
        failed = reading.failed and (profile is None or profile.failures_end_waits)
        deadline = context.arrived + request.max_wait_ms / 1000
        if context.now < deadline and not failed:
            return Wait(reading.keys, deadline, missing_bytes, again)
    if reading.conversions:
        return _convert_later(responses, reading)
    return responses


# --- sessions -----------------------------------------------------------------------------------------------


def _fetch_in_session(request: FetchRequest, context: Context[ServingNode]) -> FetchResponse | Wait:
    """Begin a fetch session (epoch 0), or answer the next request of a session."""
    sessions = context.node.fetch_sessions
    if request.session_epoch == FIRST_EPOCH:
        sessions.remove(request.session_id)
        return _answer_in_full(request, context)
    session = sessions.get(request.session_id)
    if session is None:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != request.session_epoch:
        return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    if session.by_id != (context.version >= FETCH_TOPIC_IDS_SINCE):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    if not sessions.update(session, request.topics, request.forgotten_topics_data, context.now_ms):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if not session.partitions:
        sessions.remove(session.id)
        return FetchResponse()
    return _answer_news(session, request, context)


def _answer_in_full(request: FetchRequest, context: Context[ServingNode]) -> FetchResponse | Wait:
    found = _read_all(request.topics, request, context, partial(_answer_in_full, request, context))
    if isinstance(found, Wait):
        return found
    by_id = context.version >= FETCH_TOPIC_IDS_SINCE
    sessions = context.node.fetch_sessions
    owned = context.session.resource(OwnedSessions)
    if owned is None:
        owned = OwnedSessions(sessions)
        context.session.keep(owned)
    session = sessions.begin(request.topics, by_id, context.now_ms, owned)
    if session is None:
        return FetchResponse(responses=found)
    _keep_news(found, session)
    return FetchResponse(responses=found, session_id=session.id)


def _answer_news(
    session: FetchSession, request: FetchRequest, context: Context[ServingNode]
) -> FetchResponse | Wait:
    again = partial(_answer_news, session, request, context)
    found = _read_all(session.topics(), request, context, again)
    if isinstance(found, Wait):
        return found
    return _response(_keep_news(found, session), session.id)


def _keep_news(
    responses: list[FetchableTopicResponse], session: FetchSession
) -> list[FetchableTopicResponse]:
    """Record responses in a fetch session; return those with changes since the session's last one."""
    news = []
    for topic in responses:
        fresh = []
        name, topic_id = topic.topic, topic.topic_id
        for answer in topic.partitions:
            if session.take_news((name, topic_id, answer.partition_index), answer):
                fresh.append(answer)  # noqa: PERF401  a comprehension is a call more
        if fresh and len(fresh) == len(topic.partitions):
            news.append(topic)
        elif fresh:
            news.append(FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=fresh))
    return news


# --- one partition ------------------------------------------------------------------------------------------


def _read_topic(asked: FetchTopic, reading: _Reading) -> FetchableTopicResponse:
    cluster = reading.context.node.cluster
    topic: Topic | None = None
    failure: KafkaError | None = None
    try:
        by_id = reading.context.version >= FETCH_TOPIC_IDS_SINCE
        topic = cluster.topic_by_id(asked.topic_id) if by_id else cluster.topic(asked.topic)
    except KafkaError as error:
        failure = error
    partitions = []
    for partition in asked.partitions:
        try:
            if topic is None:
                assert failure is not None
                raise failure
            partitions.append(_read(topic, partition, reading))
        except KafkaError as error:
            reading.failed = True
            partitions.append(_refuse(partition.partition, error.code))
        except StorageError as error:
            reading.failed = True
            reading.context.node.limited_log.once(logging.ERROR, str(error))
            is_new = reading.context.version >= STORAGE_ERROR_SINCE
            code = ErrorCode.KAFKA_STORAGE_ERROR if is_new else ErrorCode.NOT_LEADER_OR_FOLLOWER
            if isinstance(error, DamagedLogError):
                # Clients do not retry after this error; with the others they would retry for ever.
                code = ErrorCode.CORRUPT_MESSAGE
            partitions.append(_refuse(partition.partition, code))
    response = _new(FetchableTopicResponse)
    response.topic = asked.topic
    response.topic_id = asked.topic_id
    response.partitions = partitions
    response.unknown_tags = None
    return response


def _read(topic: Topic, asked: FetchPartition, reading: _Reading) -> PartitionData:
    request, version = reading.request, reading.context.version
    index, partitions = asked.partition, topic.partitions
    # A wrong number is refused by the topic.
    partition = partitions[index] if 0 <= index < len(partitions) else topic.partition(index)
    any_replica = version >= FOLLOWERS_SERVE_SINCE or request.replica_id == DEBUGGING_REPLICA
    leader_epoch = asked.current_leader_epoch
    partition.check_leader_epoch(leader_epoch if leader_epoch > -1 else -1, any_replica=any_replica)
    if version < ZSTD_SINCE and topic.config.codec_name == "zstd":
        raise error_for(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"topic {topic.name} is stored in zstd, Fetch v{version}"
        )
    if asked.last_fetched_epoch >= 0:
        diverging = _divergence(partition, asked)
        if diverging is not None:
            return _diverging(partition, asked, diverging)
    max_bytes, left_bytes = asked.partition_max_bytes, reading.left_bytes
    if max_bytes > left_bytes:
        max_bytes = left_bytes
    if max_bytes < 0:
        max_bytes = 0
    if version < FETCH_MAGIC_2_SINCE:
        # What is converted is in memory, and the next fetch goes on behind it.
        max_bytes = min(max_bytes, CONVERTED_BYTES_MAX)
    is_cut = version < WHOLE_BATCHES_SINCE
    first = reading.found_bytes == 0 or (is_cut and max_bytes > 0)
    committed_only = request.isolation_level == READ_COMMITTED
    found = partition.read(asked.fetch_offset, max_bytes, at_least_one=first, committed_only=committed_only)
    pieces, size = found.pieces, found.size
    # The codec has a short way for records that are one piece in memory.
    records: Records = pieces[0] if len(pieces) == 1 and type(pieces[0]) is bytes else pieces
    conversion: Conversion | None = None
    left_out_bytes = 0
    while version < FETCH_MAGIC_2_SINCE and size:
        records = b""
        if not reading.held_bytes or reading.held_bytes + size <= HELD_BYTES_MAX:
            from penstock.broker.handlers.older_fetches import Conversion  # such clients are rare

            conversion = Conversion(
                partition, found.to_bytes(), asked, max_bytes if is_cut else None, version
            )
            try:
                if size > INLINE_BYTES:
                    raise UnpackLimitError
                records = conversion.convert(inline_budget(reading.context))
                if conversion.go_on():
                    left_out_bytes += size
                    if left_out_bytes < LEFT_OUT_BYTES_MAX:
                        found = partition.read(asked.fetch_offset, max_bytes, at_least_one=first)
                        conversion, size = None, found.size
                        continue
                    reading.goes_on = True
                conversion = None
            except UnpackLimitError:
                reading.held_bytes += size
        size = len(records) if conversion is None else min(size, max_bytes) if is_cut else size
        break
    reading.found_bytes += size
    reading.left_bytes -= size
    reading.keys.append(partition)
    response = _new(PartitionData)
    response.partition_index = index
    response.error_code = 0
    response.high_watermark, response.last_stable_offset, response.log_start_offset = partition.bounds
    response._diverging_epoch = response._current_leader = response._snapshot_id = None
    response.aborted_transactions = _aborted(partition, asked.fetch_offset, size) if committed_only else None
    response.preferred_read_replica = -1
    response.records = records
    response.unknown_tags = None
    if conversion is not None:
        conversion.response = response
        reading.conversions.append(conversion)
    return response


def _aborted(partition: Partition, offset: int, size: int) -> list[AbortedTransaction]:
    """Return the aborted transactions whose records a `read_committed` consumer must skip.

    The list may include transactions without records in the response.
    """
    if not size:
        return _NONE_ABORTED
    found = partition.aborted_transactions(offset, size)
    if not found:
        return _NONE_ABORTED
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in found
    ]


def _divergence(partition: Partition, asked: FetchPartition) -> EpochEndOffset | None:
    """Return the end offset of the fetcher's last epoch if the fetcher's log diverges, else None (v12).

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE (1), the log does not have the fetcher's last epoch.
    """
    epoch, end_offset = partition.end_of_epoch(asked.last_fetched_epoch)
    if end_offset < 0:
        raise error_for(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition!r} has no leader epoch {asked.last_fetched_epoch}"
        )
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _diverging(partition: Partition, asked: FetchPartition, where: EpochEndOffset) -> PartitionData:
    return PartitionData(
        partition_index=asked.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log_start_offset,
        aborted_transactions=None,
        diverging_epoch=where,
        records=b"",
    )


# --- older formats ------------------------------------------------------------------------------------------


def _convert_later(
    responses: list[FetchableTopicResponse], reading: _Reading
) -> list[FetchableTopicResponse] | Wait:
    """Convert records in a thread. Returns a `Wait`, or the responses if no wait is necessary."""
    conversions = reading.conversions

    def work() -> None:
        budget = full_budget(reading.context)
        for each in conversions:
            each.prepare(budget)

    def answer() -> FetchResponse | Wait:
        behind = [each for each in conversions if each.go_on()]
        if behind:
            return fetch(reading.request, reading.context)
        for each in conversions:
            if each.error is not None and each.response is not None:
                refused = _refuse(each.asked.partition, each.error.code)
                for name in refused.__slots__:
                    setattr(each.response, name, getattr(refused, name))
        return FetchResponse(responses=responses)

    size = sum(len(each.data) for each in conversions)
    thread = reading.context.node.side_thread()
    if thread is None:
        work()
        done = answer()
        return done if isinstance(done, Wait) else done.responses
    if not thread.has_room(size):
        for each in conversions:
            assert each.response is not None
            each.response.records = b""  # as if nothing had come: the fetcher asks again
        return responses
    waiting: Wait = answer_later(reading.context, work, size, answer)
    return waiting


def _refuse(index: int, code: int) -> PartitionData:
    response = PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=b"")
    if code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
        response.aborted_transactions = None
    return response
