"""DeleteRecordsRequest (key 21), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DeleteRecordsRequest(Message):
    """DeleteRecordsRequest (key 21), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("topics", "timeout_ms")

    NAME = "DeleteRecordsRequest"
    API_KEY = 21
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] | None = None,
        timeout_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.unknown_tags = unknown_tags


class DeleteRecordsTopic(Struct):
    """An element of `topics` in DeleteRecordsRequest, versions 0 to 2."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class DeleteRecordsPartition(Struct):
    """An element of `partitions` in DeleteRecordsTopic (DeleteRecordsRequest), versions 0 to 2."""

    __slots__ = ("partition_index", "offset")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset
        self.unknown_tags = unknown_tags
