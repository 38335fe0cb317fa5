"""FetchSnapshotResponse (key 59), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import MadeLate, Message, Records, Struct, UnknownTags


class FetchSnapshotResponse(Message):
    """FetchSnapshotResponse (key 59), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "topics", "node_endpoints")

    NAME = "FetchSnapshotResponse"
    API_KEY = 59
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[TopicSnapshot] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is None else topics
        self.node_endpoints = [] if node_endpoints is None else node_endpoints
        self.unknown_tags = unknown_tags


class TopicSnapshot(Struct):
    """An element of `topics` in FetchSnapshotResponse, versions 0 to 1."""

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


class NodeEndpoint(Struct):
    """An element of `node_endpoints` in FetchSnapshotResponse, version 1."""

    __slots__ = ("node_id", "host", "port")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.unknown_tags = unknown_tags


class PartitionSnapshot(Struct):
    """An element of `partitions` in TopicSnapshot (FetchSnapshotResponse), versions 0 to 1."""

    __slots__ = (
        "index",
        "error_code",
        "snapshot_id",
        "_current_leader",
        "size",
        "position",
        "unaligned_records",
    )

    current_leader = MadeLate(lambda: LeaderIdAndEpoch())

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: SnapshotId | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        size: int = 0,
        position: int = 0,
        unaligned_records: Records | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.snapshot_id = SnapshotId() if snapshot_id is None else snapshot_id
        self._current_leader = current_leader
        self.size = size
        self.position = position
        self.unaligned_records = unaligned_records
        self.unknown_tags = unknown_tags


class SnapshotId(Struct):
    """The value of `snapshot_id` in PartitionSnapshot (FetchSnapshotResponse), versions 0 to 1."""

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


class LeaderIdAndEpoch(Struct):
    """The value of `current_leader` in PartitionSnapshot (FetchSnapshotResponse), versions 0 to 1."""

    __slots__ = ("leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags
