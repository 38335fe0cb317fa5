"""TransactionLogKey (key 0), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class TransactionLogKey(Message):
    """TransactionLogKey (key 0), version 0."""

    __slots__ = ("transactional_id",)

    NAME = "TransactionLogKey"
    API_KEY = 0
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        transactional_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.unknown_tags = unknown_tags
