"""AlterUserScramCredentialsRequest (key 51), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterUserScramCredentialsRequest(Message):
    """AlterUserScramCredentialsRequest (key 51), version 0, flexible from version 0 on."""

    __slots__ = ("deletions", "upsertions")

    NAME = "AlterUserScramCredentialsRequest"
    API_KEY = 51
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] | None = None,
        upsertions: list[ScramCredentialUpsertion] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.deletions = [] if deletions is None else deletions
        self.upsertions = [] if upsertions is None else upsertions
        self.unknown_tags = unknown_tags


class ScramCredentialDeletion(Struct):
    """An element of `deletions` in AlterUserScramCredentialsRequest, version 0."""

    __slots__ = ("name", "mechanism")

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


class ScramCredentialUpsertion(Struct):
    """An element of `upsertions` in AlterUserScramCredentialsRequest, version 0."""

    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password
        self.unknown_tags = unknown_tags
