"""DeleteTopicsResponse (key 20), versions 0 to 6, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DeleteTopicsResponse(Message):
    """DeleteTopicsResponse (key 20), versions 0 to 6, flexible from version 4 on."""

    __slots__ = ("throttle_time_ms", "responses")

    NAME = "DeleteTopicsResponse"
    API_KEY = 20
    VERSIONS = (0, 6)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is None else responses
        self.unknown_tags = unknown_tags


class DeletableTopicResult(Struct):
    """An element of `responses` in DeleteTopicsResponse, versions 0 to 6."""

    __slots__ = ("name", "topic_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: bytes = bytes(16),
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
