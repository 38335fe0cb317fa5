"""ReadShareGroupStateSummaryRequest (key 87), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ReadShareGroupStateSummaryRequest(Message):
    """ReadShareGroupStateSummaryRequest (key 87), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("group_id", "topics")

    NAME = "ReadShareGroupStateSummaryRequest"
    API_KEY = 87
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateSummaryData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class ReadStateSummaryData(Struct):
    """An element of `topics` in ReadShareGroupStateSummaryRequest, versions 0 to 1."""

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
    """A struct in ReadShareGroupStateSummaryRequest, versions 0 to 1."""

    __slots__ = ("partition", "leader_epoch")

    def __init__(
        self,
        *,
        partition: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags
