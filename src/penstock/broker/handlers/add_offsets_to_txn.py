"""AddOffsetsToTxn (25): make the committed offsets of a group part of a transaction.

v2 adds PRODUCER_FENCED; v3 is flexible; v4 adds TRANSACTION_ABORTABLE. Producers that follow KIP-890 do not
need this request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.broker.transactions.answers import answer_of_coordinator
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")


def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, context: Context[ServingNode]
) -> AddOffsetsToTxnResponse:
    """Add the partition of `__consumer_offsets` that stores the group's offsets to the transaction."""
    groups = context.node.groups
    try:
        groups.create_topic(context.now_ms)
    except StorageError as error:
        logger.error("%s", error)
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    found = context.node.transactions.add_partitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [(OFFSETS_TOPIC, groups.topic.partition_of(request.group_id))],
        connection=context.session.connection_id,
    )
    code = answer_of_coordinator(found, ApiKey.ADD_OFFSETS_TO_TXN, context.version)
    return AddOffsetsToTxnResponse(error_code=code)
