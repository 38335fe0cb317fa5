"""CreateAclsRequest (key 30), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class CreateAclsRequest(Message):
    """CreateAclsRequest (key 30), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("creations",)

    NAME = "CreateAclsRequest"
    API_KEY = 30
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        creations: list[AclCreation] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.creations = [] if creations is None else creations
        self.unknown_tags = unknown_tags


class AclCreation(Struct):
    """An element of `creations` in CreateAclsRequest, versions 0 to 3."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = unknown_tags
