"""OffsetDeleteRequest (key 47), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class OffsetDeleteRequest(Message):
    """OffsetDeleteRequest (key 47), version 0."""

    __slots__ = ("group_id", "topics")

    NAME = "OffsetDeleteRequest"
    API_KEY = 47
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class OffsetDeleteRequestTopic(Struct):
    """An element of `topics` in OffsetDeleteRequest, version 0."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class OffsetDeleteRequestPartition(Struct):
    """An element of `partitions` in OffsetDeleteRequestTopic (OffsetDeleteRequest), version 0."""

    __slots__ = ("partition_index",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags
