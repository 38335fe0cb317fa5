"""AddOffsetsToTxnRequest (key 25), versions 0 to 4, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class AddOffsetsToTxnRequest(Message):
    """AddOffsetsToTxnRequest (key 25), versions 0 to 4, flexible from version 3 on."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")

    NAME = "AddOffsetsToTxnRequest"
    API_KEY = 25
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id
        self.unknown_tags = unknown_tags
