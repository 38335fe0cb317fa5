"""StopReplicaResponse (key 5), versions 0 to 4, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StopReplicaResponse(Message):
    """StopReplicaResponse (key 5), versions 0 to 4, flexible from version 2 on."""

    __slots__ = ("error_code", "partition_errors")

    NAME = "StopReplicaResponse"
    API_KEY = 5
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: list[StopReplicaPartitionError] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.partition_errors = [] if partition_errors is None else partition_errors
        self.unknown_tags = unknown_tags


class StopReplicaPartitionError(Struct):
    """An element of `partition_errors` in StopReplicaResponse, versions 0 to 4."""

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
