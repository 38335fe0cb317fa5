"""StreamsGroupCurrentMemberAssignmentValue (key 22), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupCurrentMemberAssignmentValue(Message):
    """StreamsGroupCurrentMemberAssignmentValue (key 22), version 0, flexible from version 0 on."""

    __slots__ = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "active_tasks_pending_revocation",
        "standby_tasks_pending_revocation",
        "warmup_tasks_pending_revocation",
    )

    NAME = "StreamsGroupCurrentMemberAssignmentValue"
    API_KEY = 22
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        active_tasks_pending_revocation: list[TaskIds] | None = None,
        standby_tasks_pending_revocation: list[TaskIds] | None = None,
        warmup_tasks_pending_revocation: list[TaskIds] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = [] if active_tasks is None else active_tasks
        self.standby_tasks = [] if standby_tasks is None else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is None else warmup_tasks
        self.active_tasks_pending_revocation = (
            [] if active_tasks_pending_revocation is None else active_tasks_pending_revocation
        )
        self.standby_tasks_pending_revocation = (
            [] if standby_tasks_pending_revocation is None else standby_tasks_pending_revocation
        )
        self.warmup_tasks_pending_revocation = (
            [] if warmup_tasks_pending_revocation is None else warmup_tasks_pending_revocation
        )
        self.unknown_tags = unknown_tags


class TaskIds(Struct):
    """A struct in StreamsGroupCurrentMemberAssignmentValue, version 0."""

    __slots__ = ("subtopology_id", "partitions", "assignment_epochs")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
        assignment_epochs: list[int] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is None else partitions
        self.assignment_epochs: list[int] | None = (
            [] if isinstance(assignment_epochs, tuple) else assignment_epochs
        )
        self.unknown_tags = unknown_tags
