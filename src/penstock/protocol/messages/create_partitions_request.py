"""CreatePartitionsRequest (key 37), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class CreatePartitionsRequest(Message):
    """CreatePartitionsRequest (key 37), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("topics", "timeout_ms", "validate_only")

    NAME = "CreatePartitionsRequest"
    API_KEY = 37
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] | None = None,
        timeout_ms: int = 0,
        validate_only: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags


class CreatePartitionsTopic(Struct):
    """An element of `topics` in CreatePartitionsRequest, versions 0 to 3."""

    __slots__ = ("name", "count", "assignments")

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments: list[CreatePartitionsAssignment] | None = (
            [] if isinstance(assignments, tuple) else assignments
        )
        self.unknown_tags = unknown_tags


class CreatePartitionsAssignment(Struct):
    """An element of `assignments` in CreatePartitionsTopic (CreatePartitionsRequest), versions 0 to 3."""

    __slots__ = ("broker_ids",)

    def __init__(
        self,
        *,
        broker_ids: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_ids = [] if broker_ids is None else broker_ids
        self.unknown_tags = unknown_tags
