"""ReadShareGroupStateResponse (key 84), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ReadShareGroupStateResponse(Message):
    """ReadShareGroupStateResponse (key 84), version 0, flexible from version 0 on."""

    __slots__ = ("results",)

    NAME = "ReadShareGroupStateResponse"
    API_KEY = 84
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        results: list[ReadStateResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class ReadStateResult(Struct):
    """An element of `results` in ReadShareGroupStateResponse, version 0."""

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
    """An element of `partitions` in ReadStateResult (ReadShareGroupStateResponse), version 0."""

    __slots__ = ("partition", "error_code", "error_message", "state_epoch", "start_offset", "state_batches")

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.state_batches = [] if state_batches is None else state_batches
        self.unknown_tags = unknown_tags


class StateBatch(Struct):
    """An element of `state_batches` in PartitionResult (ReadShareGroupStateResponse), version 0."""

    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count
        self.unknown_tags = unknown_tags
