"""AlterConfigsRequest (key 33), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterConfigsRequest(Message):
    """AlterConfigsRequest (key 33), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("resources", "validate_only")

    NAME = "AlterConfigsRequest"
    API_KEY = 33
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] | None = None,
        validate_only: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resources = [] if resources is None else resources
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags


class AlterConfigsResource(Struct):
    """An element of `resources` in AlterConfigsRequest, versions 0 to 2."""

    __slots__ = ("resource_type", "resource_name", "configs")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is None else configs
        self.unknown_tags = unknown_tags


class AlterableConfig(Struct):
    """An element of `configs` in AlterConfigsResource (AlterConfigsRequest), versions 0 to 2."""

    __slots__ = ("name", "value")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.value = value
        self.unknown_tags = unknown_tags
