"""EndTransactionRecord (key 24), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class EndTransactionRecord(Message):
    """EndTransactionRecord (key 24), version 0, flexible from version 0 on."""

    __slots__ = ()

    NAME = "EndTransactionRecord"
    API_KEY = 24
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.unknown_tags = unknown_tags
