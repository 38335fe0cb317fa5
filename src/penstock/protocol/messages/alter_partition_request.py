"""AlterPartitionRequest (key 56), versions 0 to 3, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterPartitionRequest(Message):
    """AlterPartitionRequest (key 56), versions 0 to 3, flexible from version 0 on."""

    __slots__ = ("broker_id", "broker_epoch", "topics")

    NAME = "AlterPartitionRequest"
    API_KEY = 56
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in AlterPartitionRequest, versions 0 to 3."""

    __slots__ = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """An element of `partitions` in TopicData (AlterPartitionRequest), versions 0 to 3."""

    __slots__ = (
        "partition_index",
        "leader_epoch",
        "new_isr",
        "new_isr_with_epochs",
        "leader_recovery_state",
        "partition_epoch",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] | None = None,
        new_isr_with_epochs: list[BrokerState] | None = None,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.new_isr = [] if new_isr is None else new_isr
        self.new_isr_with_epochs = [] if new_isr_with_epochs is None else new_isr_with_epochs
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch
        self.unknown_tags = unknown_tags


class BrokerState(Struct):
    """An element of `new_isr_with_epochs` in PartitionData (AlterPartitionRequest), version 3."""

    __slots__ = ("broker_id", "broker_epoch")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tags = unknown_tags
