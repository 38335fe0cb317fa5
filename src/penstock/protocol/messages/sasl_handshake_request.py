"""SaslHandshakeRequest (key 17), versions 0 to 1. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class SaslHandshakeRequest(Message):
    """SaslHandshakeRequest (key 17), versions 0 to 1."""

    __slots__ = ("mechanism",)

    NAME = "SaslHandshakeRequest"
    API_KEY = 17
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        mechanism: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.mechanism = mechanism
        self.unknown_tags = unknown_tags
