"""StreamsGroupMetadataKey (key 17), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class StreamsGroupMetadataKey(Message):
    """StreamsGroupMetadataKey (key 17), version 0."""

    __slots__ = ("group_id",)

    NAME = "StreamsGroupMetadataKey"
    API_KEY = 17
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = unknown_tags
