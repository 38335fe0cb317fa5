"""Produce (0), versions 0-13: append records to partitions.

v0-v2 carry message sets, or whatever the magic byte says; v3 and later exactly one batch of magic 2 for
each partition. v1 throttle time, v2 log-append time, v3 transactional id, v5 log start offset, v7 zstd,
v8 error messages, v10 leader hint, v13 topics by id.

acks=0 has no answer, and an error closes the connection; acks of -1 and 1 are the same with one replica.
Error 56 (storage) is new in v4; older clients get 6 and refresh their metadata.
"""

from __future__ import annotations

import logging

from penstock.broker.admission import RejectedRecords
from penstock.broker.cluster import Topic
from penstock.broker.dispatch import CloseConnection, Context, handler
from penstock.errors import KafkaError, StorageError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

logger = logging.getLogger("penstock.broker")

TOPIC_IDS_SINCE = 13
ALL_REPLICAS = -1

_NO_LEADER_HINT = LeaderIdAndEpoch()
_NO_RECORDS: list[BatchIndexAndErrorMessage] = []


@handler(ApiKey.PRODUCE, 0, 13)
def produce(request: ProduceRequest, context: Context) -> ProduceResponse | None:
    """Append what every partition is sent; each has its own outcome."""
    responses = [_append_to_topic(topic, request.acks, context) for topic in request.topic_data]
    if request.acks == 0:
        _hang_up_on_failure(responses)
        return None
    return ProduceResponse(responses=responses)


def _append_to_topic(data: TopicProduceData, acks: int, context: Context) -> TopicProduceResponse:
    topic: Topic | None = None
    failure: KafkaError | None = None
    try:
        topic = _find_topic(data, acks, context)
    except KafkaError as error:
        failure = error
    partitions = []
    for partition in data.partition_data:
        try:
            if topic is None:
                assert failure is not None
                raise failure
            partitions.append(_append(topic, partition, acks, context))
        except KafkaError as error:
            partitions.append(_refuse(partition.index, error))
        except StorageError as error:
            partitions.append(_report_storage(partition.index, error, context))
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=partitions)


def _find_topic(data: TopicProduceData, acks: int, context: Context) -> Topic:
    if not -1 <= acks <= 1:
        raise error_for(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {acks}")
    cluster = context.node.cluster
    if context.version >= TOPIC_IDS_SINCE:
        return cluster.topic_by_id(data.topic_id)
    return cluster.topic(data.name)


def _append(
    topic: Topic, data: PartitionProduceData, acks: int, context: Context
) -> PartitionProduceResponse:
    partition = topic.partition(data.index)
    if acks == ALL_REPLICAS and topic.config.min_insync_replicas > 1:
        raise error_for(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"min.insync.replicas is {topic.config.min_insync_replicas}, there is 1 replica",
        )
    records = data.records
    base_offset, log_append_time_ms = partition.append(records, context.version, context.now_ms)
    if records is not None:
        context.node.parking.notify(partition, len(records))
    return PartitionProduceResponse(
        index=data.index,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=partition.log.start_offset,
        record_errors=_NO_RECORDS,
        current_leader=_NO_LEADER_HINT,
    )


def _refuse(index: int, error: KafkaError) -> PartitionProduceResponse:
    response = PartitionProduceResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=str(error)
    )
    if isinstance(error, RejectedRecords):
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=record, batch_index_error_message=reason)
            for record, reason in error.records
        ]
    return response


def _report_storage(index: int, error: StorageError, context: Context) -> PartitionProduceResponse:
    logger.error("%s", error)
    code = ErrorCode.KAFKA_STORAGE_ERROR if context.version >= 4 else ErrorCode.NOT_LEADER_OR_FOLLOWER
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=str(error))


def _hang_up_on_failure(responses: list[TopicProduceResponse]) -> None:
    """With acks=0 there is no answer; closing the connection is how the producer learns."""
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(
                    f"Produce with acks=0 to {topic.name}-{partition.index} failed: {partition.error_message}"
                )
