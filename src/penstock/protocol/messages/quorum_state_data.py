"""QuorumStateData, versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class QuorumStateData(Message):
    """QuorumStateData, versions 0 to 1, flexible from version 0 on."""

    __slots__ = (
        "cluster_id",
        "leader_id",
        "leader_epoch",
        "voted_id",
        "voted_directory_id",
        "applied_offset",
        "current_voters",
    )

    NAME = "QuorumStateData"
    API_KEY = None
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: bytes = bytes(16),
        applied_offset: int = 0,
        current_voters: list[Voter] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters: list[Voter] | None = [] if isinstance(current_voters, tuple) else current_voters
        self.unknown_tags = unknown_tags


class Voter(Struct):
    """An element of `current_voters` in QuorumStateData, version 0."""

    __slots__ = ("voter_id",)

    def __init__(
        self,
        *,
        voter_id: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.voter_id = voter_id
        self.unknown_tags = unknown_tags
