"""InitProducerIdRequest (key 22), versions 0 to 6, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class InitProducerIdRequest(Message):
    """InitProducerIdRequest (key 22), versions 0 to 6, flexible from version 2 on."""

    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )

    NAME = "InitProducerIdRequest"
    API_KEY = 22
    VERSIONS = (0, 6)

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn
        self.unknown_tags = unknown_tags
