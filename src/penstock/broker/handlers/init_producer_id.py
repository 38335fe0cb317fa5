"""InitProducerId (22): an id and epoch for an idempotent or transactional producer.

v2 is flexible; v3 lets a producer send its id and epoch to get the next epoch (KIP-360); v4 adds
PRODUCER_FENCED; v5 adds TRANSACTION_ABORTABLE.

After a start, requests wait until the producer ids in the broker's partitions are known (`producer_ids`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.requests.purgatory import Wait
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.init_producer_id_response import InitProducerIdResponse

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

NOT_GIVEN = -1
"""The value -1 of producer id and epoch in the request of a producer that has no id yet."""

SEARCH_PATIENCE_S = 30.0
"""The seconds for which a request waits for the search for producer ids in all partitions.

After that, the request gets a retriable error.
"""


def init_producer_id(
    request: InitProducerIdRequest, context: Context[ServingNode]
) -> InitProducerIdResponse | Wait:
    """Return a producer id and epoch: without a transactional id, always a new id with epoch 0."""
    if (request.producer_id == NOT_GIVEN) != (request.producer_epoch == NOT_GIVEN):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    ids = context.node.producer_ids
    if not ids.is_known and context.node.call_soon is not None:
        ids.search(context.node)
        return Wait((ids,), context.arrived + SEARCH_PATIENCE_S, answer=lambda: _answer(request, context))
    return _answer(request, context)


def _answer(request: InitProducerIdRequest, context: Context[ServingNode]) -> InitProducerIdResponse:
    if request.transactional_id is None:
        return _give(context)
    if not context.node.producer_ids.is_known and context.node.call_soon is not None:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1)
    return _initialize(request, request.transactional_id, context)


def _initialize(
    request: InitProducerIdRequest, transactional_id: str, context: Context[ServingNode]
) -> InitProducerIdResponse:
    # Most producers have no transactions, and most brokers start without what decides about them.
    from penstock.broker.transactions.answers import answer_of_coordinator
    from penstock.broker.transactions.initialization import Initialization

    service = context.node.transactions
    try:
        service.create_topic(context.now_ms)
    except StorageError as error:
        logger.error("%s", error)
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_epoch=-1)
    outcome = service.initialize(
        Initialization(
            transactional_id,
            request.transaction_timeout_ms,
            request.producer_id,
            request.producer_epoch,
            request.enable2_pc,
            request.keep_prepared_txn,
        )
    )
    error_code = answer_of_coordinator(outcome.error, ApiKey.INIT_PRODUCER_ID, context.version)
    return InitProducerIdResponse(
        error_code=error_code, producer_id=outcome.producer_id, producer_epoch=outcome.epoch
    )


def _give(context: Context[ServingNode]) -> InitProducerIdResponse:
    ids = context.node.producer_ids
    if not ids.is_known and context.node.call_soon is not None:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1)
    try:
        producer_id = ids.new_id(context.node.clock.now_ms())
    except StorageError as error:
        logger.error("%s", error)
        # The code Kafka's clients retry here; they do not expect 56 in this answer.
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
