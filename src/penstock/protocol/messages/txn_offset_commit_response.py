"""TxnOffsetCommitResponse (key 28), versions 0 to 6, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class TxnOffsetCommitResponse(Message):
    """TxnOffsetCommitResponse (key 28), versions 0 to 6, flexible from version 3 on."""

    __slots__ = ("throttle_time_ms", "topics")

    NAME = "TxnOffsetCommitResponse"
    API_KEY = 28
    VERSIONS = (0, 6)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TxnOffsetCommitResponseTopic(Struct):
    """An element of `topics` in TxnOffsetCommitResponse, versions 0 to 6."""

    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[TxnOffsetCommitResponsePartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class TxnOffsetCommitResponsePartition(Struct):
    """A struct in TxnOffsetCommitResponse, versions 0 to 6."""

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
