"""ListPartitionReassignmentsResponse (key 46), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ListPartitionReassignmentsResponse(Message):
    """ListPartitionReassignmentsResponse (key 46), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")

    NAME = "ListPartitionReassignmentsResponse"
    API_KEY = 46
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class OngoingTopicReassignment(Struct):
    """An element of `topics` in ListPartitionReassignmentsResponse, version 0."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class OngoingPartitionReassignment(Struct):
    """A struct in ListPartitionReassignmentsResponse, version 0."""

    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is None else replicas
        self.adding_replicas = [] if adding_replicas is None else adding_replicas
        self.removing_replicas = [] if removing_replicas is None else removing_replicas
        self.unknown_tags = unknown_tags
