"""AddPartitionsToTxn (24): add partitions to a transaction, or verify that they are part of it.

v0-v3 are for clients and name one transaction; v2 adds PRODUCER_FENCED, v3 is flexible. v4 and v5 are for
brokers and name several transactions; for each, a request may ask only for verification.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.partitions.internal_topics import INTERNAL_TOPICS
from penstock.broker.requests.repetition import merged, once
from penstock.broker.transactions.answers import answer_of_coordinator
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from penstock.protocol.since import ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.metadata.cluster import ClusterState


def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: Context[ServingNode]
) -> AddPartitionsToTxnResponse:
    """Add or verify the partitions of each transaction."""
    if context.version >= ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id, topic_results=_add(each, context)
                )
                for each in once(request.transactions, lambda each: each.transactional_id)
            ]
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_add(transaction, context))


def _add(
    asked: AddPartitionsToTxnTransaction, context: Context[ServingNode]
) -> list[AddPartitionsToTxnTopicResult]:
    """Add all partitions to one transaction; return the results.

    No partition is added if one of them does not exist or clients may not write to it.
    """
    topics: list[AddPartitionsToTxnTopic] = merged(asked.topics, lambda topic: topic.name, "partitions")
    named = [(topic.name, index) for topic in topics for index in topic.partitions]
    refused = {}
    for name, index in named:
        if context.version < ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE and name in INTERNAL_TOPICS:
            refused[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not _exists(name, index, context.node.cluster):
            refused[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if refused:
        return _results(topics, {**dict.fromkeys(named, ErrorCode.OPERATION_NOT_ATTEMPTED), **refused})
    service, who = (
        context.node.transactions,
        (asked.transactional_id, asked.producer_id, asked.producer_epoch),
    )
    if asked.verify_only:
        return _results(topics, service.verify(*who, named))
    profile = context.node.profile
    error = service.add_partitions(
        *who,
        named,
        is_implicit=context.version >= ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE
        and (profile is None or profile.transaction_level > 0),
        connection=context.session.connection_id,
    )
    code = answer_of_coordinator(error, ApiKey.ADD_PARTITIONS_TO_TXN, context.version)
    return _results(topics, dict.fromkeys(named, code))


def _exists(name: str, index: int, cluster: ClusterState) -> bool:
    topic = cluster.topics.get(name)
    return topic is not None and 0 <= index < len(topic.partitions)


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], outcomes: dict[tuple[str, int], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=outcomes[topic.name, index]
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
