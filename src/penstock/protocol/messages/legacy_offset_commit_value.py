"""LegacyOffsetCommitValue (key 0), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class LegacyOffsetCommitValue(Message):
    """LegacyOffsetCommitValue (key 0), version 0."""

    __slots__ = ("offset", "metadata", "commit_timestamp")

    NAME = "LegacyOffsetCommitValue"
    API_KEY = 0
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.unknown_tags = unknown_tags
