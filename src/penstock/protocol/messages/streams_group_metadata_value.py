"""StreamsGroupMetadataValue (key 17), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupMetadataValue(Message):
    """StreamsGroupMetadataValue (key 17), version 0, flexible from version 0 on."""

    __slots__ = (
        "epoch",
        "metadata_hash",
        "validated_topology_epoch",
        "last_assignment_configs",
        "stored_description_topology_epoch",
        "failed_description_topology_epoch",
    )

    NAME = "StreamsGroupMetadataValue"
    API_KEY = 17
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[LastAssignmentConfig] | tuple[()] | None = (),
        stored_description_topology_epoch: int = -1,
        failed_description_topology_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs: list[LastAssignmentConfig] | None = (
            [] if isinstance(last_assignment_configs, tuple) else last_assignment_configs
        )
        self.stored_description_topology_epoch = stored_description_topology_epoch
        self.failed_description_topology_epoch = failed_description_topology_epoch
        self.unknown_tags = unknown_tags


class LastAssignmentConfig(Struct):
    """An element of `last_assignment_configs` in StreamsGroupMetadataValue, version 0."""

    __slots__ = ("key", "value")

    def __init__(
        self,
        *,
        key: str = "",
        value: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.key = key
        self.value = value
        self.unknown_tags = unknown_tags
