"""GroupMetadataKey (key 2), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class GroupMetadataKey(Message):
    """GroupMetadataKey (key 2), version 0."""

    __slots__ = ("group",)

    NAME = "GroupMetadataKey"
    API_KEY = 2
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group = group
        self.unknown_tags = unknown_tags
