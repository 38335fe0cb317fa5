"""PartitionChangeRecord (key 5), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class PartitionChangeRecord(Message):
    """PartitionChangeRecord (key 5), versions 0 to 2, flexible from version 0 on."""

    __slots__ = (
        "partition_id",
        "topic_id",
        "isr",
        "leader",
        "replicas",
        "removing_replicas",
        "adding_replicas",
        "leader_recovery_state",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )

    NAME = "PartitionChangeRecord"
    API_KEY = 5
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = bytes(16),
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[bytes] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.isr = isr
        self.leader = leader
        self.replicas = replicas
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader_recovery_state = leader_recovery_state
        self.directories = directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.unknown_tags = unknown_tags
