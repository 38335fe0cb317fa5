"""ConsumerGroupDescribeRequest (key 69), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ConsumerGroupDescribeRequest(Message):
    """ConsumerGroupDescribeRequest (key 69), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("group_ids", "include_authorized_operations")

    NAME = "ConsumerGroupDescribeRequest"
    API_KEY = 69
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        group_ids: list[str] | None = None,
        include_authorized_operations: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_ids = [] if group_ids is None else group_ids
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tags = unknown_tags
