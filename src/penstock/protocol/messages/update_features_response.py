"""UpdateFeaturesResponse (key 57), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class UpdateFeaturesResponse(Message):
    """UpdateFeaturesResponse (key 57), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")

    NAME = "UpdateFeaturesResponse"
    API_KEY = 57
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class UpdatableFeatureResult(Struct):
    """An element of `results` in UpdateFeaturesResponse, versions 0 to 1."""

    __slots__ = ("feature", "error_code", "error_message")

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
