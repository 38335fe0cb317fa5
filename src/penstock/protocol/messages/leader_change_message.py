"""LeaderChangeMessage, versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class LeaderChangeMessage(Message):
    """LeaderChangeMessage, versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("version", "leader_id", "voters", "granting_voters")

    NAME = "LeaderChangeMessage"
    API_KEY = None
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[Voter] | None = None,
        granting_voters: list[Voter] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is None else voters
        self.granting_voters = [] if granting_voters is None else granting_voters
        self.unknown_tags = unknown_tags


class Voter(Struct):
    """A struct in LeaderChangeMessage, for the fields `voters`, `granting_voters`; versions 0 to 1."""

    __slots__ = ("voter_id", "voter_directory_id")

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.unknown_tags = unknown_tags
