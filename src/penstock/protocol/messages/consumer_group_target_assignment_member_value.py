"""ConsumerGroupTargetAssignmentMemberValue (key 7), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ConsumerGroupTargetAssignmentMemberValue(Message):
    """ConsumerGroupTargetAssignmentMemberValue (key 7), version 0, flexible from version 0 on."""

    __slots__ = ("topic_partitions",)

    NAME = "ConsumerGroupTargetAssignmentMemberValue"
    API_KEY = 7
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions
        self.unknown_tags = unknown_tags


class TopicPartition(Struct):
    """An element of `topic_partitions` in ConsumerGroupTargetAssignmentMemberValue, version 0."""

    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags
