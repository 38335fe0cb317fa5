"""DescribeConfigsRequest (key 32), versions 0 to 4, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeConfigsRequest(Message):
    """DescribeConfigsRequest (key 32), versions 0 to 4, flexible from version 4 on."""

    __slots__ = ("resources", "include_synonyms", "include_documentation")

    NAME = "DescribeConfigsRequest"
    API_KEY = 32
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resources = [] if resources is None else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation
        self.unknown_tags = unknown_tags


class DescribeConfigsResource(Struct):
    """An element of `resources` in DescribeConfigsRequest, versions 0 to 4."""

    __slots__ = ("resource_type", "resource_name", "configuration_keys")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys: list[str] | None = (
            [] if isinstance(configuration_keys, tuple) else configuration_keys
        )
        self.unknown_tags = unknown_tags
