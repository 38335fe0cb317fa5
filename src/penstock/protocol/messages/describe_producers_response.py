"""DescribeProducersResponse (key 61), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeProducersResponse(Message):
    """DescribeProducersResponse (key 61), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "topics")

    NAME = "DescribeProducersResponse"
    API_KEY = 61
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicResponse(Struct):
    """An element of `topics` in DescribeProducersResponse, version 0."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class PartitionResponse(Struct):
    """An element of `partitions` in TopicResponse (DescribeProducersResponse), version 0."""

    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is None else active_producers
        self.unknown_tags = unknown_tags


class ProducerState(Struct):
    """An element of `active_producers` in PartitionResponse (DescribeProducersResponse), version 0."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset
        self.unknown_tags = unknown_tags
