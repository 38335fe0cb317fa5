"""DeleteTopicsRequest (key 20), versions 0 to 6, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DeleteTopicsRequest(Message):
    """DeleteTopicsRequest (key 20), versions 0 to 6, flexible from version 4 on."""

    __slots__ = ("topics", "topic_names", "timeout_ms")

    NAME = "DeleteTopicsRequest"
    API_KEY = 20
    VERSIONS = (0, 6)

    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] | None = None,
        topic_names: list[str] | None = None,
        timeout_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.topic_names = [] if topic_names is None else topic_names
        self.timeout_ms = timeout_ms
        self.unknown_tags = unknown_tags


class DeleteTopicState(Struct):
    """An element of `topics` in DeleteTopicsRequest, version 6."""

    __slots__ = ("name", "topic_id")

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.unknown_tags = unknown_tags
