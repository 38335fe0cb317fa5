"""RemoveTopicRecord (key 9), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RemoveTopicRecord(Message):
    """RemoveTopicRecord (key 9), version 0, flexible from version 0 on."""

    __slots__ = ("topic_id",)

    NAME = "RemoveTopicRecord"
    API_KEY = 9
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.unknown_tags = unknown_tags
