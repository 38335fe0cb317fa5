"""ConfigRecord (key 4), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ConfigRecord(Message):
    """ConfigRecord (key 4), version 0, flexible from version 0 on."""

    __slots__ = ("resource_type", "resource_name", "name", "value")

    NAME = "ConfigRecord"
    API_KEY = 4
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value
        self.unknown_tags = unknown_tags
