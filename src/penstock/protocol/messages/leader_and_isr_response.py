"""LeaderAndIsrResponse (key 4), versions 0 to 7, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class LeaderAndIsrResponse(Message):
    """LeaderAndIsrResponse (key 4), versions 0 to 7, flexible from version 4 on."""

    __slots__ = ("error_code", "partition_errors", "topics")

    NAME = "LeaderAndIsrResponse"
    API_KEY = 4
    VERSIONS = (0, 7)

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: list[LeaderAndIsrPartitionError] | None = None,
        topics: list[LeaderAndIsrTopicError] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.partition_errors = [] if partition_errors is None else partition_errors
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class LeaderAndIsrPartitionError(Struct):
    """A struct in LeaderAndIsrResponse, for the fields `partition_errors`; versions 0 to 7."""

    __slots__ = ("topic_name", "partition_index", "error_code")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class LeaderAndIsrTopicError(Struct):
    """An element of `topics` in LeaderAndIsrResponse, versions 5 to 7."""

    __slots__ = ("topic_id", "partition_errors")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partition_errors: list[LeaderAndIsrPartitionError] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.partition_errors = [] if partition_errors is None else partition_errors
        self.unknown_tags = unknown_tags
