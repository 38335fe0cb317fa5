"""EndTxnMarker, version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class EndTxnMarker(Message):
    """EndTxnMarker, version 0."""

    __slots__ = ("coordinator_epoch",)

    NAME = "EndTxnMarker"
    API_KEY = None
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.unknown_tags = unknown_tags
