"""BeginQuorumEpochRequest (key 53), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class BeginQuorumEpochRequest(Message):
    """BeginQuorumEpochRequest (key 53), versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("cluster_id", "voter_id", "topics", "leader_endpoints")

    NAME = "BeginQuorumEpochRequest"
    API_KEY = 53
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[TopicData] | None = None,
        leader_endpoints: list[LeaderEndpoint] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is None else topics
        self.leader_endpoints = [] if leader_endpoints is None else leader_endpoints
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in BeginQuorumEpochRequest, versions 0 to 1."""

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
    """An element of `leader_endpoints` in BeginQuorumEpochRequest, version 1."""

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
    """An element of `partitions` in TopicData (BeginQuorumEpochRequest), versions 0 to 1."""

    __slots__ = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        voter_directory_id: bytes = bytes(16),
        leader_id: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.voter_directory_id = voter_directory_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags
