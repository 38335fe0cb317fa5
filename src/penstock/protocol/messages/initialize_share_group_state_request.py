"""InitializeShareGroupStateRequest (key 83), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class InitializeShareGroupStateRequest(Message):
    """InitializeShareGroupStateRequest (key 83), version 0, flexible from version 0 on."""

    __slots__ = ("group_id", "topics")

    NAME = "InitializeShareGroupStateRequest"
    API_KEY = 83
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[InitializeStateData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class InitializeStateData(Struct):
    """An element of `topics` in InitializeShareGroupStateRequest, version 0."""

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
    """An element of `partitions` in InitializeStateData (InitializeShareGroupStateRequest), version 0."""

    __slots__ = ("partition", "state_epoch", "start_offset")

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        start_offset: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.unknown_tags = unknown_tags
