"""AlterClientQuotasRequest (key 49), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterClientQuotasRequest(Message):
    """AlterClientQuotasRequest (key 49), versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("entries", "validate_only")

    NAME = "AlterClientQuotasRequest"
    API_KEY = 49
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        entries: list[EntryData] | None = None,
        validate_only: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.entries = [] if entries is None else entries
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags


class EntryData(Struct):
    """An element of `entries` in AlterClientQuotasRequest, versions 0 to 1."""

    __slots__ = ("entity", "ops")

    def __init__(
        self,
        *,
        entity: list[EntityData] | None = None,
        ops: list[OpData] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.entity = [] if entity is None else entity
        self.ops = [] if ops is None else ops
        self.unknown_tags = unknown_tags


class EntityData(Struct):
    """An element of `entity` in EntryData (AlterClientQuotasRequest), versions 0 to 1."""

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


class OpData(Struct):
    """An element of `ops` in EntryData (AlterClientQuotasRequest), versions 0 to 1."""

    __slots__ = ("key", "value", "remove")

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove
        self.unknown_tags = unknown_tags
