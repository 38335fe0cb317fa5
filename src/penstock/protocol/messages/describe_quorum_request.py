"""DescribeQuorumRequest (key 55), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeQuorumRequest(Message):
    """DescribeQuorumRequest (key 55), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("topics",)

    NAME = "DescribeQuorumRequest"
    API_KEY = 55
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in DescribeQuorumRequest, versions 0 to 2."""

    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """An element of `partitions` in TopicData (DescribeQuorumRequest), versions 0 to 2."""

    __slots__ = ("partition_index",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags
