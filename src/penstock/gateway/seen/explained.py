"""Decoded traffic of chosen clients as lines of JSON, in the format of `penstock wire decode`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.explorer.conversation import Conversation, ConversationEntry
from penstock.gateway.seen.frames import Frames

if TYPE_CHECKING:
    from penstock.clock import Clock

FRAME_BYTES_MAX = 1 << 20
"""The largest request or response, in bytes, that is decoded."""

SECRET = "SaslAuthenticate"


class ExplainedConnection:
    """Decodes the requests and responses of one connection; calls `write` with a line for each."""

    def __init__(self, peer: str, clock: Clock, write: Callable[[str], object]) -> None:
        self._conversation = Conversation(peer)
        self._peer = peer
        self._clock = clock
        self._write = write
        self._requests = Frames(FRAME_BYTES_MAX)
        self._responses = Frames(FRAME_BYTES_MAX)

    def received(self, data: memoryview) -> None:
        """Process bytes that the client has sent."""
        for frame, size in self._requests.cut(data):
            self._put(self._conversation.request(frame, self._now_s()), size)

    def sent(self, data: memoryview) -> None:
        """Decode bytes sent to the client, and write a line about each response that they complete."""
        for frame, size in self._responses.cut(data):
            self._put(self._conversation.answer(frame, self._now_s()), size)

    def ended(self) -> None:
        """Do nothing: the line of each message was written as soon as the message was complete."""

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000

    def _put(self, entry: ConversationEntry, size: int) -> None:
        if size > FRAME_BYTES_MAX:
            entry.error = f"a message of {size} bytes: {FRAME_BYTES_MAX} are decoded"
            entry.body = None
        if entry.name.startswith(SECRET):  # passwords of PLAIN
            entry.body, entry.error = None, "logins are not shown"
        entry.frame = entry.trailing = b""  # tokens of SASL without a header cannot be read as anything
        self._write(json.dumps(entry.as_json(), ensure_ascii=False))
