"""EndTxnResponse (key 26), versions 0 to 5, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class EndTxnResponse(Message):
    """EndTxnResponse (key 26), versions 0 to 5, flexible from version 3 on."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")

    NAME = "EndTxnResponse"
    API_KEY = 26
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.unknown_tags = unknown_tags
