"""DescribeDelegationTokenResponse (key 41), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeDelegationTokenResponse(Message):
    """DescribeDelegationTokenResponse (key 41), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("error_code", "tokens", "throttle_time_ms")

    NAME = "DescribeDelegationTokenResponse"
    API_KEY = 41
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] | None = None,
        throttle_time_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is None else tokens
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tags = unknown_tags


class DescribedDelegationToken(Struct):
    """An element of `tokens` in DescribeDelegationTokenResponse, versions 0 to 3."""

    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = [] if renewers is None else renewers
        self.unknown_tags = unknown_tags


class DescribedDelegationTokenRenewer(Struct):
    """A struct in DescribeDelegationTokenResponse, versions 0 to 3."""

    __slots__ = ("principal_type", "principal_name")

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.unknown_tags = unknown_tags
