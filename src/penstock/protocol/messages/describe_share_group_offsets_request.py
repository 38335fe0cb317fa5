"""DescribeShareGroupOffsetsRequest (key 90), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeShareGroupOffsetsRequest(Message):
    """DescribeShareGroupOffsetsRequest (key 90), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("groups",)

    NAME = "DescribeShareGroupOffsetsRequest"
    API_KEY = 90
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequestGroup] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.groups = [] if groups is None else groups
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """An element of `groups` in DescribeShareGroupOffsetsRequest, versions 0 to 1."""

    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics: list[DescribeShareGroupOffsetsRequestTopic] | None = (
            [] if isinstance(topics, tuple) else topics
        )
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """A struct in DescribeShareGroupOffsetsRequest, versions 0 to 1."""

    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags
