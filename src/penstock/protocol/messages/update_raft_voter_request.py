"""UpdateRaftVoterRequest (key 82), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class UpdateRaftVoterRequest(Message):
    """UpdateRaftVoterRequest (key 82), version 0, flexible from version 0 on."""

    __slots__ = (
        "cluster_id",
        "current_leader_epoch",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "k_raft_version_feature",
    )

    NAME = "UpdateRaftVoterRequest"
    API_KEY = 82
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = bytes(16),
        listeners: list[Listener] | None = None,
        k_raft_version_feature: KRaftVersionFeature | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is None else listeners
        self.k_raft_version_feature = (
            KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature
        )
        self.unknown_tags = unknown_tags


class Listener(Struct):
    """An element of `listeners` in UpdateRaftVoterRequest, version 0."""

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
    """The value of `k_raft_version_feature` in UpdateRaftVoterRequest, version 0."""

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
