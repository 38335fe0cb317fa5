"""ControlledShutdownRequest (key 7), versions 0 to 3, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ControlledShutdownRequest(Message):
    """ControlledShutdownRequest (key 7), versions 0 to 3, flexible from version 3 on."""

    __slots__ = ("broker_id", "broker_epoch")

    NAME = "ControlledShutdownRequest"
    API_KEY = 7
    VERSIONS = (0, 3)

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
