"""TopicRecord (key 2), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class TopicRecord(Message):
    """TopicRecord (key 2), version 0, flexible from version 0 on."""

    __slots__ = ("name", "topic_id")

    NAME = "TopicRecord"
    API_KEY = 2
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.unknown_tags = unknown_tags
