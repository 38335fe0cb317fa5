"""Interceptors: one ordered chain around every handler, for metrics, quotas, faults, security and audit.

An interceptor is a function from a `VersionedRoute` (one API version with its handler and codec) to a
`VersionedRoute`. It returns the route unchanged, or a route with another handler (or codec):

    def refuse_deletion(route):
        def refuse(request, context):
            raise CloseConnection(f"{context.session.principal} may not delete topics")

        return route._replace(handle=refuse) if route.key == ApiKey.DELETE_TOPICS else route

    Broker(interceptors=[refuse_deletion])

The chain is applied once for each API and version, at its first request, and again after the chain has
changed: a request pays only for the interceptors that changed its route. An interceptor gets each request
once. The response may come later, if the handler returns a `Wait`; `when_answered` calls a function with the
response in both cases.

Interceptors do not get the encoded bytes of requests and responses.
`penstock.broker.network.server.Server.set_faults` gives each connection an object that does.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from penstock.broker.requests.routes import when_answered

if TYPE_CHECKING:
    from penstock.broker.requests.routes import Interceptor

__all__ = ["InterceptorChain", "Stage", "when_answered"]


class Stage(IntEnum):
    """An interceptor's position in the chain: the first stage is outermost and sees the final response."""

    METRICS = 0
    CUSTOM = 1
    """The `interceptors` that `Broker` was given, in their order, such as recording, tracing or audit."""
    FAULTS = 2
    AUTHENTICATION = 3
    QUOTAS = 4
    FORWARDING = 5
    """In a cluster: applies the newest metadata, ACLs included, before a request for the controller is
    authorized.
    """
    AUTHORIZATION = 6
    RELEASE_PROFILE = 7
    """Changes responses to those of the Kafka release that the broker behaves like."""
    REPLICATION = 8
    """In a cluster: serves followers' fetches, and delays responses until records are replicated."""
    EFFECTS = 9
    """The innermost stage: observers, which get the handler's responses before faults change them."""


class InterceptorChain:
    """The interceptors of one broker. `changed` is called after each change."""

    def __init__(self, changed: Callable[[], object]) -> None:
        self._changed = changed
        self._stages: dict[Stage, tuple[Interceptor, ...]] = {}

    def set(self, stage: Stage, *interceptors: Interceptor) -> None:
        """Replace the interceptors of one stage; without `interceptors`, remove them."""
        if interceptors:
            self._stages[stage] = interceptors
        elif self._stages.pop(stage, None) is None:
            return
        self._changed()

    def ordered(self) -> list[Interceptor]:
        """Return all interceptors, the outermost first."""
        return [each for stage in sorted(self._stages) for each in self._stages[stage]]
