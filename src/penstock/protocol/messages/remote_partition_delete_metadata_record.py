"""RemotePartitionDeleteMetadataRecord (key 2), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class RemotePartitionDeleteMetadataRecord(Message):
    """RemotePartitionDeleteMetadataRecord (key 2), version 0, flexible from version 0 on."""

    __slots__ = ("topic_id_partition", "broker_id", "event_timestamp_ms", "remote_partition_delete_state")

    NAME = "RemotePartitionDeleteMetadataRecord"
    API_KEY = 2
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        topic_id_partition: TopicIdPartitionEntry | None = None,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id_partition = (
            TopicIdPartitionEntry() if topic_id_partition is None else topic_id_partition
        )
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.remote_partition_delete_state = remote_partition_delete_state
        self.unknown_tags = unknown_tags


class TopicIdPartitionEntry(Struct):
    """The value of `topic_id_partition` in RemotePartitionDeleteMetadataRecord, version 0."""

    __slots__ = ("name", "id", "partition")

    def __init__(
        self,
        *,
        name: str = "",
        id: bytes = bytes(16),
        partition: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.id = id
        self.partition = partition
        self.unknown_tags = unknown_tags
