"""DescribeConfigsResponse (key 32), versions 0 to 4, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeConfigsResponse(Message):
    """DescribeConfigsResponse (key 32), versions 0 to 4, flexible from version 4 on."""

    __slots__ = ("throttle_time_ms", "results")

    NAME = "DescribeConfigsResponse"
    API_KEY = 32
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class DescribeConfigsResult(Struct):
    """An element of `results` in DescribeConfigsResponse, versions 0 to 4."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is None else configs
        self.unknown_tags = unknown_tags


class DescribeConfigsResourceResult(Struct):
    """An element of `configs` in DescribeConfigsResult (DescribeConfigsResponse), versions 0 to 4."""

    __slots__ = (
        "name",
        "value",
        "read_only",
        "is_default",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        is_default: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] | None = None,
        config_type: int = 0,
        documentation: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.is_default = is_default
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is None else synonyms
        self.config_type = config_type
        self.documentation = documentation
        self.unknown_tags = unknown_tags


class DescribeConfigsSynonym(Struct):
    """A struct in DescribeConfigsResponse, versions 1 to 4."""

    __slots__ = ("name", "value", "source")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source
        self.unknown_tags = unknown_tags
