"""VoteResponse (key 52), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class VoteResponse(Message):
    """VoteResponse (key 52), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("error_code", "topics", "node_endpoints")

    NAME = "VoteResponse"
    API_KEY = 52
    VERSIONS = (0, 2)

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
    """An element of `topics` in VoteResponse, versions 0 to 2."""

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
    """An element of `node_endpoints` in VoteResponse, versions 1 to 2."""

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
    """An element of `partitions` in TopicData (VoteResponse), versions 0 to 2."""

    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "vote_granted")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        vote_granted: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.vote_granted = vote_granted
        self.unknown_tags = unknown_tags
