"""DeleteShareGroupStateRequest (key 86), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DeleteShareGroupStateRequest(Message):
    """DeleteShareGroupStateRequest (key 86), version 0, flexible from version 0 on."""

    __slots__ = ("group_id", "topics")

    NAME = "DeleteShareGroupStateRequest"
    API_KEY = 86
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteStateData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class DeleteStateData(Struct):
    """An element of `topics` in DeleteShareGroupStateRequest, version 0."""

    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """An element of `partitions` in DeleteStateData (DeleteShareGroupStateRequest), version 0."""

    __slots__ = ("partition",)

    def __init__(
        self,
        *,
        partition: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.unknown_tags = unknown_tags
