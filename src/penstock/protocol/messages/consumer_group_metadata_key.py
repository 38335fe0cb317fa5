"""ConsumerGroupMetadataKey (key 3), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ConsumerGroupMetadataKey(Message):
    """ConsumerGroupMetadataKey (key 3), version 0."""

    __slots__ = ("group_id",)

    NAME = "ConsumerGroupMetadataKey"
    API_KEY = 3
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = unknown_tags
