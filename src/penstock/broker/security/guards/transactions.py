"""Guards of the APIs of transactional producers and their coordinators."""

from __future__ import annotations

from typing import Any

from penstock.broker.security.guards.guard import Asking, extended, split, with_fields
from penstock.protocol.error_codes import ErrorCode
from penstock.security.acls import Operation

_NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
_NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

OF_BROKERS_SINCE = 4
"""The version of AddPartitionsToTxn from which on only brokers send it."""


def guard_add_partitions_to_txn(request: Any, asking: Asking) -> Any:
    """WRITE on the transactional id and on each topic; CLUSTER_ACTION for the versions of brokers.

    One topic that is refused keeps all others from being added.
    """
    from penstock.protocol.messages.add_partitions_to_txn_response import (
        AddPartitionsToTxnPartitionResult,
        AddPartitionsToTxnResponse,
        AddPartitionsToTxnTopicResult,
    )

    rights = asking.rights
    if asking.context.version >= OF_BROKERS_SINCE:
        if rights.on_cluster(Operation.CLUSTER_ACTION):
            return asking.proceed(request)
        return AddPartitionsToTxnResponse(error_code=_NO_CLUSTER)
    topics = request.v3_and_below_topics
    may_write = rights.on_transactional_id(Operation.WRITE, request.v3_and_below_transactional_id)
    allowed, refused = split(topics, lambda topic: rights.on_topic(Operation.WRITE, topic.name))
    if may_write and not refused:
        return asking.proceed(request)
    others = ErrorCode.OPERATION_NOT_ATTEMPTED if may_write else _NO_TRANSACTION
    codes = {topic.name: others for topic in allowed}
    codes.update((topic.name, _NO_TOPIC if may_write else _NO_TRANSACTION) for topic in refused)
    known = asking.context.node.cluster.topics

    def code_of(name: str, index: int) -> int:
        is_known = name in known and 0 <= index < len(known[name].partitions)
        is_missing = codes[name] == ErrorCode.OPERATION_NOT_ATTEMPTED and not is_known
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_missing else codes[name]

    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code_of(topic.name, index)
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def guard_add_offsets_to_txn(request: Any, asking: Asking) -> Any:
    """WRITE on the transactional id, READ on the group."""
    from penstock.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse

    if not asking.rights.on_transactional_id(Operation.WRITE, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=_NO_TRANSACTION)
    if not asking.rights.on_group(Operation.READ, request.group_id):
        return AddOffsetsToTxnResponse(error_code=_NO_GROUP)
    return asking.proceed(request)


def guard_end_txn(request: Any, asking: Asking) -> Any:
    """WRITE on the transactional id."""
    from penstock.protocol.messages.end_txn_response import EndTxnResponse

    if asking.rights.on_transactional_id(Operation.WRITE, request.transactional_id):
        return asking.proceed(request)
    return EndTxnResponse(error_code=_NO_TRANSACTION)


def guard_write_txn_markers(request: Any, asking: Asking) -> Any:
    """CLUSTER_ACTION or ALTER on the cluster."""
    from penstock.protocol.messages.write_txn_markers_response import (
        WritableTxnMarkerPartitionResult,
        WritableTxnMarkerResult,
        WritableTxnMarkerTopicResult,
        WriteTxnMarkersResponse,
    )

    if any(asking.rights.on_cluster(each) for each in (Operation.CLUSTER_ACTION, Operation.ALTER)):
        return asking.proceed(request)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=_NO_CLUSTER)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def guard_txn_offset_commit(request: Any, asking: Asking) -> Any:
    """WRITE on the transactional id, READ on the group and on each topic."""
    from penstock.protocol.messages.txn_offset_commit_response import (
        TxnOffsetCommitResponse,
        TxnOffsetCommitResponsePartition,
        TxnOffsetCommitResponseTopic,
    )

    def refuse(topic: Any, code: int) -> TxnOffsetCommitResponseTopic:
        return TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        )

    rights = asking.rights
    if not rights.on_transactional_id(Operation.WRITE, request.transactional_id):
        return TxnOffsetCommitResponse(topics=[refuse(topic, _NO_TRANSACTION) for topic in request.topics])
    if not rights.on_group(Operation.READ, request.group_id):
        return TxnOffsetCommitResponse(topics=[refuse(topic, _NO_GROUP) for topic in request.topics])
    allowed, refused = split(request.topics, lambda topic: rights.on_topic(Operation.READ, topic.name))
    if not refused:
        return asking.proceed(request)
    more = [refuse(topic, _NO_TOPIC) for topic in refused]
    return asking.then(with_fields(request, topics=allowed), extended("topics", more))
