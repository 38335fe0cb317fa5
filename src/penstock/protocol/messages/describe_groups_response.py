"""DescribeGroupsResponse (key 15), versions 0 to 6, flexible from version 5 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeGroupsResponse(Message):
    """DescribeGroupsResponse (key 15), versions 0 to 6, flexible from version 5 on."""

    __slots__ = ("throttle_time_ms", "groups")

    NAME = "DescribeGroupsResponse"
    API_KEY = 15
    VERSIONS = (0, 6)

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
    """An element of `groups` in DescribeGroupsResponse, versions 0 to 6."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
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
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] | None = None,
        authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is None else members
        self.authorized_operations = authorized_operations
        self.unknown_tags = unknown_tags


class DescribedGroupMember(Struct):
    """An element of `members` in DescribedGroup (DescribeGroupsResponse), versions 0 to 6."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "member_metadata",
        "member_assignment",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment
        self.unknown_tags = unknown_tags
