"""ListTransactions (66): the transactional ids that this broker coordinates.

v1 adds a filter for the duration, v2 a pattern for ids. The response lists the states in the filter that do
not exist; they match no transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.requests.patterns import PatternError, compile_pattern
from penstock.broker.transactions.queries import STATE_NAMES, listed
from penstock.common.logs import logger_named
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.list_transactions_request import ListTransactionsRequest
from penstock.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

ENTRY_BYTES = 30
"""The approximate size in bytes of an entry in a response, without its transactional id."""


def list_transactions(
    request: ListTransactionsRequest, context: Context[ServingNode]
) -> ListTransactionsResponse:
    """List the transactional ids that pass all filters.

    A pattern that is malformed, or that takes too long to match, gets INVALID_REGULAR_EXPRESSION (128) and no
    ids.
    """
    try:
        return _listed(request, context)
    except PatternError as error:
        logger.debug("ListTransactions: %s", error)
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)


def _listed(request: ListTransactionsRequest, context: Context[ServingNode]) -> ListTransactionsResponse:
    """Return the response with the transactional ids that match all filters.

    Raises:
        PatternError: the pattern is malformed, or takes too long to match.
    """
    is_wanted: Callable[[str], bool] | None = None
    if request.transactional_id_pattern:
        is_wanted = compile_pattern(request.transactional_id_pattern)
    service = context.node.transactions
    coordinator = service.open()
    if coordinator.registry.loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    unknown = [state for state in dict.fromkeys(request.state_filters) if state not in STATE_NAMES]
    context.begin_claims()
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    for transaction in listed(
        coordinator,
        service.now,
        request.state_filters,
        request.producer_id_filters,
        request.duration_filter,
        is_wanted,
    ):
        context.claim(ENTRY_BYTES + len(transaction.id))
        response.transaction_states.append(
            TransactionState(
                transactional_id=transaction.id,
                producer_id=transaction.image.producer_id,
                transaction_state=transaction.state.value,
            )
        )
    return response
