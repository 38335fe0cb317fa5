"""ShareGroupTargetAssignmentMemberKey (key 13), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ShareGroupTargetAssignmentMemberKey(Message):
    """ShareGroupTargetAssignmentMemberKey (key 13), version 0."""

    __slots__ = ("group_id", "member_id")

    NAME = "ShareGroupTargetAssignmentMemberKey"
    API_KEY = 13
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tags = unknown_tags
