"""OffsetForLeaderEpochResponse (key 23), versions 0 to 4, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class OffsetForLeaderEpochResponse(Message):
    """OffsetForLeaderEpochResponse (key 23), versions 0 to 4, flexible from version 4 on."""

    __slots__ = ("throttle_time_ms", "topics")

    NAME = "OffsetForLeaderEpochResponse"
    API_KEY = 23
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class OffsetForLeaderTopicResult(Struct):
    """An element of `topics` in OffsetForLeaderEpochResponse, versions 0 to 4."""

    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class EpochEndOffset(Struct):
    """A struct in OffsetForLeaderEpochResponse, versions 0 to 4."""

    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset
        self.unknown_tags = unknown_tags
