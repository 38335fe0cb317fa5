"""AlterShareGroupOffsetsRequest (key 91), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterShareGroupOffsetsRequest(Message):
    """AlterShareGroupOffsetsRequest (key 91), version 0, flexible from version 0 on."""

    __slots__ = ("group_id", "topics")

    NAME = "AlterShareGroupOffsetsRequest"
    API_KEY = 91
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsRequestTopic(Struct):
    """An element of `topics` in AlterShareGroupOffsetsRequest, version 0."""

    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsRequestPartition(Struct):
    """A struct in AlterShareGroupOffsetsRequest, version 0."""

    __slots__ = ("partition_index", "start_offset")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.unknown_tags = unknown_tags
