"""ElectLeadersRequest (key 43), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ElectLeadersRequest(Message):
    """ElectLeadersRequest (key 43), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("election_type", "topic_partitions", "timeout_ms")

    NAME = "ElectLeadersRequest"
    API_KEY = 43
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | tuple[()] | None = (),
        timeout_ms: int = 60000,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions: list[TopicPartitions] | None = (
            [] if isinstance(topic_partitions, tuple) else topic_partitions
        )
        self.timeout_ms = timeout_ms
        self.unknown_tags = unknown_tags


class TopicPartitions(Struct):
    """An element of `topic_partitions` in ElectLeadersRequest, versions 0 to 2."""

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
