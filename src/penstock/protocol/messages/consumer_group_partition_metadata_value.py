"""ConsumerGroupPartitionMetadataValue (key 4), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ConsumerGroupPartitionMetadataValue(Message):
    """ConsumerGroupPartitionMetadataValue (key 4), version 0, flexible from version 0 on."""

    __slots__ = ("topics",)

    NAME = "ConsumerGroupPartitionMetadataValue"
    API_KEY = 4
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        topics: list[TopicMetadata] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TopicMetadata(Struct):
    """An element of `topics` in ConsumerGroupPartitionMetadataValue, version 0."""

    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is None else partition_metadata
        self.unknown_tags = unknown_tags


class PartitionMetadata(Struct):
    """A struct in ConsumerGroupPartitionMetadataValue, version 0."""

    __slots__ = ("partition", "racks")

    def __init__(
        self,
        *,
        partition: int = 0,
        racks: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.racks = [] if racks is None else racks
        self.unknown_tags = unknown_tags
