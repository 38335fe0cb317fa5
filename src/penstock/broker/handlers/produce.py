"""Produce (0): append records to partitions.

v0-v2 carry message sets, or whatever the magic byte says; v3 and later exactly one batch of magic 2 for
each partition. v1 throttle time, v2 log-append time, v3 transactional id, v5 log start offset, v7 zstd,
v8 error messages, v10 leader hint, v13 topics by id.

acks=0 has no answer, and an error closes the connection; acks of -1 and 1 are the same with one replica.
Error 56 (storage) is new in v4; older clients get 6 and refresh their metadata.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from penstock.broker.context import CloseConnection, Context
from penstock.broker.metadata.replica_manager import Topic
from penstock.broker.partitions.partition import Appended, Partition
from penstock.broker.partitions.producers.transactional_appends import refusal_of
from penstock.broker.partitions.stored_form import MAGIC_2_ONLY_SINCE, OlderForm
from penstock.broker.partitions.validation import MisshapenRecords, RejectedRecords
from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.repetition import merged
from penstock.broker.requests.side_thread import (
    UsesSideThread,
    answer_later,
    full_budget,
    inline_budget,
    to_be_raised_later,
)
from penstock.errors import KafkaError, StorageError, UnpackLimitError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.compression.budget import UnpackBudget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.metadata.cluster import Cluster
    from penstock.broker.partitions.upkeep.flusher import Flusher, FlushTask
    from penstock.broker.requests.purgatory import Parking
    from penstock.broker.requests.release_profiles import Profile
    from penstock.broker.transactions.service import Joining, TransactionService
    from penstock.clock import Clock
    from penstock.common.failures import LimitedLog
    from penstock.records.format.batch_header import BatchHeader

NOTHING = UnpackBudget(0, 0)
"""For records that are rarely looked into: where they must be, that happens in a thread."""

TOPIC_IDS_SINCE = 13
ALL_REPLICAS = -1
STORAGE_ERROR_SINCE = 4

FEWER_REPLICAS_DO_SINCE = (3, 7)
"""From this release on, min.insync.replicas asks for no more replicas than the partition has."""

APPENDS_PER_TURN = 100
"""Partitions that one request writes to before others are served: some milliseconds."""

COPIED_BYTES_MAX = 1 << 20
"""Records up to this size are copied, so that a request for many partitions can go on later."""

TURN_PAUSE_S = 0.0005
"""Seconds until a request for many partitions goes on. The event loop serves what has arrived by then."""

FLUSH_PATIENCE_S = 3600
"""A device that takes longer to force data to disk has failed in a way of its own."""

_WITHOUT_START_OFFSET = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)

_NO_RECORDS: list[BatchIndexAndErrorMessage] = []


class Needs(UsesSideThread, Protocol):
    """The parts of a broker that this API works on."""

    clock: Clock
    cluster: Cluster

    @property
    def transactions(self) -> TransactionService: ...

    def flusher_for(self, partition: Partition) -> Flusher | None: ...

    limited_log: LimitedLog
    parking: Parking
    profile: Profile | None


def produce(request: ProduceRequest, context: Context[Needs]) -> ProduceResponse | Wait | None:
    """Append what every partition is sent; each has its own outcome."""
    topics, acks = request.topic_data, request.acks
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        topics = merged(topics, _topic, "partition_data", _index)
        if acks and _takes_turns(topics):
            return _append_in_turns(topics, request, context)
        return _append_all(topics, request, context, [], [])
    delayed: Delayed = []
    responses = [_append_to_topic(topics[0], request, context, delayed)]
    if acks and not delayed and acks <= 1:
        return ProduceResponse(responses=responses)
    return _append_all((), request, context, responses, delayed)


_topic, _index = attrgetter("name", "topic_id"), attrgetter("index")


def _append_all(
    topics: Iterable[TopicProduceData],
    request: ProduceRequest,
    context: Context[Needs],
    responses: list[TopicProduceResponse],
    delayed: Delayed,
) -> ProduceResponse | Wait | None:
    """Append what is left of a request; `responses` and `delayed` are those of what has been appended."""
    acks = request.acks
    responses += [_append_to_topic(topic, request, context, delayed) for topic in topics]
    if any(isinstance(each, Postponed) for each in delayed):
        return _append_later(responses, acks, request.timeout_ms, context, delayed)
    return _answer(responses, acks, request.timeout_ms, context, delayed)


# --- records for many partitions ----------------------------------------------------------------------------


def _takes_turns(topics: list[TopicProduceData]) -> bool:
    """Whether a request names so many partitions that others are served between them.

    Each append is a write of its own. A request with many records keeps the loop, since to put it off would
    be to copy it.
    """
    if sum(len(topic.partition_data) for topic in topics) <= APPENDS_PER_TURN:
        return False
    size = sum(len(each.records or b"") for topic in topics for each in topic.partition_data)
    return size <= COPIED_BYTES_MAX


def _append_in_turns(
    topics: list[TopicProduceData], request: ProduceRequest, context: Context[Needs]
) -> ProduceResponse | Wait | None:
    """Append to `APPENDS_PER_TURN` partitions at a time, and let the event loop serve others in between."""
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
    """The parts of a request, none of which names more than `APPENDS_PER_TURN` partitions."""
    for topic in topics:
        data = topic.partition_data
        for start in range(0, len(data), APPENDS_PER_TURN):
            yield TopicProduceData(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_data=data[start : start + APPENDS_PER_TURN],
            )


Delayed: TypeAlias = "list[Postponed | Flushing]"


class Flushing(NamedTuple):
    """Records of one partition that must reach the disk before `response` is sent."""

    flush: FlushTask
    response: PartitionProduceResponse


def _answer(
    responses: list[TopicProduceResponse],
    acks: int,
    timeout_ms: int,
    context: Context[Needs],
    delayed: Sequence[Postponed | Flushing],
) -> ProduceResponse | Wait | None:
    """The answer to a request all of whose records have been appended, or refused."""
    if acks == 0:
        _hang_up_on_failure(responses)
        return None
    if acks > 1:
        return _wait_for_replicas(responses, timeout_ms, context)
    if delayed:
        flushes = [each for each in delayed if isinstance(each, Flushing)]
        if flushes:
            return _wait_for_flushes(responses, flushes, context)
    return ProduceResponse(responses=responses)


def _wait_for_flushes(
    responses: list[TopicProduceResponse], flushes: list[Flushing], context: Context[Needs]
) -> ProduceResponse | Wait:
    """Answer once everything is on the disk that has to be (`flush.messages`)."""
    response = ProduceResponse(responses=responses)

    def report() -> ProduceResponse:
        for flush, partition in flushes:
            if flush.failure is not None:
                code = ErrorCode.KAFKA_STORAGE_ERROR
                if context.version < STORAGE_ERROR_SINCE:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                partition.error_code, partition.base_offset = code, -1
                partition.error_message = str(flush.failure)
        return response

    keys = list(dict.fromkeys(flush for flush, _ in flushes))
    return Wait(keys, context.now + FLUSH_PATIENCE_S, len(keys), report)


def _wait_for_replicas(
    responses: list[TopicProduceResponse], timeout_ms: int, context: Context[Needs]
) -> ProduceResponse | Wait:
    """What 0.8 does with acks above 1: there is one replica, so that time runs out (error 7)."""
    answers = [partition for topic in responses for partition in topic.partition_responses]
    written = [partition for partition in answers if not partition.error_code]
    response = ProduceResponse(responses=responses)
    if not written:
        return response

    def give_up() -> ProduceResponse:
        for partition in written:
            partition.error_code = ErrorCode.REQUEST_TIMED_OUT
        return response

    return Wait((), context.arrived + timeout_ms / 1000, answer=give_up)


def _append_to_topic(
    data: TopicProduceData, request: ProduceRequest, context: Context[Needs], delayed: Delayed
) -> TopicProduceResponse:
    found = _find_topic(data, request.acks, context)
    name = request.transactional_id
    joining = None if name is None else context.node.transactions.joining(name, context.version)
    partitions = []
    for partition in data.partition_data:
        try:
            if isinstance(found, KafkaError):
                raise found
            partitions.append(_append(found, partition, context, delayed, joining))
        except KafkaError as error:
            partitions.append(_refuse(partition.index, refusal_of(error, partition.records, joining)))
        except StorageError as error:
            partitions.append(_report_storage(partition.index, error, context))
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=partitions)


def _find_topic(data: TopicProduceData, acks: int, context: Context[Needs]) -> Topic | KafkaError:
    """The topic, or the error that each of its partitions is answered with."""
    cluster = context.node.cluster
    try:
        topic = (
            cluster.topic_by_id(data.topic_id)
            if context.version >= TOPIC_IDS_SINCE
            else cluster.topic(data.name)
        )
    except KafkaError as error:
        return error
    profile = context.node.profile
    if not -1 <= acks <= 1 and not (profile is not None and profile.waits_for_acks):
        return error_for(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {acks}")
    if topic.is_internal:
        return error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients may not write to {topic.name}")
    is_strict = profile is not None and profile.numbers < FEWER_REPLICAS_DO_SINCE
    if is_strict and acks == ALL_REPLICAS and topic.config.min_insync_replicas > 1:
        return error_for(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"min.insync.replicas is {topic.config.min_insync_replicas}, there is 1 replica",
        )
    return topic


def _append(
    topic: Topic, data: PartitionProduceData, context: Context[Needs], delayed: Delayed, joins: Joining | None
) -> PartitionProduceResponse:
    """Append the records for one partition; what cannot be finished at once goes into `delayed`."""
    partition = topic.partition(data.index)
    records = data.records
    flusher = context.node.flusher_for(partition) if topic.config.flushes else None
    budget = NOTHING
    if topic.config.inspects_records or context.version < MAGIC_2_ONLY_SINCE:
        budget = inline_budget(context)
    try:
        appended = partition.append(records, context.version, context.now_ms, budget, joins)
    except KafkaError as error:
        refused = refusal_of(error, records, joins)
        return _refuse(data.index, refused, _start_offset_told(partition, error) if refused is error else -1)
    except UnpackLimitError:
        response = PartitionProduceResponse(index=data.index)
        postponed = Postponed(topic, partition, bytearray(records or b""), response)
        postponed.joining = joins
        delayed.append(postponed)
        return response
    context.node.parking.notify(partition, len(records) if records else 0)
    response = _accept(data.index, appended)
    if flusher is not None and partition.needs_flush:
        delayed.append(Flushing(flusher.flush(partition), response))
    return response


def _accept(index: int, appended: Appended) -> PartitionProduceResponse:
    base_offset, time_ms, start_offset = appended
    return PartitionProduceResponse(
        index=index,
        base_offset=base_offset,
        log_append_time_ms=time_ms,
        log_start_offset=start_offset,
        record_errors=_NO_RECORDS,
    )


# --- records that take long ---------------------------------------------------------------------------------


class Postponed:
    """Records for one partition that take too long for the event loop, and what their sender is told."""

    __slots__ = (
        "admitted", "error", "first_offset", "joining", "older", "partition", "records", "response", "topic",
    )  # fmt: skip

    def __init__(
        self, topic: Topic, partition: Partition, records: bytearray, response: PartitionProduceResponse
    ) -> None:
        self.joining: Joining | None = None
        self.topic = topic
        self.partition = partition
        self.records = records
        self.response = response
        self.admitted: tuple[memoryview, BatchHeader] | None = None
        self.older: OlderForm | None = None
        self.error: KafkaError | None = None
        self.first_offset: int | None = None
        """Where they are to be appended, if they must be converted for that; the log may have moved on."""

    def prepare(self, version: int, now_ms: int, budget: UnpackBudget) -> None:
        """Do what takes long, in any thread. What comes of it is kept, a refusal too."""
        partition = self.partition
        try:
            if self.records:
                records, self.records = self.records, bytearray()
                self.admitted = partition.admit(memoryview(records), version, now_ms, budget)
            if self.first_offset is not None and self.admitted is not None:
                self.older = partition.prepare_older(self.admitted, self.first_offset, now_ms, budget)
        except KafkaError as error:
            self.error = to_be_raised_later(error)
        except UnpackLimitError as error:
            self.error = error_for(ErrorCode.MESSAGE_TOO_LARGE, str(error))


def _append_later(
    responses: list[TopicProduceResponse],
    acks: int,
    timeout_ms: int,
    context: Context[Needs],
    delayed: Delayed,
) -> ProduceResponse | Wait | None:
    """Answer once the records that take long have been looked into, in a thread, and appended."""
    postponed = [each for each in delayed if isinstance(each, Postponed)]
    flushes = [each for each in delayed if isinstance(each, Flushing)]
    version, now_ms = context.version, context.now_ms
    size = sum(len(each.records) for each in postponed)
    thread = context.node.side_thread()
    if thread is not None and not thread.has_room(size):
        busy = error_for(ErrorCode.REQUEST_TIMED_OUT, "too many records wait to be unpacked; send them again")
        for each in postponed:
            _copy_outcome(each.response, _refuse(each.response.index, busy))
        return _answer(responses, acks, timeout_ms, context, flushes)

    def prepare() -> None:
        budget = full_budget(context)
        for each in postponed:
            each.prepare(version, now_ms, budget)

    def append() -> ProduceResponse | Wait | None:
        nonlocal postponed
        postponed = [each for each in postponed if not _append_prepared(each, context, flushes)]
        if postponed:  # others have appended meanwhile: once more, for where the log ends now
            return begin()
        return _answer(responses, acks, timeout_ms, context, flushes)

    def begin() -> ProduceResponse | Wait | None:
        for each in postponed:
            if each.partition.stores_older:
                with suppress(KafkaError, StorageError):  # met again by the append, which says so
                    each.first_offset = each.partition.log.end_offset
        waiting: ProduceResponse | Wait | None = answer_later(context, prepare, size, append)
        return waiting

    return begin()


def _append_prepared(each: Postponed, context: Context[Needs], flushes: list[Flushing]) -> bool:
    """Append what a thread has looked into; return False if it was converted for another place in the log."""
    partition, index = each.partition, each.response.index
    try:
        refused, each.error = each.error, None
        if refused is not None:
            raise refused
        if context.node.cluster.topics.get(each.topic.name) is not each.topic:
            raise error_for(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {each.topic.name} has been deleted meanwhile"
            )
        if each.older is not None and each.older.first_offset != partition.log.end_offset:
            return False
        flusher = context.node.flusher_for(partition) if each.topic.config.flushes else None
        appended = partition.append_admitted(each.admitted, context.now_ms, each.older, joining=each.joining)
    except KafkaError as error:
        _copy_outcome(each.response, _refuse(index, error, _start_offset_told(partition, error)))
        return True
    except StorageError as error:
        _copy_outcome(each.response, _report_storage(index, error, context))
        return True
    size = len(each.admitted[0]) if each.admitted is not None else 0
    context.node.parking.notify(partition, size)
    _copy_outcome(each.response, _accept(index, appended))
    if flusher is not None and partition.needs_flush:
        flushes.append(Flushing(flusher.flush(partition), each.response))
    return True


def _copy_outcome(response: PartitionProduceResponse, outcome: PartitionProduceResponse) -> None:
    """Make a response that is in its place already say what another one says."""
    for name in outcome.__slots__:
        setattr(response, name, getattr(outcome, name))


def _start_offset_told(partition: Partition, error: KafkaError) -> int:
    """Where the log begins, if the answer to a refused batch says so: as in Kafka, not always."""
    if error.code in _WITHOUT_START_OFFSET or isinstance(error, MisshapenRecords):
        return -1
    return partition.log_start_offset


def _refuse(index: int, error: KafkaError, log_start_offset: int = -1) -> PartitionProduceResponse:
    response = PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=log_start_offset,
        error_message=error.detail,
    )
    if isinstance(error, RejectedRecords):
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=record, batch_index_error_message=reason)
            for record, reason in error.records
        ]
    return response


def _report_storage(index: int, error: StorageError, context: Context[Needs]) -> PartitionProduceResponse:
    context.node.limited_log.once(logging.ERROR, str(error))
    is_new = context.version >= STORAGE_ERROR_SINCE
    code = ErrorCode.KAFKA_STORAGE_ERROR if is_new else ErrorCode.NOT_LEADER_OR_FOLLOWER
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=str(error))


def _hang_up_on_failure(responses: list[TopicProduceResponse]) -> None:
    """With acks=0 there is no answer; closing the connection is how the producer learns."""
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(
                    f"Produce with acks=0 to {topic.name}-{partition.index} failed: {partition.error_message}"
                )
