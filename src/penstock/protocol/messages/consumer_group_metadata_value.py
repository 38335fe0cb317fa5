"""ConsumerGroupMetadataValue (key 3), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ConsumerGroupMetadataValue(Message):
    """ConsumerGroupMetadataValue (key 3), version 0, flexible from version 0 on."""

    __slots__ = ("epoch", "metadata_hash")

    NAME = "ConsumerGroupMetadataValue"
    API_KEY = 3
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.unknown_tags = unknown_tags
