"""WriteTxnMarkersRequest (key 27), versions 0 to 2, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class WriteTxnMarkersRequest(Message):
    """WriteTxnMarkersRequest (key 27), versions 0 to 2, flexible from version 1 on."""

    __slots__ = ("markers",)

    NAME = "WriteTxnMarkersRequest"
    API_KEY = 27
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.markers = [] if markers is None else markers
        self.unknown_tags = unknown_tags


class WritableTxnMarker(Struct):
    """An element of `markers` in WriteTxnMarkersRequest, versions 0 to 2."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] | None = None,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is None else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version
        self.unknown_tags = unknown_tags


class WritableTxnMarkerTopic(Struct):
    """An element of `topics` in WritableTxnMarker (WriteTxnMarkersRequest), versions 0 to 2."""

    __slots__ = ("name", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes
        self.unknown_tags = unknown_tags
