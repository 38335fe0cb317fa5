"""AlterPartitionReassignmentsResponse (key 45), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterPartitionReassignmentsResponse(Message):
    """AlterPartitionReassignmentsResponse (key 45), versions 0 to 1, flexible from version 0 on."""

    __slots__ = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )

    NAME = "AlterPartitionReassignmentsResponse"
    API_KEY = 45
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is None else responses
        self.unknown_tags = unknown_tags


class ReassignableTopicResponse(Struct):
    """An element of `responses` in AlterPartitionReassignmentsResponse, versions 0 to 1."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class ReassignablePartitionResponse(Struct):
    """A struct in AlterPartitionReassignmentsResponse, versions 0 to 1."""

    __slots__ = ("partition_index", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
