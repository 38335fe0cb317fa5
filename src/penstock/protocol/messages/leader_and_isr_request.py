"""LeaderAndIsrRequest (key 4), versions 0 to 7, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class LeaderAndIsrRequest(Message):
    """LeaderAndIsrRequest (key 4), versions 0 to 7, flexible from version 4 on."""

    __slots__ = (
        "controller_id",
        "is_k_raft_controller",
        "controller_epoch",
        "broker_epoch",
        "type",
        "ungrouped_partition_states",
        "topic_states",
        "live_leaders",
    )

    NAME = "LeaderAndIsrRequest"
    API_KEY = 4
    VERSIONS = (0, 7)

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_k_raft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        type: int = 0,
        ungrouped_partition_states: list[LeaderAndIsrPartitionState] | None = None,
        topic_states: list[LeaderAndIsrTopicState] | None = None,
        live_leaders: list[LeaderAndIsrLiveLeader] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.controller_id = controller_id
        self.is_k_raft_controller = is_k_raft_controller
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.type = type
        self.ungrouped_partition_states = (
            [] if ungrouped_partition_states is None else ungrouped_partition_states
        )
        self.topic_states = [] if topic_states is None else topic_states
        self.live_leaders = [] if live_leaders is None else live_leaders
        self.unknown_tags = unknown_tags


class LeaderAndIsrPartitionState(Struct):
    """A struct in LeaderAndIsrRequest, versions 0 to 7."""

    __slots__ = (
        "topic_name",
        "partition_index",
        "controller_epoch",
        "leader",
        "leader_epoch",
        "isr",
        "partition_epoch",
        "replicas",
        "adding_replicas",
        "removing_replicas",
        "is_new",
        "leader_recovery_state",
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
        partition_epoch: int = 0,
        replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        is_new: bool = False,
        leader_recovery_state: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.controller_epoch = controller_epoch
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is None else isr
        self.partition_epoch = partition_epoch
        self.replicas = [] if replicas is None else replicas
        self.adding_replicas = [] if adding_replicas is None else adding_replicas
        self.removing_replicas = [] if removing_replicas is None else removing_replicas
        self.is_new = is_new
        self.leader_recovery_state = leader_recovery_state
        self.unknown_tags = unknown_tags


class LeaderAndIsrTopicState(Struct):
    """An element of `topic_states` in LeaderAndIsrRequest, versions 2 to 7."""

    __slots__ = ("topic_name", "topic_id", "partition_states")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = bytes(16),
        partition_states: list[LeaderAndIsrPartitionState] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition_states = [] if partition_states is None else partition_states
        self.unknown_tags = unknown_tags


class LeaderAndIsrLiveLeader(Struct):
    """An element of `live_leaders` in LeaderAndIsrRequest, versions 0 to 7."""

    __slots__ = ("broker_id", "host_name", "port")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host_name: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.host_name = host_name
        self.port = port
        self.unknown_tags = unknown_tags
