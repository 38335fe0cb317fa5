"""ListOffsetsResponse (key 2), versions 0 to 11, flexible from version 6 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ListOffsetsResponse(Message):
    """ListOffsetsResponse (key 2), versions 0 to 11, flexible from version 6 on."""

    __slots__ = ("throttle_time_ms", "topics")

    NAME = "ListOffsetsResponse"
    API_KEY = 2
    VERSIONS = (0, 11)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class ListOffsetsTopicResponse(Struct):
    """An element of `topics` in ListOffsetsResponse, versions 0 to 11."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class ListOffsetsPartitionResponse(Struct):
    """An element of `partitions` in ListOffsetsTopicResponse (ListOffsetsResponse), versions 0 to 11."""

    __slots__ = ("partition_index", "error_code", "old_style_offsets", "timestamp", "offset", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        old_style_offsets: list[int] | None = None,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.old_style_offsets = [] if old_style_offsets is None else old_style_offsets
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags
