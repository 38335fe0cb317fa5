"""SaslAuthenticateRequest (key 36), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class SaslAuthenticateRequest(Message):
    """SaslAuthenticateRequest (key 36), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("auth_bytes",)

    NAME = "SaslAuthenticateRequest"
    API_KEY = 36
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.auth_bytes = auth_bytes
        self.unknown_tags = unknown_tags
