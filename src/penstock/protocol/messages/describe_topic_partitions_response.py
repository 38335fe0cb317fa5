"""DescribeTopicPartitionsResponse (key 75), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeTopicPartitionsResponse(Message):
    """DescribeTopicPartitionsResponse (key 75), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "topics", "next_cursor")

    NAME = "DescribeTopicPartitionsResponse"
    API_KEY = 75
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] | None = None,
        next_cursor: Cursor | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.next_cursor = next_cursor
        self.unknown_tags = unknown_tags


class DescribeTopicPartitionsResponseTopic(Struct):
    """An element of `topics` in DescribeTopicPartitionsResponse, version 0."""

    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = bytes(16),
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is None else partitions
        self.topic_authorized_operations = topic_authorized_operations
        self.unknown_tags = unknown_tags


class Cursor(Struct):
    """The value of `next_cursor` in DescribeTopicPartitionsResponse, version 0."""

    __slots__ = ("topic_name", "partition_index")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags


class DescribeTopicPartitionsResponsePartition(Struct):
    """A struct in DescribeTopicPartitionsResponse, version 0."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | None = None,
        isr_nodes: list[int] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is None else replica_nodes
        self.isr_nodes = [] if isr_nodes is None else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is None else offline_replicas
        self.unknown_tags = unknown_tags
