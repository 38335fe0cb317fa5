"""Interceptors: one ordered chain around every handler, for metrics, quotas, faults, security and audit.

An interceptor is a function from a `VersionedRoute` to a `VersionedRoute`. It returns the route unchanged
where it has nothing to do, or one with another handler (or codec):

    def refuse_deletion(route):
        def refuse(request, context):
            raise CloseConnection(f"{context.session.principal} may not delete topics")

        return route._replace(handle=refuse) if route.key == ApiKey.DELETE_TOPICS else route

    Broker(interceptors=[refuse_deletion])

The chain is applied once for each API and version, when it is first asked for, and again after the chain has
changed: a request pays for what its route really has, and nothing where the chain is empty. An interceptor
sees each request once. The response may come later, as a `Wait`; `when_answered` calls a function with the
response in both cases.

Bytes on the wire, before a request is decoded and after a response is encoded, are out of reach here: the
one seam for those is `penstock.broker.network.server.Server.set_faults`, which gives connections a part.
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
    """The order of the chain: the first is outermost, and sees what all others make of a request."""

    METRICS = 0
    CUSTOM = 1
    """The `interceptors` of `Broker`, in their order: recording, tracing, audit."""
    FAULTS = 2
    AUTHENTICATION = 3
    QUOTAS = 4
    FORWARDING = 5
    """In a cluster: what the controller decides is judged with all metadata, the rights included."""
    AUTHORIZATION = 6
    RELEASE_PROFILE = 7
    """What a release of Kafka would have answered."""
    REPLICATION = 8
    """In a cluster, what other nodes have a part in."""
    EFFECTS = 9
    """Nearest to the handler: what a checker records of a request is what the broker did, faults or not."""


class InterceptorChain:
    """The interceptors of one broker. `changed` is called after each change."""

    def __init__(self, changed: Callable[[], object]) -> None:
        self._changed = changed
        self._stages: dict[Stage, tuple[Interceptor, ...]] = {}

    def set(self, stage: Stage, *interceptors: Interceptor) -> None:
        """Replace the interceptors of one stage; none removes them."""
        if interceptors:
            self._stages[stage] = interceptors
        elif self._stages.pop(stage, None) is None:
            return
        self._changed()

    def ordered(self) -> list[Interceptor]:
        """Return all interceptors, the outermost first."""
        return [each for stage in sorted(self._stages) for each in self._stages[stage]]
