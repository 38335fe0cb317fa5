"""FetchSnapshotRequest (key 59), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class FetchSnapshotRequest(Message):
    """FetchSnapshotRequest (key 59), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("cluster_id", "replica_id", "max_bytes", "topics")

    NAME = "FetchSnapshotRequest"
    API_KEY = 59
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[TopicSnapshot] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicSnapshot(Struct):
    """An element of `topics` in FetchSnapshotRequest, versions 0 to 1."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionSnapshot] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class PartitionSnapshot(Struct):
    """An element of `partitions` in TopicSnapshot (FetchSnapshotRequest), versions 0 to 1."""

    __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position", "replica_directory_id")

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: SnapshotId | None = None,
        position: int = 0,
        replica_directory_id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.snapshot_id = SnapshotId() if snapshot_id is None else snapshot_id
        self.position = position
        self.replica_directory_id = replica_directory_id
        self.unknown_tags = unknown_tags


class SnapshotId(Struct):
    """The value of `snapshot_id` in PartitionSnapshot (FetchSnapshotRequest), versions 0 to 1."""

    __slots__ = ("end_offset", "epoch")

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.unknown_tags = unknown_tags
