"""CreateAclsResponse (key 30), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class CreateAclsResponse(Message):
    """CreateAclsResponse (key 30), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "results")

    NAME = "CreateAclsResponse"
    API_KEY = 30
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class AclCreationResult(Struct):
    """An element of `results` in CreateAclsResponse, versions 0 to 3."""

    __slots__ = ("error_code", "error_message")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
