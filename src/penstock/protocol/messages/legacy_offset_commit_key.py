"""LegacyOffsetCommitKey (key 0), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class LegacyOffsetCommitKey(Message):
    """LegacyOffsetCommitKey (key 0), version 0."""

    __slots__ = ("group", "topic", "partition")

    NAME = "LegacyOffsetCommitKey"
    API_KEY = 0
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tags = unknown_tags
