"""ClearElrRecord (key 28), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ClearElrRecord(Message):
    """ClearElrRecord (key 28), version 0, flexible from version 0 on."""

    __slots__ = ("topic_name",)

    NAME = "ClearElrRecord"
    API_KEY = 28
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        topic_name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.unknown_tags = unknown_tags
