"""SaslHandshakeResponse (key 17), versions 0 to 1. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class SaslHandshakeResponse(Message):
    """SaslHandshakeResponse (key 17), versions 0 to 1."""

    __slots__ = ("error_code", "mechanisms")

    NAME = "SaslHandshakeResponse"
    API_KEY = 17
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is None else mechanisms
        self.unknown_tags = unknown_tags
