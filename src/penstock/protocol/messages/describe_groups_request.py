"""DescribeGroupsRequest (key 15), versions 0 to 6, flexible from version 5 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class DescribeGroupsRequest(Message):
    """DescribeGroupsRequest (key 15), versions 0 to 6, flexible from version 5 on."""

    __slots__ = ("groups", "include_authorized_operations")

    NAME = "DescribeGroupsRequest"
    API_KEY = 15
    VERSIONS = (0, 6)

    def __init__(
        self,
        *,
        groups: list[str] | None = None,
        include_authorized_operations: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.groups = [] if groups is None else groups
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tags = unknown_tags
