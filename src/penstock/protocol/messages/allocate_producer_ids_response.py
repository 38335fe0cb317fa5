"""AllocateProducerIdsResponse (key 67), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class AllocateProducerIdsResponse(Message):
    """AllocateProducerIdsResponse (key 67), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len")

    NAME = "AllocateProducerIdsResponse"
    API_KEY = 67
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
        self.unknown_tags = unknown_tags
