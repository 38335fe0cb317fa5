"""InitProducerId (22): an id for an idempotent producer.

v3 lets a producer hand in its id and epoch to get the next epoch (KIP-360). Transactions are not offered:
a transactional id is refused with UNSUPPORTED_VERSION, which no client retries.

The first request after a start waits until it is known which ids the partitions hold (`producer_ids`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
from penstock.broker.metadata.producer_ids import SearchesProducerIds
from penstock.broker.requests.purgatory import Wait
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.init_producer_id_response import InitProducerIdResponse

if TYPE_CHECKING:
    from penstock.broker.metadata.producer_ids import ProducerIds
    from penstock.clock import Clock

logger = logger_named("penstock.broker")

SEARCH_PATIENCE_S = 30.0
"""How long a request waits for what partitions know of producer ids, before it is told to come again."""


class Needs(Parts, SearchesProducerIds, Protocol):
    """The parts of a broker that this API works on."""

    clock: Clock
    producer_ids: ProducerIds


def init_producer_id(
    request: InitProducerIdRequest, context: Context[Needs]
) -> InitProducerIdResponse | Wait:
    """Give a new producer id with epoch 0. Without a transactional id there is no epoch to go on from."""
    if request.transactional_id is not None:
        empty = request.transactional_id == ""
        code = ErrorCode.INVALID_REQUEST if empty else ErrorCode.UNSUPPORTED_VERSION
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    ids = context.node.producer_ids
    if not ids.is_known and context.node.call_soon is not None:
        ids.search(context.node)
        return Wait((ids,), context.arrived + SEARCH_PATIENCE_S, answer=lambda: _give(context))
    return _give(context)


def _give(context: Context[Needs]) -> InitProducerIdResponse:
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
