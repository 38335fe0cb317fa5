"""ApiVersionsResponse (key 18), versions 0 to 5, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ApiVersionsResponse(Message):
    """ApiVersionsResponse (key 18), versions 0 to 5, flexible from version 3 on."""

    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )

    NAME = "ApiVersionsResponse"
    API_KEY = 18
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] | None = None,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] | None = None,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] | None = None,
        zk_migration_ready: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is None else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is None else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is None else finalized_features
        self.zk_migration_ready = zk_migration_ready
        self.unknown_tags = unknown_tags


class ApiVersion(Struct):
    """An element of `api_keys` in ApiVersionsResponse, versions 0 to 5."""

    __slots__ = ("api_key", "min_version", "max_version")

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version
        self.unknown_tags = unknown_tags


class SupportedFeatureKey(Struct):
    """An element of `supported_features` in ApiVersionsResponse, versions 3 to 5."""

    __slots__ = ("name", "min_version", "max_version")

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version
        self.unknown_tags = unknown_tags


class FinalizedFeatureKey(Struct):
    """An element of `finalized_features` in ApiVersionsResponse, versions 3 to 5."""

    __slots__ = ("name", "max_version_level", "min_version_level")

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level
        self.unknown_tags = unknown_tags
