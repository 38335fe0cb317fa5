"""AlterPartitionResponse (key 56), versions 0 to 3, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterPartitionResponse(Message):
    """AlterPartitionResponse (key 56), versions 0 to 3, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "topics")

    NAME = "AlterPartitionResponse"
    API_KEY = 56
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicData(Struct):
    """An element of `topics` in AlterPartitionResponse, versions 0 to 3."""

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
    """An element of `partitions` in TopicData (AlterPartitionResponse), versions 0 to 3."""

    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
        "isr",
        "leader_recovery_state",
        "partition_epoch",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] | None = None,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is None else isr
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch
        self.unknown_tags = unknown_tags
