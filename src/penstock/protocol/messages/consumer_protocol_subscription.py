"""ConsumerProtocolSubscription, versions 0 to 3. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ConsumerProtocolSubscription(Message):
    """ConsumerProtocolSubscription, versions 0 to 3."""

    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")

    NAME = "ConsumerProtocolSubscription"
    API_KEY = None
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        topics: list[str] | None = None,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] | None = None,
        generation_id: int = -1,
        rack_id: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is None else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
        self.unknown_tags = unknown_tags


class TopicPartition(Struct):
    """An element of `owned_partitions` in ConsumerProtocolSubscription, versions 1 to 3."""

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
