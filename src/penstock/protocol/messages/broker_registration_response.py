"""BrokerRegistrationResponse (key 62), versions 0 to 4, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class BrokerRegistrationResponse(Message):
    """BrokerRegistrationResponse (key 62), versions 0 to 4, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "broker_epoch")

    NAME = "BrokerRegistrationResponse"
    API_KEY = 62
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.broker_epoch = broker_epoch
        self.unknown_tags = unknown_tags
