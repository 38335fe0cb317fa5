"""ListPartitionReassignmentsRequest (key 46), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ListPartitionReassignmentsRequest(Message):
    """ListPartitionReassignmentsRequest (key 46), version 0, flexible from version 0 on."""

    __slots__ = ("timeout_ms", "topics")

    NAME = "ListPartitionReassignmentsRequest"
    API_KEY = 46
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.unknown_tags = unknown_tags


class ListPartitionReassignmentsTopics(Struct):
    """An element of `topics` in ListPartitionReassignmentsRequest, version 0."""

    __slots__ = ("name", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes
        self.unknown_tags = unknown_tags
