"""EndQuorumEpochResponse (key 54), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class EndQuorumEpochResponse(Message):
    """EndQuorumEpochResponse (key 54), versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("error_code", "topics", "node_endpoints")

    NAME = "EndQuorumEpochResponse"
    API_KEY = 54
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[TopicData] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is None else topics
        self.node_endpoints = [] if node_endpoints is None else node_endpoints
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in EndQuorumEpochResponse, versions 0 to 1."""

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


class NodeEndpoint(Struct):
    """An element of `node_endpoints` in EndQuorumEpochResponse, version 1."""

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


class PartitionData(Struct):
    """An element of `partitions` in TopicData (EndQuorumEpochResponse), versions 0 to 1."""

    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags
