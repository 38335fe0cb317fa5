"""ShareGroupMemberMetadataValue (key 10), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ShareGroupMemberMetadataValue(Message):
    """ShareGroupMemberMetadataValue (key 10), version 0, flexible from version 0 on."""

    __slots__ = ("rack_id", "client_id", "client_host", "subscribed_topic_names")

    NAME = "ShareGroupMemberMetadataValue"
    API_KEY = 10
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is None else subscribed_topic_names
        self.unknown_tags = unknown_tags
