"""DescribeQuorumResponse (key 55), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeQuorumResponse(Message):
    """DescribeQuorumResponse (key 55), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("error_code", "error_message", "topics", "nodes")

    NAME = "DescribeQuorumResponse"
    API_KEY = 55
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[TopicData] | None = None,
        nodes: list[Node] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is None else topics
        self.nodes = [] if nodes is None else nodes
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in DescribeQuorumResponse, versions 0 to 2."""

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


class Node(Struct):
    """An element of `nodes` in DescribeQuorumResponse, version 2."""

    __slots__ = ("node_id", "listeners")

    def __init__(
        self,
        *,
        node_id: int = 0,
        listeners: list[Listener] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.node_id = node_id
        self.listeners = [] if listeners is None else listeners
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """An element of `partitions` in TopicData (DescribeQuorumResponse), versions 0 to 2."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] | None = None,
        observers: list[ReplicaState] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = [] if current_voters is None else current_voters
        self.observers = [] if observers is None else observers
        self.unknown_tags = unknown_tags


class Listener(Struct):
    """An element of `listeners` in Node (DescribeQuorumResponse), version 2."""

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


class ReplicaState(Struct):
    """A struct in DescribeQuorumResponse, for the fields `current_voters`, `observers`; versions 0 to 2."""

    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: bytes = bytes(16),
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp
        self.unknown_tags = unknown_tags
