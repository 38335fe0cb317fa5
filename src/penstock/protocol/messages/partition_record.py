"""PartitionRecord (key 3), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class PartitionRecord(Message):
    """PartitionRecord (key 3), versions 0 to 2, flexible from version 0 on."""

    __slots__ = (
        "partition_id",
        "topic_id",
        "replicas",
        "isr",
        "removing_replicas",
        "adding_replicas",
        "leader",
        "leader_recovery_state",
        "leader_epoch",
        "partition_epoch",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )

    NAME = "PartitionRecord"
    API_KEY = 3
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = bytes(16),
        replicas: list[int] | None = None,
        isr: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[bytes] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = [] if replicas is None else replicas
        self.isr = [] if isr is None else isr
        self.removing_replicas = [] if removing_replicas is None else removing_replicas
        self.adding_replicas = [] if adding_replicas is None else adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = [] if directories is None else directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.unknown_tags = unknown_tags
