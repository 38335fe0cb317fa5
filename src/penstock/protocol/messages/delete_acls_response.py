"""DeleteAclsResponse (key 31), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DeleteAclsResponse(Message):
    """DeleteAclsResponse (key 31), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "filter_results")

    NAME = "DeleteAclsResponse"
    API_KEY = 31
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is None else filter_results
        self.unknown_tags = unknown_tags


class DeleteAclsFilterResult(Struct):
    """An element of `filter_results` in DeleteAclsResponse, versions 0 to 3."""

    __slots__ = ("error_code", "error_message", "matching_acls")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = [] if matching_acls is None else matching_acls
        self.unknown_tags = unknown_tags


class DeleteAclsMatchingAcl(Struct):
    """An element of `matching_acls` in DeleteAclsFilterResult (DeleteAclsResponse), versions 0 to 3."""

    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = unknown_tags
