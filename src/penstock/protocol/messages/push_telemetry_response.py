"""PushTelemetryResponse (key 72), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class PushTelemetryResponse(Message):
    """PushTelemetryResponse (key 72), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code")

    NAME = "PushTelemetryResponse"
    API_KEY = 72
    VERSIONS = (0, 0)

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
