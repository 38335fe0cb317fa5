"""ClientQuotaRecord (key 14), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ClientQuotaRecord(Message):
    """ClientQuotaRecord (key 14), version 0, flexible from version 0 on."""

    __slots__ = ("entity", "key", "value", "remove")

    NAME = "ClientQuotaRecord"
    API_KEY = 14
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        entity: list[EntityData] | None = None,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.entity = [] if entity is None else entity
        self.key = key
        self.value = value
        self.remove = remove
        self.unknown_tags = unknown_tags


class EntityData(Struct):
    """An element of `entity` in ClientQuotaRecord, version 0."""

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
