"""ListConfigResourcesResponse (key 74), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ListConfigResourcesResponse(Message):
    """ListConfigResourcesResponse (key 74), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "config_resources")

    NAME = "ListConfigResourcesResponse"
    API_KEY = 74
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is None else config_resources
        self.unknown_tags = unknown_tags


class ConfigResource(Struct):
    """An element of `config_resources` in ListConfigResourcesResponse, versions 0 to 1."""

    __slots__ = ("resource_name", "resource_type")

    def __init__(
        self,
        *,
        resource_name: str = "",
        resource_type: int = 16,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type
        self.unknown_tags = unknown_tags
