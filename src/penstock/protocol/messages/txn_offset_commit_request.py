"""TxnOffsetCommitRequest (key 28), versions 0 to 6, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class TxnOffsetCommitRequest(Message):
    """TxnOffsetCommitRequest (key 28), versions 0 to 6, flexible from version 3 on."""

    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "topics",
    )

    NAME = "TxnOffsetCommitRequest"
    API_KEY = 28
    VERSIONS = (0, 6)

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class TxnOffsetCommitRequestTopic(Struct):
    """An element of `topics` in TxnOffsetCommitRequest, versions 0 to 6."""

    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[TxnOffsetCommitRequestPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class TxnOffsetCommitRequestPartition(Struct):
    """An element of `partitions` in TxnOffsetCommitRequestTopic (TxnOffsetCommitRequest), versions 0 to 6."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata
        self.unknown_tags = unknown_tags
