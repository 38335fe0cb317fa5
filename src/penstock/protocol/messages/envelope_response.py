"""EnvelopeResponse (key 58), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class EnvelopeResponse(Message):
    """EnvelopeResponse (key 58), version 0, flexible from version 0 on."""

    __slots__ = ("response_data", "error_code")

    NAME = "EnvelopeResponse"
    API_KEY = 58
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
        self.unknown_tags = unknown_tags
