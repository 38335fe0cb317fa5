"""FetchRequest (key 1), versions 0 to 18, flexible from version 12 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import MadeLate, Message, Struct, UnknownTags


class FetchRequest(Message):
    """FetchRequest (key 1), versions 0 to 18, flexible from version 12 on."""

    __slots__ = (
        "cluster_id",
        "replica_id",
        "_replica_state",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )

    replica_state = MadeLate(lambda: ReplicaState())

    NAME = "FetchRequest"
    API_KEY = 1
    VERSIONS = (0, 18)

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
        rack_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self._replica_state = replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is None else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is None else forgotten_topics_data
        self.rack_id = rack_id
        self.unknown_tags = unknown_tags


class ReplicaState(Struct):
    """The value of `replica_state` in FetchRequest, versions 15 to 18."""

    __slots__ = ("replica_id", "replica_epoch")

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.unknown_tags = unknown_tags


class FetchTopic(Struct):
    """An element of `topics` in FetchRequest, versions 0 to 18."""

    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[FetchPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class ForgottenTopic(Struct):
    """An element of `forgotten_topics_data` in FetchRequest, versions 7 to 18."""

    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class FetchPartition(Struct):
    """An element of `partitions` in FetchTopic (FetchRequest), versions 0 to 18."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = bytes(16),
        high_watermark: int = 9223372036854775807,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark
        self.unknown_tags = unknown_tags
