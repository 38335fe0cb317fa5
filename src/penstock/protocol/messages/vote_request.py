"""VoteRequest (key 52), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class VoteRequest(Message):
    """VoteRequest (key 52), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("cluster_id", "voter_id", "topics")

    NAME = "VoteRequest"
    API_KEY = 52
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in VoteRequest, versions 0 to 2."""

    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """An element of `partitions` in TopicData (VoteRequest), versions 0 to 2."""

    __slots__ = (
        "partition_index",
        "replica_epoch",
        "replica_id",
        "replica_directory_id",
        "voter_directory_id",
        "last_offset_epoch",
        "last_offset",
        "pre_vote",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: bytes = bytes(16),
        voter_directory_id: bytes = bytes(16),
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.replica_epoch = replica_epoch
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.voter_directory_id = voter_directory_id
        self.last_offset_epoch = last_offset_epoch
        self.last_offset = last_offset
        self.pre_vote = pre_vote
        self.unknown_tags = unknown_tags
