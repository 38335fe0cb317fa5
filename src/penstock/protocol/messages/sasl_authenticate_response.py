"""SaslAuthenticateResponse (key 36), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class SaslAuthenticateResponse(Message):
    """SaslAuthenticateResponse (key 36), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")

    NAME = "SaslAuthenticateResponse"
    API_KEY = 36
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
        self.unknown_tags = unknown_tags
