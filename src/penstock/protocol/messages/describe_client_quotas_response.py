"""DescribeClientQuotasResponse (key 48), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeClientQuotasResponse(Message):
    """DescribeClientQuotasResponse (key 48), versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")

    NAME = "DescribeClientQuotasResponse"
    API_KEY = 48
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries: list[EntryData] | None = [] if isinstance(entries, tuple) else entries
        self.unknown_tags = unknown_tags


class EntryData(Struct):
    """An element of `entries` in DescribeClientQuotasResponse, versions 0 to 1."""

    __slots__ = ("entity", "values")

    def __init__(
        self,
        *,
        entity: list[EntityData] | None = None,
        values: list[ValueData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.entity = [] if entity is None else entity
        self.values = [] if values is None else values
        self.unknown_tags = unknown_tags


class EntityData(Struct):
    """An element of `entity` in EntryData (DescribeClientQuotasResponse), versions 0 to 1."""

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


class ValueData(Struct):
    """An element of `values` in EntryData (DescribeClientQuotasResponse), versions 0 to 1."""

    __slots__ = ("key", "value")

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.key = key
        self.value = value
        self.unknown_tags = unknown_tags
