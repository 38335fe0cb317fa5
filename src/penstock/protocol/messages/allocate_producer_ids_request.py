"""AllocateProducerIdsRequest (key 67), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class AllocateProducerIdsRequest(Message):
    """AllocateProducerIdsRequest (key 67), version 0, flexible from version 0 on."""

    __slots__ = ("broker_id", "broker_epoch")

    NAME = "AllocateProducerIdsRequest"
    API_KEY = 67
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tags = unknown_tags
