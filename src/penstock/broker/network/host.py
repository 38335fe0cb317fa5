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
    from penstock.broker.security.session import Session


class Hosted(Protocol):
    """A connection as its server uses it: the connection may hold memory, and can be closed."""

    peer: str
    """IP address of the client."""

    session: Session
    """Who is at its other end."""

    listener: Listener | None
    """The listener that has accepted it."""

    active_at: float
    """When bytes have last moved, in seconds of the monotonic clock."""

    @property
    def holds_buffer(self) -> bool:
        """Whether a frame is arriving in a buffer from the pool."""

    @property
    def is_parked(self) -> bool:
        """Whether a request of this connection waits in the purgatory."""

    @property
    def owes_answer(self) -> bool:
        """Whether an answer is being sent that has not left this process completely."""

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that are in the transport's buffer."""

    def close(self, reason: str) -> None:
        """Close the connection at once."""

    def drop_frame(self) -> None:
        """Return the memory of the frame that is arriving to the pool."""


class ConnectionHost(Protocol):
    """The server as a connection uses it: node, loop, clock, and the limits that connections share."""

    node: Node
    loop: asyncio.AbstractEventLoop
    monotonic: Callable[[], float]
    now_ms: Callable[[], int]
    scratch: memoryview
    """The buffer that all connections read into first."""
    buffers: FrameBuffers
    answers: KeptAnswers
    frame_bytes_max: int
    is_stopping: bool
    login_limits: LoginLimits
    """Connections whose clients are not known yet."""
    tls_scratch: memoryview
    """The buffer that ciphertext is read into."""
    handshake_turns: HandshakeTurns
    """What shares the loop between TLS handshakes and other work."""

    def next_number(self) -> int:
        """Return the number of a new connection."""

    def admit(self, connection: Hosted) -> bool:
        """Add a new connection; return False if it must be closed."""

    def forget(self, connection: Hosted) -> None:
        """Remove a connection that has ended."""

    def make_room(self, size: int, asking: Hosted) -> bool:
        """Close idle connections until `size` bytes can be lent; return False if `asking` was closed."""

    def hold(self, size: int) -> bool:
        """Count the memory of a waiting request; return False if the limit would be exceeded."""

    def let_go(self, size: int) -> None:
        """Stop counting `size` bytes that `hold` counted."""

    def park(self, wait: Wait, resume: Callable[[], None]) -> DelayedOperation:
        """Park a request in the purgatory; `resume` is called at its event or at its deadline."""

    def run_due(self) -> None:
        """Run the requests and timers that have become due."""
