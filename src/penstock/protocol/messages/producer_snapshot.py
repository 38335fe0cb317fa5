"""ProducerSnapshot, version 1. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ProducerSnapshot(Message):
    """ProducerSnapshot, version 1."""

    __slots__ = ("crc", "producer_entries")

    NAME = "ProducerSnapshot"
    API_KEY = None
    VERSIONS = (1, 1)

    def __init__(
        self,
        *,
        crc: int = 0,
        producer_entries: list[ProducerEntry] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.crc = crc
        self.producer_entries = [] if producer_entries is None else producer_entries
        self.unknown_tags = unknown_tags


class ProducerEntry(Struct):
    """An element of `producer_entries` in ProducerSnapshot, version 1."""

    __slots__ = (
        "producer_id",
        "epoch",
        "last_sequence",
        "last_offset",
        "offset_delta",
        "timestamp",
        "coordinator_epoch",
        "current_txn_first_offset",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        epoch: int = 0,
        last_sequence: int = 0,
        last_offset: int = 0,
        offset_delta: int = 0,
        timestamp: int = 0,
        coordinator_epoch: int = 0,
        current_txn_first_offset: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.last_sequence = last_sequence
        self.last_offset = last_offset
        self.offset_delta = offset_delta
        self.timestamp = timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = current_txn_first_offset
        self.unknown_tags = unknown_tags
