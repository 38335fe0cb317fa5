"""UnregisterController (94): remove a controller that no longer exists from the metadata (Kafka 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.image import metadata_level
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.unregister_controller_response import UnregisterControllerResponse

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.protocol.messages.unregister_controller_request import UnregisterControllerRequest

SUPPORTED_SINCE = 33
"""4.4-IV2: the first level of `metadata.version` with records that unregister a controller."""


def unregister_controller(
    request: UnregisterControllerRequest, context: Context[ServingNode]
) -> UnregisterControllerResponse:
    """Refuse the request: the metadata of a Penstock cluster contain no controller apart from its brokers."""
    node, controller = context.node, request.controller_id
    if controller == node.view.controller_id(node.view.living(context.session)):
        code, message = ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."
    elif metadata_level(node.cluster.features) < SUPPORTED_SINCE:
        code = ErrorCode.UNSUPPORTED_VERSION
        message = "The current MetadataVersion is too old to support controller unregistration."
    else:
        code = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        message = f"Controller ID {controller} is not currently registered."
    return UnregisterControllerResponse(error_code=code, error_message=message)
