"""AccessControlEntryRecord (key 18), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class AccessControlEntryRecord(Message):
    """AccessControlEntryRecord (key 18), version 0, flexible from version 0 on."""

    __slots__ = (
        "id",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    NAME = "AccessControlEntryRecord"
    API_KEY = 18
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        id: bytes = bytes(16),
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.id = id
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = unknown_tags
