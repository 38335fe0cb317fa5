"""DescribeProducersRequest (key 61), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeProducersRequest(Message):
    """DescribeProducersRequest (key 61), version 0, flexible from version 0 on."""

    __slots__ = ("topics",)

    NAME = "DescribeProducersRequest"
    API_KEY = 61
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        topics: list[TopicRequest] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicRequest(Struct):
    """An element of `topics` in DescribeProducersRequest, version 0."""

    __slots__ = ("name", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes
        self.unknown_tags = unknown_tags
