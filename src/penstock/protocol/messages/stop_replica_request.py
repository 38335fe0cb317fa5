"""StopReplicaRequest (key 5), versions 0 to 4, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StopReplicaRequest(Message):
    """StopReplicaRequest (key 5), versions 0 to 4, flexible from version 2 on."""

    __slots__ = (
        "controller_id",
        "is_k_raft_controller",
        "controller_epoch",
        "broker_epoch",
        "delete_partitions",
        "ungrouped_partitions",
        "topics",
        "topic_states",
    )

    NAME = "StopReplicaRequest"
    API_KEY = 5
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_k_raft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        delete_partitions: bool = False,
        ungrouped_partitions: list[StopReplicaPartitionV0] | None = None,
        topics: list[StopReplicaTopicV1] | None = None,
        topic_states: list[StopReplicaTopicState] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.controller_id = controller_id
        self.is_k_raft_controller = is_k_raft_controller
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.delete_partitions = delete_partitions
        self.ungrouped_partitions = [] if ungrouped_partitions is None else ungrouped_partitions
        self.topics = [] if topics is None else topics
        self.topic_states = [] if topic_states is None else topic_states
        self.unknown_tags = unknown_tags


class StopReplicaPartitionV0(Struct):
    """An element of `ungrouped_partitions` in StopReplicaRequest, version 0."""

    __slots__ = ("topic_name", "partition_index")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags


class StopReplicaTopicV1(Struct):
    """An element of `topics` in StopReplicaRequest, versions 1 to 2."""

    __slots__ = ("name", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes
        self.unknown_tags = unknown_tags


class StopReplicaTopicState(Struct):
    """An element of `topic_states` in StopReplicaRequest, versions 3 to 4."""

    __slots__ = ("topic_name", "partition_states")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_states: list[StopReplicaPartitionState] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partition_states = [] if partition_states is None else partition_states
        self.unknown_tags = unknown_tags


class StopReplicaPartitionState(Struct):
    """An element of `partition_states` in StopReplicaTopicState (StopReplicaRequest), versions 3 to 4."""

    __slots__ = ("partition_index", "leader_epoch", "delete_partition")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = -1,
        delete_partition: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.delete_partition = delete_partition
        self.unknown_tags = unknown_tags
