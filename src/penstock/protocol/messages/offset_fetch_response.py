"""OffsetFetchResponse (key 9), versions 0 to 10, flexible from version 6 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class OffsetFetchResponse(Message):
    """OffsetFetchResponse (key 9), versions 0 to 10, flexible from version 6 on."""

    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups")

    NAME = "OffsetFetchResponse"
    API_KEY = 9
    VERSIONS = (0, 10)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] | None = None,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.error_code = error_code
        self.groups = [] if groups is None else groups
        self.unknown_tags = unknown_tags


class OffsetFetchResponseTopic(Struct):
    """An element of `topics` in OffsetFetchResponse, versions 0 to 7."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class OffsetFetchResponseGroup(Struct):
    """An element of `groups` in OffsetFetchResponse, versions 8 to 10."""

    __slots__ = ("group_id", "topics", "error_code")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] | None = None,
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class OffsetFetchResponsePartition(Struct):
    """An element of `partitions` in OffsetFetchResponseTopic (OffsetFetchResponse), versions 0 to 7."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class OffsetFetchResponseTopics(Struct):
    """An element of `topics` in OffsetFetchResponseGroup (OffsetFetchResponse), versions 8 to 10."""

    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[OffsetFetchResponsePartitions] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class OffsetFetchResponsePartitions(Struct):
    """An element of `partitions` in OffsetFetchResponseTopics (OffsetFetchResponse), versions 8 to 10."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code
        self.unknown_tags = unknown_tags
