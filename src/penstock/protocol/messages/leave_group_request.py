"""LeaveGroupRequest (key 13), versions 0 to 5, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class LeaveGroupRequest(Message):
    """LeaveGroupRequest (key 13), versions 0 to 5, flexible from version 4 on."""

    __slots__ = ("group_id", "member_id", "members")

    NAME = "LeaveGroupRequest"
    API_KEY = 13
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is None else members
        self.unknown_tags = unknown_tags


class MemberIdentity(Struct):
    """An element of `members` in LeaveGroupRequest, versions 3 to 5."""

    __slots__ = ("member_id", "group_instance_id", "reason")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason
        self.unknown_tags = unknown_tags
