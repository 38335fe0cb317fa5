"""AddPartitionsToTxnRequest (key 24), versions 0 to 5, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AddPartitionsToTxnRequest(Message):
    """AddPartitionsToTxnRequest (key 24), versions 0 to 5, flexible from version 3 on."""

    __slots__ = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )

    NAME = "AddPartitionsToTxnRequest"
    API_KEY = 24
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] | None = None,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactions = [] if transactions is None else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is None else v3_and_below_topics
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnTransaction(Struct):
    """An element of `transactions` in AddPartitionsToTxnRequest, versions 4 to 5."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnTopic(Struct):
    """A struct in AddPartitionsToTxnRequest, versions 0 to 5."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags
