"""RemoveRaftVoterRequest (key 81), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RemoveRaftVoterRequest(Message):
    """RemoveRaftVoterRequest (key 81), version 0, flexible from version 0 on."""

    __slots__ = ("cluster_id", "voter_id", "voter_directory_id")

    NAME = "RemoveRaftVoterRequest"
    API_KEY = 81
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.unknown_tags = unknown_tags
