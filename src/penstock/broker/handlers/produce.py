"""Produce (0): append records to partitions.

v0-v2 carry message sets, or any format that the magic byte identifies; v3 and later carry exactly one batch
of magic 2 for each partition. v1 adds the throttle time, v2 log-append time, v3 the transactional id, v5 the
log start offset, v7 zstd, v8 error messages, v10 the leader hint, v13 topics by id.

A request with acks=0 has no response, and an error closes the connection. With one replica, acks of -1 and 1
are equal. In a cluster, `broker.replication.gate` delays the response to acks=-1 (all) until the replicas
have the records. KAFKA_STORAGE_ERROR (56) is new in v4; older clients get NOT_LEADER_OR_FOLLOWER (6), and
refresh their metadata.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from penstock.broker.context import Context
from penstock.broker.handlers.produce_answers import (
    Flushing,
    answer,
    answered_start_offset,
    refuse,
    refuse_all,
    report_storage,
)
from penstock.broker.metadata.replica_manager import Topic
from penstock.broker.partitions.producers.transactional_appends import refusal_of, refusal_of_all
from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.repetition import merged
from penstock.broker.requests.side_thread import inline_budget
from penstock.errors import KafkaError, StorageError, UnpackLimitError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import ALL_REPLICAS
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.protocol.since import PRODUCE_MAGIC_2_SINCE, PRODUCE_TOPIC_IDS_SINCE
from penstock.records.compression.codecs import UnpackBudget

if TYPE_CHECKING:
    from penstock.broker.handlers.postponed_records import Postponed
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.transactions.service import Joining

_NO_RECORDS: list[BatchIndexAndErrorMessage] = []

_NO_NODES: list[NodeEndpoint] = []

_new = object.__new__

NOTHING = UnpackBudget(0, 0)
"""A decompression budget of 0, for the event loop: records that must be decompressed go to a thread."""


FEWER_REPLICAS_DO_SINCE = (3, 7)
"""The first release of Kafka in which min.insync.replicas is limited to the number of replicas."""

APPENDS_PER_TURN = 100
"""The most partitions to which a request appends, in some milliseconds, before other clients are
served.
"""

COPIED_BYTES_MAX = 1 << 20
"""The maximum size in bytes of a request that is appended with pauses in between. Its records must be
copied, because the network buffer is reused in the pauses.
"""

TURN_PAUSE_S = 0.0005
"""The pause in seconds between two groups of appends of a request for many partitions. Other clients
are served in it.
"""


Delayed: TypeAlias = "list[Postponed | Flushing]"
"""The partitions of a request that wait for validation in a thread or for a flush."""


def produce(request: ProduceRequest, context: Context[ServingNode]) -> ProduceResponse | Wait | None:
    """Append records to every partition in the request; each partition has its own result."""
    topics, acks = request.topic_data, request.acks
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        topics = merged(topics, _topic, "partition_data", _index)
        batches = (data.records for topic in topics for data in topic.partition_data)
        if error := refusal_of_all(batches, request.transactional_id):
            return answer(refuse_all(topics, error), acks, context, [])
        if acks and _takes_turns(topics):
            return _append_in_turns(topics, request, context)
        return _append_all(topics, request, context, [], [])
    delayed: Delayed = []
    responses = [_append_to_topic(topics[0], request, context, delayed)]
    if acks and not delayed and acks <= 1:
        response = _new(ProduceResponse)
        response.responses = responses
        response.throttle_time_ms = 0
        response.node_endpoints = _NO_NODES
        response.unknown_tags = None
        return response
    return _append_all((), request, context, responses, delayed)


_topic, _index = attrgetter("name", "topic_id"), attrgetter("index")


def _append_all(
    topics: Iterable[TopicProduceData],
    request: ProduceRequest,
    context: Context[ServingNode],
    responses: list[TopicProduceResponse],
    delayed: Delayed,
) -> ProduceResponse | Wait | None:
    """Append to the given topics; add their results to `responses` and `delayed`."""
    responses += [_append_to_topic(topic, request, context, delayed) for topic in topics]
    flushes = [each for each in delayed if isinstance(each, Flushing)]
    postponed = [each for each in delayed if not isinstance(each, Flushing)]
    if postponed:
        from penstock.broker.handlers.postponed_records import append_later  # rarely needed

        return append_later(responses, request.acks, context, postponed, flushes)
    return answer(responses, request.acks, context, flushes)


# --- records for many partitions ----------------------------------------------------------------------------


def _takes_turns(topics: list[TopicProduceData]) -> bool:
    """Return True if appending to all partitions at once would block other clients too long.

    The function returns False for more than `COPIED_BYTES_MAX` bytes of records: they would have to be copied
    for an append with pauses.
    """
    if sum(len(topic.partition_data) for topic in topics) <= APPENDS_PER_TURN:
        return False
    size = sum(len(each.records or b"") for topic in topics for each in topic.partition_data)
    return size <= COPIED_BYTES_MAX


def _append_in_turns(
    topics: list[TopicProduceData], request: ProduceRequest, context: Context[ServingNode]
) -> ProduceResponse | Wait | None:
    """Append to `APPENDS_PER_TURN` partitions at a time; the event loop serves other clients in between."""
    turns = deque(_turns(topics))
    for topic in islice(turns, 1, None):
        for data in topic.partition_data:  # the frame is not there any more when its turn comes
            data.records = None if data.records is None else memoryview(bytearray(data.records))
    responses: list[TopicProduceResponse] = []
    delayed: Delayed = []

    def append() -> ProduceResponse | Wait | None:
        topic = turns.popleft()
        response = _append_to_topic(topic, request, context, delayed)
        last = responses[-1] if responses else None
        if last is not None and (last.name, last.topic_id) == (response.name, response.topic_id):
            last.partition_responses += response.partition_responses
        else:
            responses.append(response)
        if not turns:
            return _append_all((), request, context, responses, delayed)
        return Wait((), context.node.clock.monotonic() + TURN_PAUSE_S, answer=append)

    return append()


def _turns(topics: list[TopicProduceData]) -> Iterator[TopicProduceData]:
    """Yield lists of topics from a request, each list with at most `APPENDS_PER_TURN` partitions."""
    for topic in topics:
        data = topic.partition_data
        for start in range(0, len(data), APPENDS_PER_TURN):
            yield TopicProduceData(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_data=data[start : start + APPENDS_PER_TURN],
            )


def _append_to_topic(
    data: TopicProduceData, request: ProduceRequest, context: Context[ServingNode], delayed: Delayed
) -> TopicProduceResponse:
    found = _find_topic(data, request.acks, context)
    name = request.transactional_id
    joining = None if name is None else context.node.transactions.joining(name, context.version)
    partitions = []
    for partition in data.partition_data:
        try:
            if isinstance(found, KafkaError):
                raise found
            partitions.append(_append(found, partition, request.acks, context, delayed, joining))
        except KafkaError as error:
            partitions.append(refuse(partition.index, refusal_of(error, partition.records, joining)))
        except StorageError as error:
            partitions.append(report_storage(partition.index, error, context))
    response = _new(TopicProduceResponse)
    response.name = data.name
    response.topic_id = data.topic_id
    response.partition_responses = partitions
    response.unknown_tags = None
    return response


def _find_topic(data: TopicProduceData, acks: int, context: Context[ServingNode]) -> Topic | KafkaError:
    """Return the topic of an entry, or the error to answer for each of its partitions."""
    cluster = context.node.cluster
    try:
        topic = (
            cluster.topic_by_id(data.topic_id)
            if context.version >= PRODUCE_TOPIC_IDS_SINCE
            else cluster.topic(data.name)
        )
    except KafkaError as error:
        return error
    profile = context.node.profile
    if not -1 <= acks <= 1 and not (profile is not None and profile.counts_acks):
        return error_for(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {acks}")
    if topic.is_internal:
        return error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients may not write to {topic.name}")
    replicas_min = topic.config.min_insync_replicas
    is_short = acks == ALL_REPLICAS and replicas_min > 1
    if is_short and not context.node.config.behaves_since(*FEWER_REPLICAS_DO_SINCE):
        return error_for(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"min.insync.replicas is {replicas_min}, there is 1 replica"
        )
    return topic


def _append(
    topic: Topic,
    data: PartitionProduceData,
    acks: int,
    context: Context[ServingNode],
    delayed: Delayed,
    joins: Joining | None,
) -> PartitionProduceResponse:
    """Append the records for one partition; add work that cannot finish at once to `delayed`."""
    index, partitions = data.index, topic.partitions
    # A wrong number is refused by the topic.
    partition = partitions[index] if 0 <= index < len(partitions) else topic.partition(index)
    records = data.records
    flusher = context.node.flusher_for(partition) if topic.config.flushes else None
    budget = NOTHING
    if topic.config.inspects_records or context.version < PRODUCE_MAGIC_2_SINCE:
        budget = inline_budget(context)
    try:
        appended = partition.append(records, context.version, context.now_ms, budget, joins, acks=acks)
    except KafkaError as error:
        refused = refusal_of(error, records, joins)
        told = answered_start_offset(partition, error, joins) if refused is error else -1
        return refuse(data.index, refused, told)
    except UnpackLimitError:
        from penstock.broker.handlers.postponed_records import Postponed

        response = PartitionProduceResponse(index=data.index)
        postponed = Postponed(topic, partition, bytearray(records or b""), response)
        postponed.joining = joins
        delayed.append(postponed)
        return response
    purgatory = context.node.purgatory
    if partition in purgatory.waiting:
        purgatory.notify(partition, len(records) if records else 0)
    # The fields are set one by one: a call of the class takes four times as long.
    response = _new(PartitionProduceResponse)
    response.index = index
    response.error_code = 0
    response.base_offset, response.log_append_time_ms, response.log_start_offset = appended
    response.record_errors = _NO_RECORDS
    response.error_message = response._current_leader = response.unknown_tags = None
    if flusher is not None and partition.needs_flush:
        delayed.append(Flushing(flusher.flush(partition), response))
    return response
