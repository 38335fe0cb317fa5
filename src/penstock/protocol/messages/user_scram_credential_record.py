"""UserScramCredentialRecord (key 11), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class UserScramCredentialRecord(Message):
    """UserScramCredentialRecord (key 11), version 0, flexible from version 0 on."""

    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")

    NAME = "UserScramCredentialRecord"
    API_KEY = 11
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations
        self.unknown_tags = unknown_tags
