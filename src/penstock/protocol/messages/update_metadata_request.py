"""UpdateMetadataRequest (key 6), versions 0 to 8, flexible from version 6 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class UpdateMetadataRequest(Message):
    """UpdateMetadataRequest (key 6), versions 0 to 8, flexible from version 6 on."""

    __slots__ = (
        "controller_id",
        "is_k_raft_controller",
        "type",
        "controller_epoch",
        "broker_epoch",
        "ungrouped_partition_states",
        "topic_states",
        "live_brokers",
    )

    NAME = "UpdateMetadataRequest"
    API_KEY = 6
    VERSIONS = (0, 8)

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_k_raft_controller: bool = False,
        type: int = 0,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        ungrouped_partition_states: list[UpdateMetadataPartitionState] | None = None,
        topic_states: list[UpdateMetadataTopicState] | None = None,
        live_brokers: list[UpdateMetadataBroker] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.controller_id = controller_id
        self.is_k_raft_controller = is_k_raft_controller
        self.type = type
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.ungrouped_partition_states = (
            [] if ungrouped_partition_states is None else ungrouped_partition_states
        )
        self.topic_states = [] if topic_states is None else topic_states
        self.live_brokers = [] if live_brokers is None else live_brokers
        self.unknown_tags = unknown_tags


class UpdateMetadataPartitionState(Struct):
    """A struct in UpdateMetadataRequest, versions 0 to 8."""

    __slots__ = (
        "topic_name",
        "partition_index",
        "controller_epoch",
        "leader",
        "leader_epoch",
        "isr",
        "zk_version",
        "replicas",
        "offline_replicas",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        controller_epoch: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        isr: list[int] | None = None,
        zk_version: int = 0,
        replicas: list[int] | None = None,
        offline_replicas: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.controller_epoch = controller_epoch
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is None else isr
        self.zk_version = zk_version
        self.replicas = [] if replicas is None else replicas
        self.offline_replicas = [] if offline_replicas is None else offline_replicas
        self.unknown_tags = unknown_tags


class UpdateMetadataTopicState(Struct):
    """An element of `topic_states` in UpdateMetadataRequest, versions 5 to 8."""

    __slots__ = ("topic_name", "topic_id", "partition_states")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = bytes(16),
        partition_states: list[UpdateMetadataPartitionState] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition_states = [] if partition_states is None else partition_states
        self.unknown_tags = unknown_tags


class UpdateMetadataBroker(Struct):
    """An element of `live_brokers` in UpdateMetadataRequest, versions 0 to 8."""

    __slots__ = ("id", "v0_host", "v0_port", "endpoints", "rack")

    def __init__(
        self,
        *,
        id: int = 0,
        v0_host: str = "",
        v0_port: int = 0,
        endpoints: list[UpdateMetadataEndpoint] | None = None,
        rack: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.id = id
        self.v0_host = v0_host
        self.v0_port = v0_port
        self.endpoints = [] if endpoints is None else endpoints
        self.rack = rack
        self.unknown_tags = unknown_tags


class UpdateMetadataEndpoint(Struct):
    """An element of `endpoints` in UpdateMetadataBroker (UpdateMetadataRequest), versions 1 to 8."""

    __slots__ = ("port", "host", "listener", "security_protocol")

    def __init__(
        self,
        *,
        port: int = 0,
        host: str = "",
        listener: str = "",
        security_protocol: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.port = port
        self.host = host
        self.listener = listener
        self.security_protocol = security_protocol
        self.unknown_tags = unknown_tags
