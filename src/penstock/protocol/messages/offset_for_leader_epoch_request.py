"""OffsetForLeaderEpochRequest (key 23), versions 0 to 4, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class OffsetForLeaderEpochRequest(Message):
    """OffsetForLeaderEpochRequest (key 23), versions 0 to 4, flexible from version 4 on."""

    __slots__ = ("replica_id", "topics")

    NAME = "OffsetForLeaderEpochRequest"
    API_KEY = 23
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class OffsetForLeaderTopic(Struct):
    """An element of `topics` in OffsetForLeaderEpochRequest, versions 0 to 4."""

    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class OffsetForLeaderPartition(Struct):
    """An element of `partitions` in OffsetForLeaderTopic (OffsetForLeaderEpochRequest), versions 0 to 4."""

    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags
