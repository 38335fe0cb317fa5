"""RenewDelegationTokenRequest (key 39), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RenewDelegationTokenRequest(Message):
    """RenewDelegationTokenRequest (key 39), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("hmac", "renew_period_ms")

    NAME = "RenewDelegationTokenRequest"
    API_KEY = 39
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms
        self.unknown_tags = unknown_tags
