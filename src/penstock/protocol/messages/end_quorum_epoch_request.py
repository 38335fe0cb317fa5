"""EndQuorumEpochRequest (key 54), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class EndQuorumEpochRequest(Message):
    """EndQuorumEpochRequest (key 54), versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("cluster_id", "topics", "leader_endpoints")

    NAME = "EndQuorumEpochRequest"
    API_KEY = 54
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[TopicData] | None = None,
        leader_endpoints: list[LeaderEndpoint] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = [] if topics is None else topics
        self.leader_endpoints = [] if leader_endpoints is None else leader_endpoints
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in EndQuorumEpochRequest, versions 0 to 1."""

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


class LeaderEndpoint(Struct):
    """An element of `leader_endpoints` in EndQuorumEpochRequest, version 1."""

    __slots__ = ("name", "host", "port")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """An element of `partitions` in TopicData (EndQuorumEpochRequest), versions 0 to 1."""

    __slots__ = (
        "partition_index",
        "leader_id",
        "leader_epoch",
        "preferred_successors",
        "preferred_candidates",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        preferred_successors: list[int] | None = None,
        preferred_candidates: list[ReplicaInfo] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.preferred_successors = [] if preferred_successors is None else preferred_successors
        self.preferred_candidates = [] if preferred_candidates is None else preferred_candidates
        self.unknown_tags = unknown_tags


class ReplicaInfo(Struct):
    """An element of `preferred_candidates` in PartitionData (EndQuorumEpochRequest), version 1."""

    __slots__ = ("candidate_id", "candidate_directory_id")

    def __init__(
        self,
        *,
        candidate_id: int = 0,
        candidate_directory_id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.candidate_id = candidate_id
        self.candidate_directory_id = candidate_directory_id
        self.unknown_tags = unknown_tags
