"""ExpireDelegationTokenRequest (key 40), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ExpireDelegationTokenRequest(Message):
    """ExpireDelegationTokenRequest (key 40), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("hmac", "expiry_time_period_ms")

    NAME = "ExpireDelegationTokenRequest"
    API_KEY = 40
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.hmac = hmac
        self.expiry_time_period_ms = expiry_time_period_ms
        self.unknown_tags = unknown_tags
