"""ResponseHeader, versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ResponseHeader(Message):
    """ResponseHeader, versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("correlation_id",)

    NAME = "ResponseHeader"
    API_KEY = None
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        correlation_id: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.correlation_id = correlation_id
        self.unknown_tags = unknown_tags
