"""LeaveGroupResponse (key 13), versions 0 to 5, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class LeaveGroupResponse(Message):
    """LeaveGroupResponse (key 13), versions 0 to 5, flexible from version 4 on."""

    __slots__ = ("throttle_time_ms", "error_code", "members")

    NAME = "LeaveGroupResponse"
    API_KEY = 13
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is None else members
        self.unknown_tags = unknown_tags


class MemberResponse(Struct):
    """An element of `members` in LeaveGroupResponse, versions 3 to 5."""

    __slots__ = ("member_id", "group_instance_id", "error_code")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code
        self.unknown_tags = unknown_tags
