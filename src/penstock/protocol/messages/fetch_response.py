"""FetchResponse (key 1), versions 0 to 18, flexible from version 12 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import MadeLate, Message, Records, Struct, UnknownTags


class FetchResponse(Message):
    """FetchResponse (key 1), versions 0 to 18, flexible from version 12 on."""

    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")

    NAME = "FetchResponse"
    API_KEY = 1
    VERSIONS = (0, 18)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is None else responses
        self.node_endpoints = [] if node_endpoints is None else node_endpoints
        self.unknown_tags = unknown_tags


class FetchableTopicResponse(Struct):
    """An element of `responses` in FetchResponse, versions 0 to 18."""

    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class NodeEndpoint(Struct):
    """An element of `node_endpoints` in FetchResponse, versions 16 to 18."""

    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.unknown_tags = unknown_tags


class PartitionData(Struct):
    """An element of `partitions` in FetchableTopicResponse (FetchResponse), versions 0 to 18."""

    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "_diverging_epoch",
        "_current_leader",
        "_snapshot_id",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
    )

    diverging_epoch = MadeLate(lambda: EpochEndOffset())
    current_leader = MadeLate(lambda: LeaderIdAndEpoch())
    snapshot_id = MadeLate(lambda: SnapshotId())

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | tuple[()] | None = (),
        preferred_read_replica: int = -1,
        records: Records | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self._diverging_epoch = diverging_epoch
        self._current_leader = current_leader
        self._snapshot_id = snapshot_id
        self.aborted_transactions: list[AbortedTransaction] | None = (
            [] if isinstance(aborted_transactions, tuple) else aborted_transactions
        )
        self.preferred_read_replica = preferred_read_replica
        self.records = records
        self.unknown_tags = unknown_tags


class EpochEndOffset(Struct):
    """The value of `diverging_epoch` in PartitionData (FetchResponse), versions 12 to 18."""

    __slots__ = ("epoch", "end_offset")

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset
        self.unknown_tags = unknown_tags


class LeaderIdAndEpoch(Struct):
    """The value of `current_leader` in PartitionData (FetchResponse), versions 12 to 18."""

    __slots__ = ("leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags


class SnapshotId(Struct):
    """The value of `snapshot_id` in PartitionData (FetchResponse), versions 12 to 18."""

    __slots__ = ("end_offset", "epoch")

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.unknown_tags = unknown_tags


class AbortedTransaction(Struct):
    """An element of `aborted_transactions` in PartitionData (FetchResponse), versions 4 to 18."""

    __slots__ = ("producer_id", "first_offset")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.unknown_tags = unknown_tags
