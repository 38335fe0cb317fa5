"""OffsetCommitKey (key 1), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class OffsetCommitKey(Message):
    """OffsetCommitKey (key 1), version 0."""

    __slots__ = ("group", "topic", "partition")

    NAME = "OffsetCommitKey"
    API_KEY = 1
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
