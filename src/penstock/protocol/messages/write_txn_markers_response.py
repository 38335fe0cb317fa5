"""WriteTxnMarkersResponse (key 27), versions 0 to 2, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class WriteTxnMarkersResponse(Message):
    """WriteTxnMarkersResponse (key 27), versions 0 to 2, flexible from version 1 on."""

    __slots__ = ("markers",)

    NAME = "WriteTxnMarkersResponse"
    API_KEY = 27
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.markers = [] if markers is None else markers
        self.unknown_tags = unknown_tags


class WritableTxnMarkerResult(Struct):
    """An element of `markers` in WriteTxnMarkersResponse, versions 0 to 2."""

    __slots__ = ("producer_id", "topics")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class WritableTxnMarkerTopicResult(Struct):
    """An element of `topics` in WritableTxnMarkerResult (WriteTxnMarkersResponse), versions 0 to 2."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class WritableTxnMarkerPartitionResult(Struct):
    """A struct in WriteTxnMarkersResponse, versions 0 to 2."""

    __slots__ = ("partition_index", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = unknown_tags
