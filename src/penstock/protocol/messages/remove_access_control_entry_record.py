"""RemoveAccessControlEntryRecord (key 19), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RemoveAccessControlEntryRecord(Message):
    """RemoveAccessControlEntryRecord (key 19), version 0, flexible from version 0 on."""

    __slots__ = ("id",)

    NAME = "RemoveAccessControlEntryRecord"
    API_KEY = 19
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.id = id
        self.unknown_tags = unknown_tags
