"""AlterReplicaLogDirsResponse (key 34), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterReplicaLogDirsResponse(Message):
    """AlterReplicaLogDirsResponse (key 34), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "results")

    NAME = "AlterReplicaLogDirsResponse"
    API_KEY = 34
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class AlterReplicaLogDirTopicResult(Struct):
    """An element of `results` in AlterReplicaLogDirsResponse, versions 0 to 2."""

    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class AlterReplicaLogDirPartitionResult(Struct):
    """A struct in AlterReplicaLogDirsResponse, versions 0 to 2."""

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
