"""ShareAcknowledgeRequest (key 79), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ShareAcknowledgeRequest(Message):
    """ShareAcknowledgeRequest (key 79), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")

    NAME = "ShareAcknowledgeRequest"
    API_KEY = 79
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[AcknowledgeTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class AcknowledgeTopic(Struct):
    """An element of `topics` in ShareAcknowledgeRequest, versions 0 to 2."""

    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[AcknowledgePartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class AcknowledgePartition(Struct):
    """An element of `partitions` in AcknowledgeTopic (ShareAcknowledgeRequest), versions 0 to 2."""

    __slots__ = ("partition_index", "acknowledgement_batches")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is None else acknowledgement_batches
        self.unknown_tags = unknown_tags


class AcknowledgementBatch(Struct):
    """A struct in ShareAcknowledgeRequest, versions 0 to 2."""

    __slots__ = ("first_offset", "last_offset", "acknowledge_types")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is None else acknowledge_types
        self.unknown_tags = unknown_tags
