"""DescribeUserScramCredentialsResponse (key 50), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeUserScramCredentialsResponse(Message):
    """DescribeUserScramCredentialsResponse (key 50), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")

    NAME = "DescribeUserScramCredentialsResponse"
    API_KEY = 50
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class DescribeUserScramCredentialsResult(Struct):
    """An element of `results` in DescribeUserScramCredentialsResponse, version 0."""

    __slots__ = ("user", "error_code", "error_message", "credential_infos")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = [] if credential_infos is None else credential_infos
        self.unknown_tags = unknown_tags


class CredentialInfo(Struct):
    """A struct in DescribeUserScramCredentialsResponse, version 0."""

    __slots__ = ("mechanism", "iterations")

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations
        self.unknown_tags = unknown_tags
