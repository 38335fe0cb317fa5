"""OffsetFetchRequest (key 9), versions 0 to 10, flexible from version 6 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class OffsetFetchRequest(Message):
    """OffsetFetchRequest (key 9), versions 0 to 10, flexible from version 6 on."""

    __slots__ = ("group_id", "topics", "groups", "require_stable")

    NAME = "OffsetFetchRequest"
    API_KEY = 9
    VERSIONS = (0, 10)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | tuple[()] | None = (),
        groups: list[OffsetFetchRequestGroup] | None = None,
        require_stable: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topics: list[OffsetFetchRequestTopic] | None = [] if isinstance(topics, tuple) else topics
        self.groups = [] if groups is None else groups
        self.require_stable = require_stable
        self.unknown_tags = unknown_tags


class OffsetFetchRequestTopic(Struct):
    """An element of `topics` in OffsetFetchRequest, versions 0 to 7."""

    __slots__ = ("name", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes
        self.unknown_tags = unknown_tags


class OffsetFetchRequestGroup(Struct):
    """An element of `groups` in OffsetFetchRequest, versions 8 to 10."""

    __slots__ = ("group_id", "member_id", "member_epoch", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics: list[OffsetFetchRequestTopics] | None = [] if isinstance(topics, tuple) else topics
        self.unknown_tags = unknown_tags


class OffsetFetchRequestTopics(Struct):
    """An element of `topics` in OffsetFetchRequestGroup (OffsetFetchRequest), versions 8 to 10."""

    __slots__ = ("name", "topic_id", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is None else partition_indexes
        self.unknown_tags = unknown_tags
