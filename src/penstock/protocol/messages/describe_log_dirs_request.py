"""DescribeLogDirsRequest (key 35), versions 0 to 5, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeLogDirsRequest(Message):
    """DescribeLogDirsRequest (key 35), versions 0 to 5, flexible from version 2 on."""

    __slots__ = ("topics",)

    NAME = "DescribeLogDirsRequest"
    API_KEY = 35
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics: list[DescribableLogDirTopic] | None = [] if isinstance(topics, tuple) else topics
        self.unknown_tags = unknown_tags


class DescribableLogDirTopic(Struct):
    """An element of `topics` in DescribeLogDirsRequest, versions 0 to 5."""

    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags
