"""ShareGroupStatePartitionMetadataValue (key 15), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ShareGroupStatePartitionMetadataValue(Message):
    """ShareGroupStatePartitionMetadataValue (key 15), version 0, flexible from version 0 on."""

    __slots__ = ("initializing_topics", "initialized_topics", "deleting_topics")

    NAME = "ShareGroupStatePartitionMetadataValue"
    API_KEY = 15
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        initializing_topics: list[TopicPartitionsInfo] | None = None,
        initialized_topics: list[TopicPartitionsInfo] | None = None,
        deleting_topics: list[TopicInfo] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.initializing_topics = [] if initializing_topics is None else initializing_topics
        self.initialized_topics = [] if initialized_topics is None else initialized_topics
        self.deleting_topics = [] if deleting_topics is None else deleting_topics
        self.unknown_tags = unknown_tags


class TopicPartitionsInfo(Struct):
    """A struct in ShareGroupStatePartitionMetadataValue, version 0."""

    __slots__ = ("topic_id", "topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        topic_name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class TopicInfo(Struct):
    """An element of `deleting_topics` in ShareGroupStatePartitionMetadataValue, version 0."""

    __slots__ = ("topic_id", "topic_name")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        topic_name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.unknown_tags = unknown_tags
