"""JoinGroupRequest (key 11), versions 0 to 9, flexible from version 6 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class JoinGroupRequest(Message):
    """JoinGroupRequest (key 11), versions 0 to 9, flexible from version 6 on."""

    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )

    NAME = "JoinGroupRequest"
    API_KEY = 11
    VERSIONS = (0, 9)

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] | None = None,
        reason: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is None else protocols
        self.reason = reason
        self.unknown_tags = unknown_tags


class JoinGroupRequestProtocol(Struct):
    """An element of `protocols` in JoinGroupRequest, versions 0 to 9."""

    __slots__ = ("name", "metadata")

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.metadata = metadata
        self.unknown_tags = unknown_tags
