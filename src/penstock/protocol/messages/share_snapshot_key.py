"""ShareSnapshotKey (key 0), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ShareSnapshotKey(Message):
    """ShareSnapshotKey (key 0), version 0."""

    __slots__ = ("group_id", "topic_id", "partition")

    NAME = "ShareSnapshotKey"
    API_KEY = 0
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: bytes = bytes(16),
        partition: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self.unknown_tags = unknown_tags
