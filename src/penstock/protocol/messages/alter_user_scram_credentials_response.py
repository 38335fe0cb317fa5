"""AlterUserScramCredentialsResponse (key 51), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterUserScramCredentialsResponse(Message):
    """AlterUserScramCredentialsResponse (key 51), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "results")

    NAME = "AlterUserScramCredentialsResponse"
    API_KEY = 51
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class AlterUserScramCredentialsResult(Struct):
    """An element of `results` in AlterUserScramCredentialsResponse, version 0."""

    __slots__ = ("user", "error_code", "error_message")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
