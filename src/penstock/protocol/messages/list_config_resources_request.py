"""ListConfigResourcesRequest (key 74), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ListConfigResourcesRequest(Message):
    """ListConfigResourcesRequest (key 74), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("resource_types",)

    NAME = "ListConfigResourcesRequest"
    API_KEY = 74
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        resource_types: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resource_types = [] if resource_types is None else resource_types
        self.unknown_tags = unknown_tags
