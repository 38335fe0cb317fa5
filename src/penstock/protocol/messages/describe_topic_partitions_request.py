"""DescribeTopicPartitionsRequest (key 75), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeTopicPartitionsRequest(Message):
    """DescribeTopicPartitionsRequest (key 75), version 0, flexible from version 0 on."""

    __slots__ = ("topics", "response_partition_limit", "cursor")

    NAME = "DescribeTopicPartitionsRequest"
    API_KEY = 75
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        topics: list[TopicRequest] | None = None,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor
        self.unknown_tags = unknown_tags


class TopicRequest(Struct):
    """An element of `topics` in DescribeTopicPartitionsRequest, version 0."""

    __slots__ = ("name",)

    def __init__(
        self,
        *,
        name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.unknown_tags = unknown_tags


class Cursor(Struct):
    """The value of `cursor` in DescribeTopicPartitionsRequest, version 0."""

    __slots__ = ("topic_name", "partition_index")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags
