"""AbortTransactionRecord (key 25), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class AbortTransactionRecord(Message):
    """AbortTransactionRecord (key 25), version 0, flexible from version 0 on."""

    __slots__ = ("reason",)

    NAME = "AbortTransactionRecord"
    API_KEY = 25
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        reason: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.reason = reason
        self.unknown_tags = unknown_tags
