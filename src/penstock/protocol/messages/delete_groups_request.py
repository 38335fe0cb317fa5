"""DeleteGroupsRequest (key 42), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class DeleteGroupsRequest(Message):
    """DeleteGroupsRequest (key 42), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("groups_names",)

    NAME = "DeleteGroupsRequest"
    API_KEY = 42
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        groups_names: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.groups_names = [] if groups_names is None else groups_names
        self.unknown_tags = unknown_tags
