"""Requests that Kafka's brokers forward to the controller. The node handles them, with current metadata.

The interceptor runs before authorization, so that permissions are checked against the controller's metadata,
as in Apache Kafka. A node that cannot reach the controller answers REQUEST_TIMED_OUT (7) at once, because its
own decision could not be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.handlers import OFFERED
from penstock.broker.requests.routes import when_answered
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.message import Struct

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.requests.routes import VersionedRoute

FORWARDED = frozenset(key for key, offer in OFFERED.items() if offer.forwarded)
"""The APIs whose requests Apache Kafka forwards to the controller, as `OFFERED` declares them."""


class Reaching(Protocol):
    """The interface of a node's connection with the controller."""

    @property
    def is_reachable(self) -> bool:
        """True if the controller can be reached now."""

    def catch_up(self) -> None:
        """Let the node apply all metadata records that have been written so far."""


class Forwarding:
    """The interceptor of one node for requests that the controller decides."""

    def __init__(self, authority: Reaching) -> None:
        self._authority = authority

    def intercept(self, route: VersionedRoute) -> VersionedRoute:
        """Wrap the route of a forwarded API: the node applies all metadata before the handler runs."""
        if route.key not in FORWARDED:
            return route
        inner, authority = route.handle, self._authority

        def handle(request: Any, context: Context[Any]) -> Any:
            if authority.is_reachable:
                authority.catch_up()
                return inner(request, context)
            # The handler gives the answer its shape; nothing that it decides can be written or counted.
            context.mutations = None
            return when_answered(inner(request, context), _timed_out)

        return route._replace(handle=handle)


def _timed_out(response: Any) -> Any:
    """Set REQUEST_TIMED_OUT (7) in all parts of a response, because the controller was not reached."""
    if isinstance(response, Struct):
        for name in response.__slots__:
            value = getattr(response, name)
            if name == "error_code":
                response.error_code = ErrorCode.REQUEST_TIMED_OUT  # type: ignore[attr-defined]
            elif name == "error_message":
                response.error_message = "The controller cannot be reached."  # type: ignore[attr-defined]
            elif type(value) is list:
                for each in value:
                    _timed_out(each)
    return response
