"""UnregisterBroker (64): remove a permanently stopped broker from the metadata (KIP-500)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.unregister_broker_response import UnregisterBrokerResponse

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.protocol.messages.unregister_broker_request import UnregisterBrokerRequest


def unregister_broker(
    request: UnregisterBrokerRequest, context: Context[ServingNode]
) -> UnregisterBrokerResponse:
    """Remove a broker from the metadata, if it is registered and may be removed."""
    response = UnregisterBrokerResponse(error_message=None)
    try:
        context.node.view.unregister(request.broker_id, context.now_ms)
    except KafkaError as error:
        response.error_code, response.error_message = error.code, error.detail
    except StorageError as error:
        response.error_code, response.error_message = ErrorCode.REQUEST_TIMED_OUT, str(error)
    return response
