"""ShareGroupMetadataKey (key 11), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ShareGroupMetadataKey(Message):
    """ShareGroupMetadataKey (key 11), version 0."""

    __slots__ = ("group_id",)

    NAME = "ShareGroupMetadataKey"
    API_KEY = 11
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = unknown_tags
