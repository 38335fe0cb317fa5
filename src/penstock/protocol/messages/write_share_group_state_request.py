"""WriteShareGroupStateRequest (key 85), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class WriteShareGroupStateRequest(Message):
    """WriteShareGroupStateRequest (key 85), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("group_id", "topics")

    NAME = "WriteShareGroupStateRequest"
    API_KEY = 85
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[WriteStateData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class WriteStateData(Struct):
    """An element of `topics` in WriteShareGroupStateRequest, versions 0 to 1."""

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


class PartitionData(Struct):
    """An element of `partitions` in WriteStateData (WriteShareGroupStateRequest), versions 0 to 1."""

    __slots__ = (
        "partition",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "state_batches",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[StateBatch] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is None else state_batches
        self.unknown_tags = unknown_tags


class StateBatch(Struct):
    """An element of `state_batches` in PartitionData (WriteShareGroupStateRequest), versions 0 to 1."""

    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count
        self.unknown_tags = unknown_tags
