"""SyncGroupResponse (key 14), versions 0 to 5, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class SyncGroupResponse(Message):
    """SyncGroupResponse (key 14), versions 0 to 5, flexible from version 4 on."""

    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")

    NAME = "SyncGroupResponse"
    API_KEY = 14
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
        self.unknown_tags = unknown_tags
