"""ConsumerGroupRegularExpressionValue (key 16), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ConsumerGroupRegularExpressionValue(Message):
    """ConsumerGroupRegularExpressionValue (key 16), version 0, flexible from version 0 on."""

    __slots__ = ("topics", "version", "timestamp")

    NAME = "ConsumerGroupRegularExpressionValue"
    API_KEY = 16
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        topics: list[str] | None = None,
        version: int = 0,
        timestamp: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.version = version
        self.timestamp = timestamp
        self.unknown_tags = unknown_tags
