"""SnapshotHeaderRecord, version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class SnapshotHeaderRecord(Message):
    """SnapshotHeaderRecord, version 0, flexible from version 0 on."""

    __slots__ = ("version", "last_contained_log_timestamp")

    NAME = "SnapshotHeaderRecord"
    API_KEY = None
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp
        self.unknown_tags = unknown_tags
