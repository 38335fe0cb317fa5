"""VotersRecord, version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class VotersRecord(Message):
    """VotersRecord, version 0, flexible from version 0 on."""

    __slots__ = ("version", "voters")

    NAME = "VotersRecord"
    API_KEY = None
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[Voter] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.version = version
        self.voters = [] if voters is None else voters
        self.unknown_tags = unknown_tags


class Voter(Struct):
    """An element of `voters` in VotersRecord, version 0."""

    __slots__ = ("voter_id", "voter_directory_id", "endpoints", "k_raft_version_feature")

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = bytes(16),
        endpoints: list[Endpoint] | None = None,
        k_raft_version_feature: KRaftVersionFeature | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.endpoints = [] if endpoints is None else endpoints
        self.k_raft_version_feature = (
            KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature
        )
        self.unknown_tags = unknown_tags


class Endpoint(Struct):
    """An element of `endpoints` in Voter (VotersRecord), version 0."""

    __slots__ = ("name", "host", "port")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.unknown_tags = unknown_tags


class KRaftVersionFeature(Struct):
    """The value of `k_raft_version_feature` in Voter (VotersRecord), version 0."""

    __slots__ = ("min_supported_version", "max_supported_version")

    def __init__(
        self,
        *,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version
        self.unknown_tags = unknown_tags
