"""ShareGroupHeartbeatRequest (key 76), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ShareGroupHeartbeatRequest(Message):
    """ShareGroupHeartbeatRequest (key 76), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")

    NAME = "ShareGroupHeartbeatRequest"
    API_KEY = 76
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
        self.unknown_tags = unknown_tags
