"""ConsumerGroupCurrentMemberAssignmentKey (key 8), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """ConsumerGroupCurrentMemberAssignmentKey (key 8), version 0."""

    __slots__ = ("group_id", "member_id")

    NAME = "ConsumerGroupCurrentMemberAssignmentKey"
    API_KEY = 8
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
