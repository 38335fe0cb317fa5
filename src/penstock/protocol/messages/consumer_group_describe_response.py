"""ConsumerGroupDescribeResponse (key 69), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ConsumerGroupDescribeResponse(Message):
    """ConsumerGroupDescribeResponse (key 69), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "groups")

    NAME = "ConsumerGroupDescribeResponse"
    API_KEY = 69
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups
        self.unknown_tags = unknown_tags


class DescribedGroup(Struct):
    """An element of `groups` in ConsumerGroupDescribeResponse, versions 0 to 1."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is None else members
        self.authorized_operations = authorized_operations
        self.unknown_tags = unknown_tags


class Member(Struct):
    """An element of `members` in DescribedGroup (ConsumerGroupDescribeResponse), versions 0 to 1."""

    __slots__ = (
        "member_id",
        "instance_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "assignment",
        "target_assignment",
        "member_type",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        member_type: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is None else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.member_type = member_type
        self.unknown_tags = unknown_tags


class Assignment(Struct):
    """A struct in ConsumerGroupDescribeResponse, versions 0 to 1."""

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
    """An element of `topic_partitions` in Assignment (ConsumerGroupDescribeResponse), versions 0 to 1."""

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
