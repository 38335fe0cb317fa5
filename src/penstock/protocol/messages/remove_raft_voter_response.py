"""RemoveRaftVoterResponse (key 81), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RemoveRaftVoterResponse(Message):
    """RemoveRaftVoterResponse (key 81), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")

    NAME = "RemoveRaftVoterResponse"
    API_KEY = 81
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
