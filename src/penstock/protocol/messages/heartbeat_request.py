"""HeartbeatRequest (key 12), versions 0 to 4, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class HeartbeatRequest(Message):
    """HeartbeatRequest (key 12), versions 0 to 4, flexible from version 4 on."""

    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")

    NAME = "HeartbeatRequest"
    API_KEY = 12
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.unknown_tags = unknown_tags
