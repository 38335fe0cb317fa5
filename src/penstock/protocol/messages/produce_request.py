"""ProduceRequest (key 0), versions 0 to 13, flexible from version 9 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Records, Struct, UnknownTags


class ProduceRequest(Message):
    """ProduceRequest (key 0), versions 0 to 13, flexible from version 9 on."""

    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")

    NAME = "ProduceRequest"
    API_KEY = 0
    VERSIONS = (0, 13)

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is None else topic_data
        self.unknown_tags = unknown_tags


class TopicProduceData(Struct):
    """An element of `topic_data` in ProduceRequest, versions 0 to 13."""

    __slots__ = ("name", "topic_id", "partition_data")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partition_data: list[PartitionProduceData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is None else partition_data
        self.unknown_tags = unknown_tags


class PartitionProduceData(Struct):
    """An element of `partition_data` in TopicProduceData (ProduceRequest), versions 0 to 13."""

    __slots__ = ("index", "records")

    def __init__(
        self,
        *,
        index: int = 0,
        records: Records | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.index = index
        self.records = records
        self.unknown_tags = unknown_tags
