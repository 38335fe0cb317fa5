"""DefaultPrincipalData, version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class DefaultPrincipalData(Message):
    """DefaultPrincipalData, version 0, flexible from version 0 on."""

    __slots__ = ("type", "name", "token_authenticated")

    NAME = "DefaultPrincipalData"
    API_KEY = None
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
        self.unknown_tags = unknown_tags
