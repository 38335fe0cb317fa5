"""`ConnectionHost`: the interface of a server that its connections use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.broker.network.frame_buffers import FrameBuffers
    from penstock.broker.network.handshake_turns import HandshakeTurns
    from penstock.broker.network.kept_answers import KeptAnswers
    from penstock.broker.network.listeners import Listener
    from penstock.broker.node import Node
    from penstock.broker.requests.purgatory import DelayedOperation, Wait
    from penstock.broker.security.login_limits import LoginLimits
    from penstock.broker.session import Session


class Hosted(Protocol):
    """The interface of a connection for its server, which may close the connection to free memory."""

    peer: str
    """IP address of the client."""

    session: Session
    """The state of the connection: the client's identity and addresses."""

    listener: Listener | None
    """The listener that has accepted the connection."""

    active_at: float
    """The time of the last transfer of bytes, in seconds of the monotonic clock."""

    @property
    def holds_buffer(self) -> bool:
        """True if the frame that is arriving is in a buffer from the pool."""

    @property
    def is_parked(self) -> bool:
        """True if a request of this connection waits in the purgatory."""

    @property
    def owes_answer(self) -> bool:
        """True while a part of a response has not been passed to the operating system yet."""

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes in the transport's buffer that have not been sent yet."""

    def close(self, reason: str) -> None:
        """Close the connection at once."""

    def drop_frame(self) -> None:
        """Release the buffer of the partly received frame."""


class ConnectionHost(Protocol):
    """The interface of a server for its connections: node, loop, clock, and the limits that all share."""

    node: Node
    loop: asyncio.AbstractEventLoop
    monotonic: Callable[[], float]
    now_ms: Callable[[], int]
    scratch: memoryview
    """The buffer, shared by all connections, into which each of them first reads from its socket."""
    buffers: FrameBuffers
    answers: KeptAnswers
    frame_bytes_max: int
    is_stopping: bool
    login_limits: LoginLimits
    """The limits of connections that have not authenticated themselves yet."""
    tls_scratch: memoryview
    """The buffer, shared by all TLS connections, into which they read ciphertext."""
    handshake_turns: HandshakeTurns
    """The queue of TLS handshakes, which limits their time in each turn of the event loop."""

    def next_number(self) -> int:
        """Return the number of a new connection."""

    def admit(self, connection: Hosted) -> bool:
        """Add a new connection; return False if it must be closed."""

    def forget(self, connection: Hosted) -> None:
        """Remove a connection that has ended."""

    def make_room(self, size: int, asking: Hosted) -> bool:
        """Close the slowest senders until `size` bytes are free; return False if `asking` was closed."""

    def hold(self, size: int) -> bool:
        """Reserve memory for a waiting request of `size` bytes; return False if the limit is exceeded."""

    def let_go(self, size: int) -> None:
        """Release `size` bytes that `hold` has reserved for a waiting request, which is answered now."""

    def park(self, wait: Wait, resume: Callable[[], None]) -> DelayedOperation:
        """Put a request into the purgatory, which calls `resume` on the awaited event or at the deadline."""

    def run_due(self) -> None:
        """Run the waiting requests and timers that have become due."""
