"""DescribeTransactions (65): the state of transactions, by transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.transactions.queries import Description, describe
from penstock.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from penstock.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

PARTITION_BYTES = 4
"""The approximate size in bytes of a partition in a response, without the name of its topic."""


def describe_transactions(
    request: DescribeTransactionsRequest, context: Context[ServingNode]
) -> DescribeTransactionsResponse:
    """Return the state of each transactional id.

    An unknown id has TRANSACTIONAL_ID_NOT_FOUND (105), an empty one INVALID_REQUEST (42).
    """
    context.begin_claims()
    coordinator = context.node.transactions.open()
    return DescribeTransactionsResponse(
        transaction_states=[
            _told(name, describe(coordinator, name), context)
            for name in dict.fromkeys(request.transactional_ids)
        ]
    )


def _told(name: str, found: Description, context: Context[ServingNode]) -> TransactionState:
    topics: dict[str, list[int]] = {}
    for topic, index in found.partitions:
        context.claim(PARTITION_BYTES + (0 if topic in topics else len(topic)))
        topics.setdefault(topic, []).append(index)
    return TransactionState(
        error_code=found.error,
        transactional_id=name,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms if not found.error else 0,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )
