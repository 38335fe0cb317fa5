"""AddRaftVoterRequest (key 80), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AddRaftVoterRequest(Message):
    """AddRaftVoterRequest (key 80), versions 0 to 1, flexible from version 0 on."""

    __slots__ = (
        "cluster_id",
        "timeout_ms",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "ack_when_committed",
    )

    NAME = "AddRaftVoterRequest"
    API_KEY = 80
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = bytes(16),
        listeners: list[Listener] | None = None,
        ack_when_committed: bool = True,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is None else listeners
        self.ack_when_committed = ack_when_committed
        self.unknown_tags = unknown_tags


class Listener(Struct):
    """An element of `listeners` in AddRaftVoterRequest, versions 0 to 1."""

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
