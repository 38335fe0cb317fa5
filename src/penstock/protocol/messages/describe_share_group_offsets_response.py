"""DescribeShareGroupOffsetsResponse (key 90), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeShareGroupOffsetsResponse(Message):
    """DescribeShareGroupOffsetsResponse (key 90), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "groups")

    NAME = "DescribeShareGroupOffsetsResponse"
    API_KEY = 90
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """An element of `groups` in DescribeShareGroupOffsetsResponse, versions 0 to 1."""

    __slots__ = ("group_id", "topics", "error_code", "error_message")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] | None = None,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """A struct in DescribeShareGroupOffsetsResponse, versions 0 to 1."""

    __slots__ = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[DescribeShareGroupOffsetsResponsePartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """A struct in DescribeShareGroupOffsetsResponse, versions 0 to 1."""

    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
