"""Guards of APIs that act on partitions of topics: Produce, Fetch, offsets, records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.broker.context import CloseConnection
from penstock.broker.security.guards.guard import Asking, extended, split, with_fields
from penstock.protocol.error_codes import ErrorCode
from penstock.security.acls import Operation, ResourceType

_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

IDS_IN_PRODUCE_SINCE = 13
IDS_IN_FETCH_SINCE = 13

_ATTRIBUTES, _MAGIC = 22, 16
"""Positions of the low byte of a batch's attributes, and of its magic."""
_TRANSACTIONAL = 0x10

_NO_SESSION, _FIRST_EPOCH, _FINAL_EPOCH = 0, 0, -1


def guard_produce(request: Any, asking: Asking) -> Any:
    """WRITE on each topic; and on the transactional id, if a batch is part of a transaction."""
    from penstock.protocol.messages.produce_response import (
        PartitionProduceResponse,
        ProduceResponse,
        TopicProduceResponse,
    )

    def refuse(topic: Any, code: int) -> TopicProduceResponse:
        return TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[
                PartitionProduceResponse(
                    index=partition.index,
                    error_code=code,
                    base_offset=-1,
                    log_append_time_ms=-1,
                    log_start_offset=-1,
                )
                for partition in topic.partition_data
            ],
        )

    rights, by_id = asking.rights, asking.context.version >= IDS_IN_PRODUCE_SINCE
    if _has_transactional_batch(request) and not (
        request.transactional_id is not None
        and rights.on_transactional_id(Operation.WRITE, request.transactional_id)
    ):
        if request.acks == 0:
            raise CloseConnection(f"{rights.principal} may not write with this transactional id")
        return ProduceResponse(responses=[refuse(topic, _NO_TRANSACTION) for topic in request.topic_data])

    def may_write(topic: Any) -> bool:
        name = asking.topic_name(topic.topic_id) if by_id else topic.name
        return name is None or rights.on_topic(Operation.WRITE, name)

    allowed, refused = split(request.topic_data, may_write)
    if not refused:
        return asking.proceed(request)
    complete = extended("responses", [refuse(topic, _REFUSED) for topic in refused])
    if request.acks == 0:

        def complete(response: Any) -> Any:
            raise CloseConnection(f"Produce with acks=0 to topics that {rights.principal} may not write to")

    return asking.then(with_fields(request, topic_data=allowed), complete)


def _has_transactional_batch(request: Any) -> bool:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if (
                records is not None
                and len(records) > _ATTRIBUTES
                and records[_MAGIC] == 2
                and records[_ATTRIBUTES] & _TRANSACTIONAL
            ):
                return True
    return False


def guard_fetch(request: Any, asking: Asking) -> Any:
    """READ on each topic; for a replica CLUSTER_ACTION instead.

    A request that names refused topics gets no fetch session: sessions hold nothing that may not be read.
    """
    from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData

    def refuse(topic: Any) -> FetchableTopicResponse:
        return FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[
                PartitionData(
                    partition_index=partition.partition,
                    error_code=_REFUSED,
                    high_watermark=-1,
                    records=b"",
                )
                for partition in topic.partitions
            ],
        )

    rights, by_id = asking.rights, asking.context.version >= IDS_IN_FETCH_SINCE

    def may_read(topic: Any) -> bool:
        name = asking.topic_name(topic.topic_id) if by_id else topic.topic
        return name is None or rights.on_topic(Operation.READ, name)

    replica = request.replica_state.replica_id if asking.context.version >= 15 else request.replica_id
    if replica >= 0:
        if rights.on_cluster(Operation.CLUSTER_ACTION):
            return asking.proceed(request)
        return FetchResponse(responses=[refuse(topic) for topic in request.topics])
    allowed, refused = split(request.topics, may_read)

    def complete(response: Any) -> Any:
        # A session may name topics whose entries have changed since.
        lost = [topic for topic in response.responses if not may_read(topic)]
        if lost:
            response.responses = [topic for topic in response.responses if may_read(topic)]
            for topic in lost:
                indexes = [each.partition_index for each in topic.partitions]
                response.responses.append(
                    FetchableTopicResponse(
                        topic=topic.topic,
                        topic_id=topic.topic_id,
                        partitions=[
                            PartitionData(
                                partition_index=index, error_code=_REFUSED, high_watermark=-1, records=b""
                            )
                            for index in indexes
                        ],
                    )
                )
        response.responses = [*response.responses, *map(refuse, refused)]
        return response

    if not refused:
        if request.session_id == _NO_SESSION:
            return asking.proceed(request)
        return asking.then(request, complete)
    if request.session_epoch > _FIRST_EPOCH:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    request = with_fields(request, topics=allowed, session_epoch=_FINAL_EPOCH)
    if not allowed:
        request.max_wait_ms = 0
    return asking.then(request, complete)


def _each_topic(
    request: Any, asking: Asking, operation: Operation, refuse: Callable[[Any], Any], *, name: str = "name"
) -> Any:
    """Answer a request whose topics, and those of its response, are in the field `topics`.

    Args:
        request: the request.
        asking: the principal's rights, and the handler.
        operation: what the principal needs the right for, on each topic.
        refuse: returns the entry of the response for a topic of the request that is refused.
        name: the attribute with a topic's name.
    """
    allowed, refused = split(
        request.topics, lambda topic: asking.rights.on_topic(operation, getattr(topic, name))
    )
    return asking.partly(request, "topics", allowed, "topics", [refuse(topic) for topic in refused])


def guard_list_offsets(request: Any, asking: Asking) -> Any:
    """DESCRIBE on each topic."""
    from penstock.protocol.messages.list_offsets_response import (
        ListOffsetsPartitionResponse,
        ListOffsetsTopicResponse,
    )

    def refuse(topic: Any) -> ListOffsetsTopicResponse:
        return ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(
                    partition_index=partition.partition_index, error_code=_REFUSED, timestamp=-1, offset=-1
                )
                for partition in topic.partitions
            ],
        )

    return _each_topic(request, asking, Operation.DESCRIBE, refuse)


def guard_offset_for_leader_epoch(request: Any, asking: Asking) -> Any:
    """CLUSTER_ACTION on the cluster, or DESCRIBE on each topic."""
    from penstock.protocol.messages.offset_for_leader_epoch_response import (
        EpochEndOffset,
        OffsetForLeaderTopicResult,
    )

    if asking.rights.on_cluster(Operation.CLUSTER_ACTION):
        return asking.proceed(request)

    def refuse(topic: Any) -> OffsetForLeaderTopicResult:
        return OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=[
                EpochEndOffset(
                    error_code=_REFUSED, partition=partition.partition, leader_epoch=-1, end_offset=-1
                )
                for partition in topic.partitions
            ],
        )

    return _each_topic(request, asking, Operation.DESCRIBE, refuse, name="topic")


def guard_delete_records(request: Any, asking: Asking) -> Any:
    """DELETE on each topic."""
    from penstock.protocol.messages.delete_records_response import (
        DeleteRecordsPartitionResult,
        DeleteRecordsTopicResult,
    )

    def refuse(topic: Any) -> DeleteRecordsTopicResult:
        return DeleteRecordsTopicResult(
            name=topic.name,
            partitions=[
                DeleteRecordsPartitionResult(
                    partition_index=partition.partition_index, low_watermark=-1, error_code=_REFUSED
                )
                for partition in topic.partitions
            ],
        )

    return _each_topic(request, asking, Operation.DELETE, refuse)


def guard_describe_producers(request: Any, asking: Asking) -> Any:
    """READ on each topic."""
    from penstock.protocol.messages.describe_producers_response import PartitionResponse, TopicResponse

    def refuse(topic: Any) -> TopicResponse:
        return TopicResponse(
            name=topic.name,
            partitions=[
                PartitionResponse(partition_index=index, error_code=_REFUSED)
                for index in topic.partition_indexes
            ],
        )

    return _each_topic(request, asking, Operation.READ, refuse)


def guard_init_producer_id(request: Any, asking: Asking) -> Any:
    """WRITE on the transactional id; without one, IDEMPOTENT_WRITE or WRITE on any topic at all (KIP-679)."""
    from penstock.protocol.messages.init_producer_id_response import InitProducerIdResponse

    rights, code = asking.rights, ErrorCode.NONE
    if request.transactional_id is not None:
        needed = [Operation.WRITE]
        if request.enable2_pc:
            needed.append(Operation.TWO_PHASE_COMMIT)
        if not all(rights.on_transactional_id(each, request.transactional_id) for each in needed):
            code = _NO_TRANSACTION
    elif not (
        rights.on_cluster(Operation.IDEMPOTENT_WRITE) or rights.anywhere(Operation.WRITE, ResourceType.TOPIC)
    ):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if code:
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    return asking.proceed(request)
