"""AlterPartitionReassignmentsRequest (key 45), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterPartitionReassignmentsRequest(Message):
    """AlterPartitionReassignmentsRequest (key 45), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")

    NAME = "AlterPartitionReassignmentsRequest"
    API_KEY = 45
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class ReassignableTopic(Struct):
    """An element of `topics` in AlterPartitionReassignmentsRequest, versions 0 to 1."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class ReassignablePartition(Struct):
    """A struct in AlterPartitionReassignmentsRequest, versions 0 to 1."""

    __slots__ = ("partition_index", "replicas")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas
        self.unknown_tags = unknown_tags
