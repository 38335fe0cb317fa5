"""UnregisterBrokerRecord (key 1), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class UnregisterBrokerRecord(Message):
    """UnregisterBrokerRecord (key 1), version 0, flexible from version 0 on."""

    __slots__ = ("broker_id", "broker_epoch")

    NAME = "UnregisterBrokerRecord"
    API_KEY = 1
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tags = unknown_tags
