"""OffsetDeleteResponse (key 47), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class OffsetDeleteResponse(Message):
    """OffsetDeleteResponse (key 47), version 0."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")

    NAME = "OffsetDeleteResponse"
    API_KEY = 47
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class OffsetDeleteResponseTopic(Struct):
    """An element of `topics` in OffsetDeleteResponse, version 0."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class OffsetDeleteResponsePartition(Struct):
    """An element of `partitions` in OffsetDeleteResponseTopic (OffsetDeleteResponse), version 0."""

    __slots__ = ("partition_index", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = unknown_tags
