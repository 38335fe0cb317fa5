"""EndTxn (26): commit or abort a transaction.

v2 adds PRODUCER_FENCED; v3 is flexible; v5 follows KIP-890: each end raises the producer epoch, and the
response has the producer id and epoch for the next transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import CloseConnection, Context
from penstock.broker.transactions.answers import answer_of_coordinator
from penstock.protocol.api import ApiKey
from penstock.protocol.messages.end_txn_request import EndTxnRequest
from penstock.protocol.messages.end_txn_response import EndTxnResponse
from penstock.protocol.since import END_TXN_RAISES_EPOCH_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def end_txn(request: EndTxnRequest, context: Context[ServingNode]) -> EndTxnResponse:
    """Commit or abort a transaction, and answer when the coordinator has stored this decision.

    Raises:
        CloseConnection: the request may be a delayed one for an earlier transaction, and would end the
        present one.
    """
    outcome = context.node.transactions.end(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        raises_epoch=context.version >= END_TXN_RAISES_EPOCH_SINCE,
        connection=context.session.connection_id,
    )
    if outcome.closes_connection:
        raise CloseConnection(
            f"EndTxn for {request.transactional_id!r} on a connection that is older than that of its "
            "partitions: it may belong to the transaction before"
        )
    error = answer_of_coordinator(outcome.error, ApiKey.END_TXN, context.version)
    response = EndTxnResponse(error_code=error)
    if context.version >= END_TXN_RAISES_EPOCH_SINCE:
        response.producer_id, response.producer_epoch = outcome.producer_id, outcome.epoch
    return response
