"""JoinGroupResponse (key 11), versions 0 to 9, flexible from version 6 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class JoinGroupResponse(Message):
    """JoinGroupResponse (key 11), versions 0 to 9, flexible from version 6 on."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )

    NAME = "JoinGroupResponse"
    API_KEY = 11
    VERSIONS = (0, 9)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is None else members
        self.unknown_tags = unknown_tags


class JoinGroupResponseMember(Struct):
    """An element of `members` in JoinGroupResponse, versions 0 to 9."""

    __slots__ = ("member_id", "group_instance_id", "metadata")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata
        self.unknown_tags = unknown_tags
