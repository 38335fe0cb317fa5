"""SnapshotFooterRecord, version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class SnapshotFooterRecord(Message):
    """SnapshotFooterRecord, version 0, flexible from version 0 on."""

    __slots__ = ("version",)

    NAME = "SnapshotFooterRecord"
    API_KEY = None
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        version: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.version = version
        self.unknown_tags = unknown_tags
