"""RemoveUserScramCredentialRecord (key 22), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RemoveUserScramCredentialRecord(Message):
    """RemoveUserScramCredentialRecord (key 22), version 0, flexible from version 0 on."""

    __slots__ = ("name", "mechanism")

    NAME = "RemoveUserScramCredentialRecord"
    API_KEY = 22
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.unknown_tags = unknown_tags
