"""ShareGroupMetadataValue (key 11), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ShareGroupMetadataValue(Message):
    """ShareGroupMetadataValue (key 11), version 0, flexible from version 0 on."""

    __slots__ = ("epoch", "metadata_hash")

    NAME = "ShareGroupMetadataValue"
    API_KEY = 11
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
