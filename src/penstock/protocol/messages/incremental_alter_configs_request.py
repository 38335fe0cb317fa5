"""IncrementalAlterConfigsRequest (key 44), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class IncrementalAlterConfigsRequest(Message):
    """IncrementalAlterConfigsRequest (key 44), versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("resources", "validate_only")

    NAME = "IncrementalAlterConfigsRequest"
    API_KEY = 44
    VERSIONS = (0, 1)

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
    """An element of `resources` in IncrementalAlterConfigsRequest, versions 0 to 1."""

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
    """An element of `configs` in AlterConfigsResource (IncrementalAlterConfigsRequest), versions 0 to 1."""

    __slots__ = ("name", "config_operation", "value")

    def __init__(
        self,
        *,
        name: str = "",
        config_operation: int = 0,
        value: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.config_operation = config_operation
        self.value = value
        self.unknown_tags = unknown_tags
