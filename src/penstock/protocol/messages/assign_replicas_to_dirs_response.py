"""AssignReplicasToDirsResponse (key 73), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AssignReplicasToDirsResponse(Message):
    """AssignReplicasToDirsResponse (key 73), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "directories")

    NAME = "AssignReplicasToDirsResponse"
    API_KEY = 73
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[DirectoryData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.directories = [] if directories is None else directories
        self.unknown_tags = unknown_tags


class DirectoryData(Struct):
    """An element of `directories` in AssignReplicasToDirsResponse, version 0."""

    __slots__ = ("id", "topics")

    def __init__(
        self,
        *,
        id: bytes = bytes(16),
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.id = id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in DirectoryData (AssignReplicasToDirsResponse), version 0."""

    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """An element of `partitions` in TopicData (AssignReplicasToDirsResponse), version 0."""

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
