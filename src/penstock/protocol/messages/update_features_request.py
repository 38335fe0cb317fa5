"""UpdateFeaturesRequest (key 57), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class UpdateFeaturesRequest(Message):
    """UpdateFeaturesRequest (key 57), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("timeout_ms", "feature_updates", "validate_only")

    NAME = "UpdateFeaturesRequest"
    API_KEY = 57
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] | None = None,
        validate_only: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is None else feature_updates
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags


class FeatureUpdateKey(Struct):
    """An element of `feature_updates` in UpdateFeaturesRequest, versions 0 to 2."""

    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type
        self.unknown_tags = unknown_tags
