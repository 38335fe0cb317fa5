"""`Context`: what a handler gets besides the request message: broker, session, header, time and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from penstock.errors import PenstockError
from penstock.protocol.framing import RequestHeader

if TYPE_CHECKING:
    from penstock.broker.quota_entities import PartitionsCharge
    from penstock.broker.session import Session
    from penstock.records.compression.codecs import UnpackBudget

NO_HEADER = RequestHeader(-1, -1, 0)
"""The header of a context before its first request."""


class CloseConnection(PenstockError):
    """Raised by handlers to close the connection instead of responding, if no error code fits.

    `reply`, a framed response, is sent before the connection closes, unless it is empty.
    """

    def __init__(self, message: str, reply: bytes = b"") -> None:
        super().__init__(message)
        self.reply = reply


class Parts(Protocol):
    """The broker attributes that `Context` itself uses; `handlers.serving_node` declares all others."""

    response_bytes_max: int


P = TypeVar("P", bound=Parts, covariant=True)


class Context(Generic[P]):
    """One request in progress. A connection has one context and updates it for each request.

    `node` is the broker; handlers see it as a `ServingNode`.

    `now_ms` is wall-clock time in milliseconds, for records. `now` and `arrived` are seconds of the monotonic
    clock: the time of this call, and the time at which the request arrived, from which deadlines count.
    """

    __slots__ = (
        "arrived",
        "header",
        "inline",
        "mutations",
        "node",
        "now",
        "now_ms",
        "response_bytes_left",
        "session",
        "throttle_ms",
        "version",
    )

    def __init__(self, node: P, session: Session) -> None:
        self.node = node
        self.session = session
        self.header = NO_HEADER
        self.version = 0
        """The API version with which the request is decoded. A release profile may have replaced the
        version in the header.
        """
        self.response_bytes_left = 0
        """The number of bytes by which the response may still grow, if its handler calls `claim`."""
        self.throttle_ms = 0
        """The time in ms for which the broker reads no request of the connection after the response,
        since the client is over quota.
        """
        self.mutations: PartitionsCharge | None = None
        """Counts the partitions that this request creates or deletes; None if its client has no quota."""
        self.now_ms = 0
        self.now = self.arrived = 0.0
        self.inline: tuple[float, UnpackBudget] | None = None
        """The (arrival time, budget) of decompression on the event loop. This connection's requests
        that arrive together share the budget (see `side_thread`). None before the first use.
        """

    def at(self, node: Any) -> Context[Any]:
        """Return a context of this request for `node`, another broker of the cluster that handles it."""
        there: Context[Any] = Context(node, self.session)
        there.header, there.version = self.header, self.version
        there.now_ms, there.now, there.arrived = self.now_ms, self.now, self.arrived
        return there

    def begin_claims(self) -> None:
        """Limit the response of this request to `penstock.response.bytes.max`, as counted by `claim`.

        Handlers whose responses can be much larger than their requests call this, so that a response beyond
        the limit is never built. The size of encoded responses is checked in any case.
        """
        self.response_bytes_left = self.node.response_bytes_max

    def claim(self, size: int) -> None:
        """Count about `size` bytes that are added to the response under construction.

        Raises:
            CloseConnection: the response exceeds `penstock.response.bytes.max`.
        """
        self.response_bytes_left -= size
        if self.response_bytes_left < 0:
            raise response_too_large(self.node.response_bytes_max)


def response_too_large(limit_bytes: int) -> CloseConnection:
    """Return the error for a response that exceeds `penstock.response.bytes.max`."""
    return CloseConnection(
        f"an answer of more than {limit_bytes} bytes, which penstock.response.bytes.max forbids;"
        " ask for less at a time"
    )
