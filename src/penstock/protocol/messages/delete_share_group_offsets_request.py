"""DeleteShareGroupOffsetsRequest (key 92), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DeleteShareGroupOffsetsRequest(Message):
    """DeleteShareGroupOffsetsRequest (key 92), version 0, flexible from version 0 on."""

    __slots__ = ("group_id", "topics")

    NAME = "DeleteShareGroupOffsetsRequest"
    API_KEY = 92
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class DeleteShareGroupOffsetsRequestTopic(Struct):
    """An element of `topics` in DeleteShareGroupOffsetsRequest, version 0."""

    __slots__ = ("topic_name",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.unknown_tags = unknown_tags
