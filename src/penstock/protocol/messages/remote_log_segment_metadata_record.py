"""RemoteLogSegmentMetadataRecord (key 0), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class RemoteLogSegmentMetadataRecord(Message):
    """RemoteLogSegmentMetadataRecord (key 0), version 0, flexible from version 0 on."""

    __slots__ = (
        "remote_log_segment_id",
        "start_offset",
        "end_offset",
        "broker_id",
        "max_timestamp_ms",
        "event_timestamp_ms",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "custom_metadata",
        "remote_log_segment_state",
        "txn_index_empty",
    )

    NAME = "RemoteLogSegmentMetadataRecord"
    API_KEY = 0
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentIdEntry | None = None,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[SegmentLeaderEpochEntry] | None = None,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.remote_log_segment_id = (
            RemoteLogSegmentIdEntry() if remote_log_segment_id is None else remote_log_segment_id
        )
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is None else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
        self.unknown_tags = unknown_tags


class RemoteLogSegmentIdEntry(Struct):
    """The value of `remote_log_segment_id` in RemoteLogSegmentMetadataRecord, version 0."""

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


class SegmentLeaderEpochEntry(Struct):
    """An element of `segment_leader_epochs` in RemoteLogSegmentMetadataRecord, version 0."""

    __slots__ = ("leader_epoch", "offset")

    def __init__(
        self,
        *,
        leader_epoch: int = 0,
        offset: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.unknown_tags = unknown_tags


class TopicIdPartitionEntry(Struct):
    """A struct in RemoteLogSegmentMetadataRecord, version 0."""

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
