"""ControlRecordTypeSchema, version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ControlRecordTypeSchema(Message):
    """ControlRecordTypeSchema, version 0."""

    __slots__ = ("type",)

    NAME = "ControlRecordTypeSchema"
    API_KEY = None
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        type: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.type = type
        self.unknown_tags = unknown_tags
