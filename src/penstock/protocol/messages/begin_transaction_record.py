"""BeginTransactionRecord (key 23), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class BeginTransactionRecord(Message):
    """BeginTransactionRecord (key 23), version 0, flexible from version 0 on."""

    __slots__ = ("name",)

    NAME = "BeginTransactionRecord"
    API_KEY = 23
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        name: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.unknown_tags = unknown_tags
