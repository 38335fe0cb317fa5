"""`FaultyConnection`: faults of connections (delayed, lost, reordered and damaged frames).

It takes the place of the broker's own `Connection`, so that a broker without faults has no hook to pass.
Error codes on demand are answered by an interceptor, `penstock.testing.answers.answering_faults`.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.broker.network.connection import Connection
from penstock.broker.requests.dispatch import Unanswered
from penstock.errors import DecodeError, UnsupportedVersionError
from penstock.log.contract import FileRegion
from penstock.protocol.api import API_TABLE
from penstock.protocol.codec import codec_for
from penstock.protocol.header import decode_request_header
from penstock.testing.damage import damaged
from penstock.testing.faults import Fault, Faults
from penstock.testing.requests import Request

if TYPE_CHECKING:
    from penstock.broker.network.server import Server
    from penstock.broker.requests.routes import Piece

Outcome: TypeAlias = "list[Piece] | Unanswered | None"


class FaultyConnection(Connection):
    """One connection of a `KafkaBroker`. `number` counts them from 1, over restarts of the broker."""

    __slots__ = (
        "_ends",
        "_faults",
        "_held_answer",
        "_held_frame",
        "_next_frame",
        "_plan",
        "_timer",
    )

    def __init__(self, server: Server, faults: Faults, numbers: itertools.count[int]) -> None:
        super().__init__(server)
        self._faults = faults
        self.number = next(numbers)
        self._plan: tuple[Request, list[Fault]] | None = None
        self._held_frame: bytearray | None = None
        self._held_answer: list[Piece] | None = None
        self._next_frame: bytearray | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def client_id(self) -> str | None:
        """What the client has called itself last."""
        return self.session.client_id

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(error)

    # --- before ------------------------------------------------------------------------------------------

    def _handle(self, frame: memoryview) -> None:
        if not self._faults.active:
            super()._handle(frame)
            return
        try:
            request = self._read(frame)
            happening = self._faults.happening_to(request) if request is not None else []
        except Exception:
            self.fail("a fault for a request")
            return
        if request is None or not happening:
            super()._handle(frame)
        else:
            self._suffer(bytearray(frame), request, happening)

    def _read(self, frame: memoryview) -> Request | None:
        """The request in a frame; None where it is none, or one that is not offered."""
        copied = memoryview(bytearray(frame))
        try:
            header, position = decode_request_header(copied)
            route = self._context.node.router.find(header.api_key, header.api_version)
            message = codec_for(API_TABLE[route.key].request, route.version).decode(copied, position)[0]
        except (DecodeError, UnsupportedVersionError):
            return None
        return Request(header, message, self.number, self._topic_name)

    def _topic_name(self, topic_id: bytes) -> str | None:
        topic = self._context.node.cluster.topics_by_id.get(topic_id)
        return topic.name if topic is not None else None

    def _suffer(self, frame: bytearray, request: Request, happening: list[Fault]) -> None:
        """Have what goes wrong with the request itself happen; then have it answered."""
        before = {fault.kind: fault for fault in happening if not fault.applied}
        if "drop" in before:
            self._fall_silent()
        elif "close" in before:
            self._hang_up(before["close"])
        elif "reorder" in before:
            self._held_frame = frame
            self._wire.set_aside()
            self._set_timer(before["reorder"].seconds, self._release_frame)
        elif "delay" in before:
            self._busy = True
            rest = [fault for fault in happening if fault is not before["delay"]]
            self._set_timer(before["delay"].seconds, self._answer_late, frame, request, rest)
        else:
            self._answer(frame, request, happening)

    def _answer_late(self, frame: bytearray, request: Request, happening: list[Fault]) -> None:
        self._busy = False
        self._note_time()
        self._answer(frame, request, happening)
        if not self._busy:
            self._go_on()

    def _answer(self, frame: bytearray, request: Request, happening: list[Fault]) -> None:
        failures = [fault for fault in happening if fault.kind == "fail"]
        self._plan = request, happening
        self._faults.planned = (request, failures) if failures else None
        try:
            super()._handle(memoryview(frame))
        finally:
            self._faults.planned = None

    # --- after -------------------------------------------------------------------------------------------

    def _deliver(self, outcome: Outcome) -> None:
        if isinstance(outcome, Unanswered) or (self._plan is None and not self._holds_something):
            super()._deliver(outcome)
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
            self._wire.complete()
        elif "corrupt" in after and plan is not None:
            self._corrupt(outcome, after["corrupt"], plan[0])
        elif "reorder" in after:
            self._held_answer = outcome
            self._wire.set_aside()
            self._set_timer(after["reorder"].seconds, self._release_answer)
        elif "delay" in after:
            self._busy = True
            self._set_timer(after["delay"].seconds, self._deliver_late, outcome)
        else:
            super()._deliver(outcome)
            self._let_follow()

    @property
    def _holds_something(self) -> bool:
        return self._held_answer is not None or self._held_frame is not None

    def _let_follow(self) -> None:
        """Something has overtaken what was held back: that comes now."""
        if self._held_answer is not None and not self._busy:
            held, self._held_answer = self._held_answer, None
            super()._deliver(held)
        if self._held_frame is not None:
            held_frame, self._held_frame = self._held_frame, None
            if self._busy:
                self._next_frame = held_frame
            else:
                super()._handle(memoryview(held_frame))

    def _go_on(self) -> None:
        if self._next_frame is not None and not (self._busy or self._closing):
            frame, self._next_frame = self._next_frame, None
            self._note_time()
            super()._handle(memoryview(frame))
        super()._go_on()

    def _release_frame(self) -> None:
        if self._held_frame is not None and not self._closing:
            self._let_follow()
            self._flush()

    def _release_answer(self) -> None:
        if self._held_answer is not None and not self._closing:
            self._let_follow()
            self._flush()

    def _deliver_late(self, outcome: list[Piece]) -> None:
        self._busy = False
        super()._deliver(outcome)
        if not self._busy:
            self._go_on()

    def _corrupt(self, outcome: list[Piece], fault: Fault, request: Request) -> None:
        whole = b"".join(piece.read() if isinstance(piece, FileRegion) else piece for piece in outcome)
        super()._deliver([damaged(whole, fault.damage, request)])
        if fault.damage == "cut":
            self._close("a fault cuts the answer")

    # --- ends --------------------------------------------------------------------------------------------

    def _fall_silent(self) -> None:
        """Answer nothing any more. What comes is read on for a while, so as to notice when the peer goes."""
        self._busy = True

    def _hang_up(self, fault: Fault) -> None:
        if fault.reset:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close("a fault")
        else:
            self._close("a fault")

    def _set_timer(self, seconds: float, function: Any, *arguments: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._server.loop.call_later(seconds, self._guard, function, *arguments)

    def _guard(self, function: Any, *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception:
            self.fail("a fault that comes late")
