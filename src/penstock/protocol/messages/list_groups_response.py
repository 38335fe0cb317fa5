"""ListGroupsResponse (key 16), versions 0 to 5, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ListGroupsResponse(Message):
    """ListGroupsResponse (key 16), versions 0 to 5, flexible from version 3 on."""

    __slots__ = ("throttle_time_ms", "error_code", "groups")

    NAME = "ListGroupsResponse"
    API_KEY = 16
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is None else groups
        self.unknown_tags = unknown_tags


class ListedGroup(Struct):
    """An element of `groups` in ListGroupsResponse, versions 0 to 5."""

    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type
        self.unknown_tags = unknown_tags
