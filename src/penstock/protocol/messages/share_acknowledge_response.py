"""ShareAcknowledgeResponse (key 79), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ShareAcknowledgeResponse(Message):
    """ShareAcknowledgeResponse (key 79), versions 0 to 2, flexible from version 0 on."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )

    NAME = "ShareAcknowledgeResponse"
    API_KEY = 79
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is None else responses
        self.node_endpoints = [] if node_endpoints is None else node_endpoints
        self.unknown_tags = unknown_tags


class ShareAcknowledgeTopicResponse(Struct):
    """An element of `responses` in ShareAcknowledgeResponse, versions 0 to 2."""

    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class NodeEndpoint(Struct):
    """An element of `node_endpoints` in ShareAcknowledgeResponse, versions 0 to 2."""

    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """A struct in ShareAcknowledgeResponse, versions 0 to 2."""

    __slots__ = ("partition_index", "error_code", "error_message", "current_leader")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.unknown_tags = unknown_tags


class LeaderIdAndEpoch(Struct):
    """The value of `current_leader` in PartitionData (ShareAcknowledgeResponse), versions 0 to 2."""

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
