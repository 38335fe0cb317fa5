"""MetadataRequest (key 3), versions 0 to 13, flexible from version 9 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class MetadataRequest(Message):
    """MetadataRequest (key 3), versions 0 to 13, flexible from version 9 on."""

    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )

    NAME = "MetadataRequest"
    API_KEY = 3
    VERSIONS = (0, 13)

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | tuple[()] | None = (),
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if isinstance(topics, tuple) else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations
        self.unknown_tags = unknown_tags


class MetadataRequestTopic(Struct):
    """An element of `topics` in MetadataRequest, versions 0 to 13."""

    __slots__ = ("topic_id", "name")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        name: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.name = name
        self.unknown_tags = unknown_tags
