"""RenewDelegationTokenResponse (key 39), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RenewDelegationTokenResponse(Message):
    """RenewDelegationTokenResponse (key 39), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")

    NAME = "RenewDelegationTokenResponse"
    API_KEY = 39
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tags = unknown_tags
