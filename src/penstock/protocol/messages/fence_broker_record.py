"""FenceBrokerRecord (key 7), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class FenceBrokerRecord(Message):
    """FenceBrokerRecord (key 7), version 0, flexible from version 0 on."""

    __slots__ = ("id", "epoch")

    NAME = "FenceBrokerRecord"
    API_KEY = 7
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.id = id
        self.epoch = epoch
        self.unknown_tags = unknown_tags
