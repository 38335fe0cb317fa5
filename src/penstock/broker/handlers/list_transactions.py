"""ListTransactions (66): there are none.

v1 filters by duration, v2 by a pattern of ids. State names that Kafka does not know are handed back.
"""

from __future__ import annotations

import re

from penstock.broker.context import Context, Parts
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.list_transactions_request import ListTransactionsRequest
from penstock.protocol.messages.list_transactions_response import ListTransactionsResponse

STATES = frozenset(
    (
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    )
)

PATTERN_CHARACTERS_MAX = 1000
"""Compiling a pattern takes time with its length; the ids that it could match are far shorter."""


def list_transactions(request: ListTransactionsRequest, context: Context[Parts]) -> ListTransactionsResponse:
    """List nothing: this broker offers no transactions."""
    if not _is_pattern(request.transactional_id_pattern):
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = [state for state in dict.fromkeys(request.state_filters) if state not in STATES]
    return ListTransactionsResponse(unknown_state_filters=unknown)


def _is_pattern(pattern: str | None) -> bool:
    if pattern is not None and len(pattern) > PATTERN_CHARACTERS_MAX:
        return False
    try:
        re.compile(pattern or "")
    except (re.error, OverflowError, RecursionError):
        return False
    return True
