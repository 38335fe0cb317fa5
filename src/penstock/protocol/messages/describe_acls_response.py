"""DescribeAclsResponse (key 29), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeAclsResponse(Message):
    """DescribeAclsResponse (key 29), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")

    NAME = "DescribeAclsResponse"
    API_KEY = 29
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is None else resources
        self.unknown_tags = unknown_tags


class DescribeAclsResource(Struct):
    """An element of `resources` in DescribeAclsResponse, versions 0 to 3."""

    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is None else acls
        self.unknown_tags = unknown_tags


class AclDescription(Struct):
    """An element of `acls` in DescribeAclsResource (DescribeAclsResponse), versions 0 to 3."""

    __slots__ = ("principal", "host", "operation", "permission_type")

    def __init__(
        self,
        *,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = unknown_tags
