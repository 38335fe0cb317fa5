"""HeartbeatResponse (key 12), versions 0 to 4, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class HeartbeatResponse(Message):
    """HeartbeatResponse (key 12), versions 0 to 4, flexible from version 4 on."""

    __slots__ = ("throttle_time_ms", "error_code")

    NAME = "HeartbeatResponse"
    API_KEY = 12
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tags = unknown_tags
