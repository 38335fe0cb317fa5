"""TransactionLogValue (key 0), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class TransactionLogValue(Message):
    """TransactionLogValue (key 0), versions 0 to 1, flexible from version 1 on."""

    __slots__ = (
        "producer_id",
        "previous_producer_id",
        "next_producer_id",
        "producer_epoch",
        "next_producer_epoch",
        "transaction_timeout_ms",
        "transaction_status",
        "transaction_partitions",
        "transaction_last_update_timestamp_ms",
        "transaction_start_timestamp_ms",
        "client_transaction_version",
    )

    NAME = "TransactionLogValue"
    API_KEY = 0
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | tuple[()] | None = (),
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions: list[PartitionsSchema] | None = (
            [] if isinstance(transaction_partitions, tuple) else transaction_partitions
        )
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
        self.unknown_tags = unknown_tags


class PartitionsSchema(Struct):
    """An element of `transaction_partitions` in TransactionLogValue, versions 0 to 1."""

    __slots__ = ("topic", "partition_ids")

    def __init__(
        self,
        *,
        topic: str = "",
        partition_ids: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is None else partition_ids
        self.unknown_tags = unknown_tags
