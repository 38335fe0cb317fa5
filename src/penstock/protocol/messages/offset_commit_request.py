"""OffsetCommitRequest (key 8), versions 0 to 10, flexible from version 8 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class OffsetCommitRequest(Message):
    """OffsetCommitRequest (key 8), versions 0 to 10, flexible from version 8 on."""

    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
    )

    NAME = "OffsetCommitRequest"
    API_KEY = 8
    VERSIONS = (0, 10)

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class OffsetCommitRequestTopic(Struct):
    """An element of `topics` in OffsetCommitRequest, versions 0 to 10."""

    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[OffsetCommitRequestPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class OffsetCommitRequestPartition(Struct):
    """An element of `partitions` in OffsetCommitRequestTopic (OffsetCommitRequest), versions 0 to 10."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "commit_timestamp",
        "committed_metadata",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        commit_timestamp: int = -1,
        committed_metadata: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.commit_timestamp = commit_timestamp
        self.committed_metadata = committed_metadata
        self.unknown_tags = unknown_tags
