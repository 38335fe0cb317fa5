"""UnregisterBroker (64): a broker that is gone for good leaves the metadata (KIP-500).

Here for a broker by itself; in a cluster of several `penstock.broker.replication.answers` has the controller
decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.unregister_broker_response import UnregisterBrokerResponse

if TYPE_CHECKING:
    from penstock.protocol.messages.unregister_broker_request import UnregisterBrokerRequest


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    @property
    def node_id(self) -> int: ...


def unregister_broker(request: UnregisterBrokerRequest, context: Context[Needs]) -> UnregisterBrokerResponse:
    """Refuse: there is no other broker, and this one is alive."""
    if request.broker_id == context.node.node_id:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"broker {request.broker_id} is the only one, and cannot be unregistered",
        )
    return UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
        error_message=f"Broker ID {request.broker_id} is not currently registered",
    )
