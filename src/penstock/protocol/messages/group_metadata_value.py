"""GroupMetadataValue (key 2), versions 0 to 4, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class GroupMetadataValue(Message):
    """GroupMetadataValue (key 2), versions 0 to 4, flexible from version 4 on."""

    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members")

    NAME = "GroupMetadataValue"
    API_KEY = 2
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is None else members
        self.unknown_tags = unknown_tags


class MemberMetadata(Struct):
    """An element of `members` in GroupMetadataValue, versions 0 to 4."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "rebalance_timeout",
        "session_timeout",
        "subscription",
        "assignment",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment
        self.unknown_tags = unknown_tags
