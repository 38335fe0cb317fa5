"""ControlledShutdownResponse (key 7), versions 0 to 3, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ControlledShutdownResponse(Message):
    """ControlledShutdownResponse (key 7), versions 0 to 3, flexible from version 3 on."""

    __slots__ = ("error_code", "remaining_partitions")

    NAME = "ControlledShutdownResponse"
    API_KEY = 7
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        error_code: int = 0,
        remaining_partitions: list[RemainingPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.remaining_partitions = [] if remaining_partitions is None else remaining_partitions
        self.unknown_tags = unknown_tags


class RemainingPartition(Struct):
    """An element of `remaining_partitions` in ControlledShutdownResponse, versions 0 to 3."""

    __slots__ = ("topic_name", "partition_index")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags
