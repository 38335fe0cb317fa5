"""DeleteGroupsResponse (key 42), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DeleteGroupsResponse(Message):
    """DeleteGroupsResponse (key 42), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "results")

    NAME = "DeleteGroupsResponse"
    API_KEY = 42
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class DeletableGroupResult(Struct):
    """An element of `results` in DeleteGroupsResponse, versions 0 to 3."""

    __slots__ = ("group_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
