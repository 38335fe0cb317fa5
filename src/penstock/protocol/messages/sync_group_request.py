"""SyncGroupRequest (key 14), versions 0 to 5, flexible from version 4 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class SyncGroupRequest(Message):
    """SyncGroupRequest (key 14), versions 0 to 5, flexible from version 4 on."""

    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )

    NAME = "SyncGroupRequest"
    API_KEY = 14
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is None else assignments
        self.unknown_tags = unknown_tags


class SyncGroupRequestAssignment(Struct):
    """An element of `assignments` in SyncGroupRequest, versions 0 to 5."""

    __slots__ = ("member_id", "assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment
        self.unknown_tags = unknown_tags
