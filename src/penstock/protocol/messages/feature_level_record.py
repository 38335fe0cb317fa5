"""FeatureLevelRecord (key 12), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class FeatureLevelRecord(Message):
    """FeatureLevelRecord (key 12), version 0, flexible from version 0 on."""

    __slots__ = ("name", "feature_level")

    NAME = "FeatureLevelRecord"
    API_KEY = 12
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.feature_level = feature_level
        self.unknown_tags = unknown_tags
