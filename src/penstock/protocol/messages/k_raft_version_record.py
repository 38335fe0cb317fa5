"""KRaftVersionRecord, version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class KRaftVersionRecord(Message):
    """KRaftVersionRecord, version 0, flexible from version 0 on."""

    __slots__ = ("version", "k_raft_version")

    NAME = "KRaftVersionRecord"
    API_KEY = None
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        version: int = 0,
        k_raft_version: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.version = version
        self.k_raft_version = k_raft_version
        self.unknown_tags = unknown_tags
