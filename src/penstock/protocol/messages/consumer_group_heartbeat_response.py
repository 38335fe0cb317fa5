"""ConsumerGroupHeartbeatResponse (key 68), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ConsumerGroupHeartbeatResponse(Message):
    """ConsumerGroupHeartbeatResponse (key 68), versions 0 to 1, flexible from version 0 on."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )

    NAME = "ConsumerGroupHeartbeatResponse"
    API_KEY = 68
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
        self.unknown_tags = unknown_tags


class Assignment(Struct):
    """The value of `assignment` in ConsumerGroupHeartbeatResponse, versions 0 to 1."""

    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions
        self.unknown_tags = unknown_tags


class TopicPartitions(Struct):
    """An element of `topic_partitions` in Assignment (ConsumerGroupHeartbeatResponse), versions 0 to 1."""

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
