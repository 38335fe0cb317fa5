"""AlterConfigsResponse (key 33), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterConfigsResponse(Message):
    """AlterConfigsResponse (key 33), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "responses")

    NAME = "AlterConfigsResponse"
    API_KEY = 33
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is None else responses
        self.unknown_tags = unknown_tags


class AlterConfigsResourceResponse(Struct):
    """An element of `responses` in AlterConfigsResponse, versions 0 to 2."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.unknown_tags = unknown_tags
