"""AlterClientQuotasResponse (key 49), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterClientQuotasResponse(Message):
    """AlterClientQuotasResponse (key 49), versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("throttle_time_ms", "entries")

    NAME = "AlterClientQuotasResponse"
    API_KEY = 49
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[EntryData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is None else entries
        self.unknown_tags = unknown_tags


class EntryData(Struct):
    """An element of `entries` in AlterClientQuotasResponse, versions 0 to 1."""

    __slots__ = ("error_code", "error_message", "entity")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is None else entity
        self.unknown_tags = unknown_tags


class EntityData(Struct):
    """An element of `entity` in EntryData (AlterClientQuotasResponse), versions 0 to 1."""

    __slots__ = ("entity_type", "entity_name")

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name
        self.unknown_tags = unknown_tags
