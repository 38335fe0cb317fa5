"""ListGroupsRequest (key 16), versions 0 to 5, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ListGroupsRequest(Message):
    """ListGroupsRequest (key 16), versions 0 to 5, flexible from version 3 on."""

    __slots__ = ("states_filter", "types_filter")

    NAME = "ListGroupsRequest"
    API_KEY = 16
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        states_filter: list[str] | None = None,
        types_filter: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.states_filter = [] if states_filter is None else states_filter
        self.types_filter = [] if types_filter is None else types_filter
        self.unknown_tags = unknown_tags
