"""EndTxnRequest (key 26), versions 0 to 5, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class EndTxnRequest(Message):
    """EndTxnRequest (key 26), versions 0 to 5, flexible from version 3 on."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")

    NAME = "EndTxnRequest"
    API_KEY = 26
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed
        self.unknown_tags = unknown_tags
