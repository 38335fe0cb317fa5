"""ReadShareGroupStateSummaryResponse (key 87), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ReadShareGroupStateSummaryResponse(Message):
    """ReadShareGroupStateSummaryResponse (key 87), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("results",)

    NAME = "ReadShareGroupStateSummaryResponse"
    API_KEY = 87
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        results: list[ReadStateSummaryResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class ReadStateSummaryResult(Struct):
    """An element of `results` in ReadShareGroupStateSummaryResponse, versions 0 to 1."""

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
    """A struct in ReadShareGroupStateSummaryResponse, versions 0 to 1."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.unknown_tags = unknown_tags
