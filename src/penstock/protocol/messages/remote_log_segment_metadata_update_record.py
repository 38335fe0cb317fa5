"""RemoteLogSegmentMetadataUpdateRecord (key 1), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class RemoteLogSegmentMetadataUpdateRecord(Message):
    """RemoteLogSegmentMetadataUpdateRecord (key 1), version 0, flexible from version 0 on."""

    __slots__ = (
        "remote_log_segment_id",
        "broker_id",
        "event_timestamp_ms",
        "custom_metadata",
        "remote_log_segment_state",
    )

    NAME = "RemoteLogSegmentMetadataUpdateRecord"
    API_KEY = 1
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentIdEntry | None = None,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.remote_log_segment_id = (
            RemoteLogSegmentIdEntry() if remote_log_segment_id is None else remote_log_segment_id
        )
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.unknown_tags = unknown_tags


class RemoteLogSegmentIdEntry(Struct):
    """The value of `remote_log_segment_id` in RemoteLogSegmentMetadataUpdateRecord, version 0."""

    __slots__ = ("topic_id_partition", "id")

    def __init__(
        self,
        *,
        topic_id_partition: TopicIdPartitionEntry | None = None,
        id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id_partition = (
            TopicIdPartitionEntry() if topic_id_partition is None else topic_id_partition
        )
        self.id = id
        self.unknown_tags = unknown_tags


class TopicIdPartitionEntry(Struct):
    """A struct in RemoteLogSegmentMetadataUpdateRecord, version 0."""

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
