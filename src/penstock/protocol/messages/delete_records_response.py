"""DeleteRecordsResponse (key 21), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DeleteRecordsResponse(Message):
    """DeleteRecordsResponse (key 21), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "topics")

    NAME = "DeleteRecordsResponse"
    API_KEY = 21
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class DeleteRecordsTopicResult(Struct):
    """An element of `topics` in DeleteRecordsResponse, versions 0 to 2."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class DeleteRecordsPartitionResult(Struct):
    """An element of `partitions` in DeleteRecordsTopicResult (DeleteRecordsResponse), versions 0 to 2."""

    __slots__ = ("partition_index", "low_watermark", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code
        self.unknown_tags = unknown_tags
