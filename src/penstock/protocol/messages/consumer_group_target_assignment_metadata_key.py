"""ConsumerGroupTargetAssignmentMetadataKey (key 6), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """ConsumerGroupTargetAssignmentMetadataKey (key 6), version 0."""

    __slots__ = ("group_id",)

    NAME = "ConsumerGroupTargetAssignmentMetadataKey"
    API_KEY = 6
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = unknown_tags
