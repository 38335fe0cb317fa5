"""WriteShareGroupStateResponse (key 85), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class WriteShareGroupStateResponse(Message):
    """WriteShareGroupStateResponse (key 85), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("results",)

    NAME = "WriteShareGroupStateResponse"
    API_KEY = 85
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        results: list[WriteStateResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class WriteStateResult(Struct):
    """An element of `results` in WriteShareGroupStateResponse, versions 0 to 1."""

    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[PartitionResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class PartitionResult(Struct):
    """An element of `partitions` in WriteStateResult (WriteShareGroupStateResponse), versions 0 to 1."""

    __slots__ = ("partition", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
