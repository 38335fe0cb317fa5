"""ShareGroupCurrentMemberAssignmentValue (key 14), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ShareGroupCurrentMemberAssignmentValue(Message):
    """ShareGroupCurrentMemberAssignmentValue (key 14), version 0, flexible from version 0 on."""

    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions")

    NAME = "ShareGroupCurrentMemberAssignmentValue"
    API_KEY = 14
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is None else assigned_partitions
        self.unknown_tags = unknown_tags


class TopicPartitions(Struct):
    """An element of `assigned_partitions` in ShareGroupCurrentMemberAssignmentValue, version 0."""

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
