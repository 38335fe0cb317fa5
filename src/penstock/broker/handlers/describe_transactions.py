"""DescribeTransactions (65), one that does not exist is answered with error 105."""

from __future__ import annotations

from penstock.broker.context import Context, Parts
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from penstock.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)


def describe_transactions(
    request: DescribeTransactionsRequest, context: Context[Parts]
) -> DescribeTransactionsResponse:
    """Say of every id that it is not known; the empty one is none (42)."""
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(
                error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if name else ErrorCode.INVALID_REQUEST,
                transactional_id=name,
            )
            for name in dict.fromkeys(request.transactional_ids)
        ]
    )
