"""One connection to one client, for asyncio: requests come in, and responses go out in the same order.

`ServedConnection` drives a sans-I/O `ServerConnection` (`penstock.protocol.connection.server`), which splits
the bytes into frames and puts responses into the order of their requests. `ServedConnection` adds the socket,
long polls, quotas and sending from files.

A connection processes one request at a time, as in Apache Kafka. While that request waits (a long poll) or
its response is being sent, later requests are not processed. A few bytes of later requests are buffered. All
others stay in the socket, so that TCP slows the sender down. This bounds memory, and a client that does not
read its responses delays only its own requests.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from penstock.broker.context import CloseConnection, Context
from penstock.broker.network.descriptions import caller, described, wrong_protocol
from penstock.broker.network.large_answer import INLINE_BYTES_MAX, LargeAnswer
from penstock.broker.requests.dispatch import Unanswered, answer
from penstock.broker.requests.purgatory import DelayedOperation
from penstock.broker.session import Session
from penstock.common.listening.addresses import canonical_address
from penstock.common.operating_system import HAS_SENDFILE
from penstock.log.contract import FileRegion
from penstock.protocol.connection.server import ServerConnection
from penstock.protocol.framing import FrameSizeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.network.host import ConnectionHost
    from penstock.broker.network.listeners import Listener
    from penstock.broker.node import Node
    from penstock.broker.requests.routes import Piece
    from penstock.broker.security.listener_security import ListenerSecurity

TURN_SECONDS = 0.005
"""The time in seconds for which pipelined requests of one connection may occupy the event loop before
other connections are served.
"""

Outcome: TypeAlias = "list[Piece] | Unanswered | None"
"""The outcome of a request: the pieces of its response, a wait for the response, or None (no response)."""


class FrameFaults(Protocol):
    """Injects faults into one connection, which calls this object's `handle` and `deliver`."""

    def handle(self, frame: memoryview) -> None:
        """Handle a request frame that has arrived. The frame's memory may be reused after this call."""

    def deliver(self, outcome: Outcome) -> None:
        """Deliver the outcome of a request: a response, a wait, or no response."""

    def go_on(self) -> None:
        """Process the request frames that a fault held back, before the connection takes later ones."""

    def end(self) -> None:
        """Drop delayed requests and responses, because the connection has ended."""


class ServedConnection(asyncio.BufferedProtocol):
    """The asyncio protocol object of one client connection, which handles requests and sends responses."""

    __slots__ = (
        "_blocked",
        "_context",
        "_parked",
        "_respond",
        "_resting",
        "_sending",
        "_server",
        "_transport",
        "_unanswered",
        "_wire",
        "active_at",
        "busy",
        "faults",
        "is_closing",
        "listener",
        "number",
        "peer",
        "security",
        "session",
    )

    _transport: asyncio.Transport
    _context: Context[Node]
    session: Session

    def __init__(self, server: ConnectionHost) -> None:
        self._server = server
        self._wire = ServerConnection(server.scratch, self, server.frame_bytes_max)
        self._blocked = False
        self.busy = False
        """True while the connection starts no further request: one is in progress, or a quota or a
        fault delays the next.
        """
        self.is_closing = False
        self._unanswered: Unanswered | None = None
        self._parked: DelayedOperation | None = None
        self._sending: LargeAnswer | None = None
        self._resting: asyncio.TimerHandle | None = None
        self.active_at = 0.0
        self.peer = "?"
        self.number = server.next_number()
        self.faults: FrameFaults | None = None
        """The object that injects a test's faults into requests and responses; None without faults."""
        self.listener: Listener | None = None
        """The listener that has accepted the connection; None if the broker has one listener, without
        security.
        """
        self.security: ListenerSecurity | None = None
        """The security of the connection's listener; None for PLAINTEXT."""
        self._respond: Callable[[memoryview, Context[Node]], Outcome] = answer

    # --- what the transport calls ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        try:
            self._begin()
        except Exception:
            self.fail("a connection that has just been made")

    def _begin(self) -> None:
        transport = self._transport
        self.active_at = self._server.monotonic()
        local = transport.get_extra_info("sockname") or ("127.0.0.1", 0)
        peer = transport.get_extra_info("peername")
        if peer:
            self.peer = canonical_address(peer[0])
        port = peer[1] if peer else 0
        self.session = Session(
            self.number, self.peer, (canonical_address(local[0]), local[1]), client_port=port
        )
        listener = self.listener
        if listener is not None:
            self.session.listener_name = listener.name
            self.session.security_protocol = listener.protocol
            if listener.advertised is not None:
                self.session.advertised_address = listener.advertised
        self._context = Context(self._server.node, self.session)
        if not self._server.admit(self):
            self.is_closing = True
            self._transport.abort()
        elif self.security is not None:
            self._begin_login(self.security)

    def _begin_login(self, security: ListenerSecurity) -> None:
        """Apply the limits of unauthenticated connections: the frame size, and the time for logging in."""
        self._server.login_limits.enter(self, self.active_at)
        if security.listener.has_sasl:
            from penstock.broker.security.gate import SaslGate

            self._wire.limit_frames(min(self._server.frame_bytes_max, security.frame_bytes_max))
            gate = SaslGate(security, self.session, self._context, self.authenticated)
            self._respond = gate.respond
            self.session.keep(gate)

    def authenticated(self) -> None:
        """Lift the limits of unauthenticated connections: the client has authenticated itself."""
        self._server.login_limits.leave(self)
        self._wire.limit_frames(self._server.frame_bytes_max)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._wire.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self.is_closing:
            return
        server, context, wire = self._server, self._context, self._wire
        try:
            # Inlined `note_time`, for speed.
            self.active_at = context.now = context.arrived = server.monotonic()
            context.now_ms = server.now_ms()
            frame = None if self.busy or self._blocked else wire.only_request(nbytes)
            if frame is None:
                wire.received(nbytes)
                self._take_requests()
            elif self.faults is None:
                self.handle(frame)
            else:
                self.faults.handle(frame)
            if wire.queued_bytes:
                self.flush()
        except Exception:
            self.fail("bytes that have arrived")
        if server.node.purgatory.has_due:
            server.run_due()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        if self._sending is not None:
            self._sending.go_on()
        elif not self.busy:
            self._continue()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closing = True
        caught = self._server.node.failures.caught
        for end in (
            self._cancel_parked,
            self._forget_unanswered,
            self._cancel_timers,
            self.drop_frame,
            self._release_resources,
            self._leave_login,
        ):
            try:
                end()
            except Exception:
                caught("connection", f"ending the connection from {self.peer}")
        self._server.forget(self)

    def _cancel_parked(self) -> None:
        if self._parked is not None:
            self._server.node.purgatory.cancel(self._parked)

    def _release_resources(self) -> None:
        if hasattr(self, "session"):
            self.session.release()

    def _leave_login(self) -> None:
        if self.security is not None:
            self._server.login_limits.leave(self)

    def _cancel_timers(self) -> None:
        self._stop_sending()
        if self.faults is not None:
            self.faults.end()
        if self._sending is not None:
            # A task that has not begun yet never comes to its end either.
            self._server.answers.drop(self)
        if self._resting is not None:
            self._resting.cancel()

    def note_time(self) -> None:
        """Read the clocks once per event-loop turn, for all requests that arrive or are resumed in it."""
        context = self._context
        self.active_at = context.now = context.arrived = self._server.monotonic()
        context.now_ms = self._server.now_ms()

    # --- frames ------------------------------------------------------------------------------------------

    def _take_requests(self) -> None:
        """Handle the completely received requests, until one has to wait or `TURN_SECONDS` are over."""
        wire, monotonic = self._wire, self._server.monotonic
        handle = self.handle if self.faults is None else self.faults.handle
        until = self.active_at + TURN_SECONDS
        try:
            while (frame := wire.next_request(self.busy or self._blocked)) is not None:
                handle(frame)
                if wire.rest is not None:
                    if wire.queued_bytes >= INLINE_BYTES_MAX:
                        self.flush()
                    if monotonic() > until and not self.busy:
                        self._pause_for_others()
        except FrameSizeError as error:
            self._close(f"{error}{wrong_protocol(error.beginning)}")
            return
        if (self.busy or self._blocked) and wire.is_full:
            self._transport.pause_reading()

    def _pause_for_others(self) -> None:
        """Yield the event loop to other connections, between two requests that have arrived together."""
        self.busy = True
        self._server.loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self.busy = False
        self._continue()

    def lend(self, size: int) -> bytearray | None:
        """Return a buffer for an arriving frame, or None if this closed the connection to save memory.

        Connections are closed if the buffers of all arriving requests take too much memory.
        """
        server = self._server
        return server.buffers.borrow(size) if server.make_room(size, self) else None

    def give_back(self, buffer: bytearray) -> None:
        """Put a buffer from `lend` back into the pool."""
        self._server.buffers.give_back(buffer)

    def drop_frame(self) -> None:
        """Release the buffer of the partly received frame. The connection cannot read requests any more."""
        self._wire.end()

    @property
    def holds_buffer(self) -> bool:
        """True if the frame that is arriving is in a buffer from the pool."""
        return self._wire.holds_buffer

    # --- requests ----------------------------------------------------------------------------------------

    def handle(self, frame: memoryview) -> None:
        """Handle one request frame and deliver its outcome.

        The frame's memory may be reused after this call.
        """
        try:
            respond = self._respond
            outcome = respond(frame, self._context)
        except CloseConnection as error:
            self._close(str(error), error.reply)
        except Exception:
            self.fail(described(frame))
        else:
            if self.faults is None:
                self.deliver(outcome)
            else:
                self.faults.deliver(outcome)

    def deliver(self, outcome: Outcome) -> None:
        """Process a request's outcome: send the response, or let the request wait, or send no response."""
        if type(outcome) is list:
            first, wire = outcome[0], self._wire
            if len(outcome) == 1 and len(first) <= INLINE_BYTES_MAX:
                if wire.queued_bytes or wire.rest is not None or self.is_closing:
                    wire.respond(first)  # type: ignore[arg-type]  # a response begins in memory
                else:
                    # No other answer is queued, so that this one is sent at once.
                    wire.complete()
                    self._transport.write(first)  # type: ignore[arg-type]
            else:
                self._send(outcome)
        elif outcome is None:
            self._wire.complete()
        else:
            assert isinstance(outcome, Unanswered)
            self._wait(outcome)
            return
        if self._context.throttle_ms:
            self._rest()

    def _rest(self) -> None:
        """Send the response to a client over quota; start no further request during the throttle time."""
        self.busy = True
        self.flush()
        seconds = self._context.throttle_ms / 1000
        self._context.throttle_ms = 0
        self._resting = self._server.loop.call_later(seconds, self._end_rest)

    def _end_rest(self) -> None:
        self._resting = None
        if self._sending is None:
            self.busy = False
            self._continue()

    def _wait(self, outcome: Unanswered) -> None:
        if not self._server.hold(outcome.frame_bytes):
            self._close("requests that wait take too much memory")
            return
        self.busy = True
        self._unanswered = outcome
        self._parked = self._server.park(outcome.wait, self._run_again)

    def _run_again(self) -> None:
        """Run the waiting request again, because its event has occurred or its deadline has passed."""
        unanswered = self._unanswered
        if unanswered is None:
            return
        self._forget_unanswered()
        self.busy = False
        if self.is_closing:
            return
        context = self._context
        try:
            context.now = self._server.monotonic()
            context.now_ms = self._server.now_ms()
            deliver = self.deliver if self.faults is None else self.faults.deliver
            deliver(unanswered.run())
        except CloseConnection as error:
            self._close(str(error), error.reply)
        except Exception:
            self.fail("a request that waited")
        if not self.busy:
            self._continue()

    def _forget_unanswered(self) -> None:
        if self._unanswered is not None:
            self._server.let_go(self._unanswered.frame_bytes)
        self._unanswered = self._parked = None

    def fail(self, what: str) -> None:
        """Log an unexpected error and close this connection; the broker continues.

        Call it inside an ``except`` block; `what` describes the data that the connection was handling, for
        the log.
        """
        self._server.node.failures.caught("request", f"{what} from {self._caller}; its connection is closed")
        try:
            self._close("an error of the broker")
        except Exception:
            self.is_closing = True
            self._transport.abort()

    def _continue(self) -> None:
        """Call `go_on` from an event-loop callback; on an exception, log it and close the connection."""
        try:
            self.go_on()
        except Exception:
            self.fail("what had arrived")

    def go_on(self) -> None:
        """Handle the requests that arrived while another request was in progress."""
        if self.is_closing:
            return
        self.note_time()
        if self.faults is not None:
            self.faults.go_on()
        self._take_requests()
        self.flush()
        if not (self.busy or self._blocked or self.is_closing):
            self._transport.resume_reading()
        if self._server.node.purgatory.has_due:
            self._server.run_due()

    # --- answers -----------------------------------------------------------------------------------------

    def _send(self, pieces: list[Piece]) -> None:
        size = sum(map(len, pieces))
        if size > INLINE_BYTES_MAX:
            self.flush()
            memory = sum(len(piece) for piece in pieces if not isinstance(piece, FileRegion))
            if memory > INLINE_BYTES_MAX and not self._server.answers.keep(self, memory):
                self._close("answers that are not read take too much memory (penstock.kept.state.bytes.max)")
                return
            self.busy = True
            self._sending = LargeAnswer(self, self._transport, self._server.loop, pieces)
            return
        try:
            whole = b"".join(piece.read() if isinstance(piece, FileRegion) else piece for piece in pieces)
        except OSError as error:
            self._close(f"reading the log failed: {error}")
            return
        if len(whole) != size:
            self._close("the log has become shorter")
            return
        self._wire.respond(whole)

    def flush(self) -> None:
        """Write the queued responses to the transport."""
        if self._wire.queued_bytes:
            data = self._wire.data_to_send()
            if not self.is_closing:
                self._transport.write(data)

    def note_activity(self) -> None:
        """Record that bytes were received or sent now, so that the connection does not count as idle."""
        self.active_at = self._server.monotonic()

    def sent(self) -> None:
        """Continue with the next request, because the large response has been sent or was abandoned."""
        self._sending = None
        self._server.answers.drop(self)
        self._wire.complete()
        self.busy = self._resting is not None
        self.note_activity()
        if not self.busy:
            self._continue()

    @property
    def sends_from_files(self) -> bool:
        """True if `sendfile` can send bytes of files: the system has it, and the connection has no TLS."""
        return HAS_SENDFILE and (self.security is None or self.security.tls is None)

    # --- the end -----------------------------------------------------------------------------------------

    def hang_up(self, reason: str) -> None:
        """Close the connection after everything queued for the client has been written."""
        self._close(reason)

    def _close(self, reason: str, reply: bytes = b"") -> None:
        """Close the connection after everything queued has been written, followed by `reply`."""
        if not self.is_closing:
            self._log_end(reason)
            if reply:
                self._wire.respond(reply)
            self.flush()
            self.is_closing = True
            self._wire.end()
            self._stop_sending()
            self._transport.close()

    def close(self, reason: str) -> None:
        """Close the connection at once: the server stops or needs the memory, or the client has been idle."""
        if not self.is_closing and not self._server.is_stopping:
            self._log_end(reason)
        self.is_closing = True
        self._wire.end()
        self._stop_sending()
        self._transport.abort()

    def reset(self, reason: str) -> None:
        """Close the connection at once, with a TCP reset."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close(reason)

    def set_aside(self) -> None:
        """Let later responses overtake the response to the current request, for a fault that reorders."""
        self._wire.set_aside()

    def _stop_sending(self) -> None:
        """Stop `sendfile` before the transport closes the socket.

        While `sendfile` waits, the event loop watches the socket's descriptor until the sending task ends. If
        the socket were closed first, the loop would never read from a later connection with the same
        descriptor.
        """
        if self._sending is not None:
            self._sending.cancel()

    def _log_end(self, reason: str) -> None:
        self._server.node.limited_log.write(
            logging.INFO, "closed connections", "closing connection from %s: %s", self._caller, reason
        )

    @property
    def _caller(self) -> str:
        """A text for the log: the client's address, and the client id of its newest request."""
        if not hasattr(self, "session"):  # the connection failed before it had a session
            return self.peer
        return caller(self.peer, self.session.client_id)

    @property
    def owes_answer(self) -> bool:
        """True while a part of a response has not been passed to the operating system."""
        return not self.is_closing and (
            self._sending is not None
            or self._wire.queued_bytes > 0
            or self._transport.get_write_buffer_size() > 0
        )

    @property
    def is_blocked(self) -> bool:
        """True while the transport's buffer is full, because the client does not read."""
        return self._blocked

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that are in the transport's buffer and not sent yet."""
        return self._transport.get_write_buffer_size()

    @property
    def is_parked(self) -> bool:
        """True if a request of this connection waits in the broker's purgatory."""
        return self._parked is not None
