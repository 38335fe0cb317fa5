"""ListOffsetsRequest (key 2), versions 0 to 11, flexible from version 6 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ListOffsetsRequest(Message):
    """ListOffsetsRequest (key 2), versions 0 to 11, flexible from version 6 on."""

    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")

    NAME = "ListOffsetsRequest"
    API_KEY = 2
    VERSIONS = (0, 11)

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] | None = None,
        timeout_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.unknown_tags = unknown_tags


class ListOffsetsTopic(Struct):
    """An element of `topics` in ListOffsetsRequest, versions 0 to 11."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class ListOffsetsPartition(Struct):
    """An element of `partitions` in ListOffsetsTopic (ListOffsetsRequest), versions 0 to 11."""

    __slots__ = ("partition_index", "current_leader_epoch", "timestamp", "max_num_offsets")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
        max_num_offsets: int = 1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp
        self.max_num_offsets = max_num_offsets
        self.unknown_tags = unknown_tags
