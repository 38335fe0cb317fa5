"""AbortedTxn, version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class AbortedTxn(Message):
    """AbortedTxn, version 0."""

    __slots__ = ("producer_id", "first_offset", "last_offset", "last_stable_offset")

    NAME = "AbortedTxn"
    API_KEY = None
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
        last_offset: int = 0,
        last_stable_offset: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.last_stable_offset = last_stable_offset
        self.unknown_tags = unknown_tags
