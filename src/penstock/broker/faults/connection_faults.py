"""`ConnectionFaults`: injects faults into one connection (delays, losses, reordering, damage).

Only connections of a broker with faults have this object, so that other connections have no overhead. Faults
with error codes are in the interceptor `penstock.broker.faults.answers.answering_faults`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from penstock.broker.faults.damage import damaged
from penstock.broker.faults.requests import Request
from penstock.broker.requests.dispatch import Unanswered
from penstock.errors import DecodeError, UnsupportedVersionError
from penstock.log.contract import FileRegion
from penstock.protocol.api import API_TABLE
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import decode_request_header

if TYPE_CHECKING:
    from penstock.broker.faults.faults import Fault, Faults
    from penstock.broker.network.connection import Outcome, ServedConnection
    from penstock.broker.network.server import Server
    from penstock.broker.requests.routes import Piece


class ConnectionFaults:
    """Applies faults to the requests and the responses of one connection of a server."""

    __slots__ = (
        "_connection",
        "_faults",
        "_held_answer",
        "_held_frame",
        "_next_frame",
        "_plan",
        "_server",
        "_timer",
    )

    def __init__(self, server: Server, connection: ServedConnection, faults: Faults) -> None:
        self._server = server
        self._connection = connection
        self._faults = faults
        self._plan: tuple[Request, list[Fault]] | None = None
        self._held_frame: bytearray | None = None
        self._held_answer: list[Piece] | None = None
        self._next_frame: bytearray | None = None
        self._timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Cancel delayed responses, because the connection has ended."""
        if self._timer is not None:
            self._timer.cancel()

    # --- before ------------------------------------------------------------------------------------------

    def handle(self, frame: memoryview) -> None:
        """Handle a request, with the faults that apply to it."""
        if not self._faults.active:
            self._connection.handle(frame)
            return
        try:
            request = self._read(frame)
            happening = self._faults.happening_to(request) if request is not None else []
        except Exception:
            self._connection.fail("a fault for a request")
            return
        if request is None or not happening:
            self._connection.handle(frame)
        else:
            self._suffer(bytearray(frame), request, happening)

    def _read(self, frame: memoryview) -> Request | None:
        """Return the request in a frame, or None if it is malformed or its API is not offered."""
        copied = memoryview(bytearray(frame))
        try:
            header, position = decode_request_header(copied)
            route = self._server.node.router.find(header.api_key, header.api_version)
            message = codec_for(API_TABLE[route.key].request, route.version).decode(copied, position)[0]
        except (DecodeError, UnsupportedVersionError):
            return None
        return Request(header, message, self._connection.number, self._topic_name)

    def _topic_name(self, topic_id: bytes) -> str | None:
        topic = self._server.node.cluster.topics_by_id.get(topic_id)
        return topic.name if topic is not None else None

    def _suffer(self, frame: bytearray, request: Request, happening: list[Fault]) -> None:
        """Apply the faults that happen before the handler runs; answer the request if they allow it."""
        before = {fault.kind: fault for fault in happening if not fault.applied}
        if "drop" in before:
            self._fall_silent()
        elif "close" in before:
            self._hang_up(before["close"])
        elif "reorder" in before:
            self._held_frame = frame
            self._connection.set_aside()
            self._set_timer(before["reorder"].seconds, self._release_frame)
        elif "delay" in before:
            self._connection.busy = True
            rest = [fault for fault in happening if fault is not before["delay"]]
            self._set_timer(before["delay"].seconds, self._answer_late, frame, request, rest)
        else:
            self._answer(frame, request, happening)

    def _answer_late(self, frame: bytearray, request: Request, happening: list[Fault]) -> None:
        self._connection.busy = False
        self._connection.note_time()
        self._answer(frame, request, happening)
        if not self._connection.busy:
            self._connection.go_on()

    def _answer(self, frame: bytearray, request: Request, happening: list[Fault]) -> None:
        failures = [fault for fault in happening if fault.kind == "fail"]
        self._plan = request, happening
        self._faults.planned = (request, failures) if failures else None
        try:
            self._connection.handle(memoryview(frame))
        finally:
            self._faults.planned = None

    # --- after -------------------------------------------------------------------------------------------

    def deliver(self, outcome: Outcome) -> None:
        """Send the response to a request, with the faults that happen after the request was handled."""
        if isinstance(outcome, Unanswered) or (self._plan is None and not self._holds_something):
            self._connection.deliver(outcome)
            return
        plan, self._plan = self._plan, None
        after = {fault.kind: fault for fault in plan[1] if fault.applied} if plan else {}
        if "drop" in after:
            self._fall_silent()
            return
        if "close" in after:
            self._hang_up(after["close"])
            return
        if outcome is None:
            self._connection.deliver(None)
        elif "corrupt" in after and plan is not None:
            self._corrupt(outcome, after["corrupt"], plan[0])
        elif "reorder" in after:
            self._held_answer = outcome
            self._connection.set_aside()
            self._set_timer(after["reorder"].seconds, self._release_answer)
        elif "delay" in after:
            self._connection.busy = True
            self._set_timer(after["delay"].seconds, self._deliver_late, outcome)
        else:
            self._connection.deliver(outcome)
            self._let_follow()

    @property
    def _holds_something(self) -> bool:
        return self._held_answer is not None or self._held_frame is not None

    def _let_follow(self) -> None:
        """Release the request or response that was held back, because another one has overtaken it."""
        if self._held_answer is not None and not self._connection.busy:
            held, self._held_answer = self._held_answer, None
            self._connection.deliver(held)
        if self._held_frame is not None:
            held_frame, self._held_frame = self._held_frame, None
            if self._connection.busy:
                self._next_frame = held_frame
            else:
                self._connection.handle(memoryview(held_frame))

    def go_on(self) -> None:
        """Handle the request that others have overtaken, which waited for the connection to be free."""
        if self._next_frame is not None and not self._connection.busy:
            frame, self._next_frame = self._next_frame, None
            self._connection.handle(memoryview(frame))

    def _release_frame(self) -> None:
        if self._held_frame is not None and not self._connection.is_closing:
            self._let_follow()
            self._connection.flush()

    def _release_answer(self) -> None:
        if self._held_answer is not None and not self._connection.is_closing:
            self._let_follow()
            self._connection.flush()

    def _deliver_late(self, outcome: list[Piece]) -> None:
        self._connection.busy = False
        self._connection.deliver(outcome)
        if not self._connection.busy:
            self._connection.go_on()

    def _corrupt(self, outcome: list[Piece], fault: Fault, request: Request) -> None:
        whole = b"".join(piece.read() if isinstance(piece, FileRegion) else piece for piece in outcome)
        self._connection.deliver([damaged(whole, fault.damage, request)])
        if fault.damage == "cut":
            self._connection.hang_up("a fault cuts the answer")

    # --- ends --------------------------------------------------------------------------------------------

    def _fall_silent(self) -> None:
        """Stop answering requests. Some bytes are still read, to notice when the client disconnects."""
        self._connection.busy = True

    def _hang_up(self, fault: Fault) -> None:
        if fault.reset:
            self._connection.reset("a fault")
        else:
            self._connection.hang_up("a fault")

    def _set_timer(self, seconds: float, function: Any, *arguments: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._server.loop.call_later(seconds, self._guard, function, *arguments)

    def _guard(self, function: Any, *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception:
            self._connection.fail("a fault that comes late")
