"""AddRaftVoterResponse (key 80), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class AddRaftVoterResponse(Message):
    """AddRaftVoterResponse (key 80), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")

    NAME = "AddRaftVoterResponse"
    API_KEY = 80
    VERSIONS = (0, 1)

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
