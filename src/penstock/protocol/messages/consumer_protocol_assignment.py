"""ConsumerProtocolAssignment, versions 0 to 3. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ConsumerProtocolAssignment(Message):
    """ConsumerProtocolAssignment, versions 0 to 3."""

    __slots__ = ("assigned_partitions", "user_data")

    NAME = "ConsumerProtocolAssignment"
    API_KEY = None
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        assigned_partitions: list[TopicPartition] | None = None,
        user_data: bytes | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is None else assigned_partitions
        self.user_data = user_data
        self.unknown_tags = unknown_tags


class TopicPartition(Struct):
    """An element of `assigned_partitions` in ConsumerProtocolAssignment, versions 0 to 3."""

    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags
