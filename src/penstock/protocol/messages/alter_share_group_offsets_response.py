"""AlterShareGroupOffsetsResponse (key 91), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterShareGroupOffsetsResponse(Message):
    """AlterShareGroupOffsetsResponse (key 91), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")

    NAME = "AlterShareGroupOffsetsResponse"
    API_KEY = 91
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is None else responses
        self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsResponseTopic(Struct):
    """An element of `responses` in AlterShareGroupOffsetsResponse, version 0."""

    __slots__ = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[AlterShareGroupOffsetsResponsePartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsResponsePartition(Struct):
    """A struct in AlterShareGroupOffsetsResponse, version 0."""

    __slots__ = ("partition_index", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
