"""StreamsGroupTargetAssignmentMemberValue (key 21), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupTargetAssignmentMemberValue(Message):
    """StreamsGroupTargetAssignmentMemberValue (key 21), version 0, flexible from version 0 on."""

    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")

    NAME = "StreamsGroupTargetAssignmentMemberValue"
    API_KEY = 21
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.active_tasks = [] if active_tasks is None else active_tasks
        self.standby_tasks = [] if standby_tasks is None else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is None else warmup_tasks
        self.unknown_tags = unknown_tags


class TaskIds(Struct):
    """A struct in StreamsGroupTargetAssignmentMemberValue, version 0."""

    __slots__ = ("subtopology_id", "partitions")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags
