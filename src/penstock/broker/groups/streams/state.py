"""The state of a streams group, and the changes to it.

Only `StreamsState.apply` changes a group: with changes that a request or a timer has caused, once they are
stored, and with changes that are read from `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

from penstock.broker.groups.streams.tasks import NO_TASKS, Task, Tasks
from penstock.broker.groups.streams.topology import Topology

FIRST_EPOCH = 1
"""The epoch of a group that has no record of its own yet; the group's first change raises it to 2."""

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
"""The member epochs in heartbeats of a joining member, a leaving one, and a leaving static one that may
return.
"""

NO_TIME = 0
"""The assignment time, in wall-clock ms, of a group whose target assignment was never computed: 0."""

NO_EPOCH = -1
"""The topology epoch of a group or member that has no topology: -1."""

MEMBER_BYTES = 1800
"""The approximate memory of a member in bytes, without its ids and names."""

TASK_BYTES = 260
"""The approximate memory, in bytes, of one task in both the target and the current assignment."""

OFFSET_BYTES = 220
"""The approximate memory of a task's offset that a member has reported, in bytes."""

TOPIC_BYTES = 400
"""The approximate memory of a topic of the topology in bytes, without its name and settings."""


class State(StrEnum):
    """The state of a group. The values are the names in responses of StreamsGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    """A group without members; it may have committed offsets."""
    NOT_READY = "NotReady"
    """A group whose topology cannot run: topics are missing, or have wrong partition counts."""
    ASSIGNING = "Assigning"
    """A group whose epoch is ahead of its target assignment."""
    RECONCILING = "Reconciling"
    """A group with a member that does not have its target assignment yet."""
    STABLE = "Stable"
    """A group whose members all have their target assignments."""


class MemberState(IntEnum):
    """A member's progress towards its target assignment; the values are the numbers in stored records."""

    STABLE = 1
    """The member has the epoch of its target assignment, and all tasks of it."""
    UNREVOKED = 2
    """The member has to give up tasks before its epoch advances."""
    UNRELEASED = 3
    """The member has the epoch of its target assignment, and waits for tasks that other members hold."""
    UNKNOWN = 127
    """A state that a newer version of the broker has stored."""


class Member(NamedTuple):
    """The fields of a streams group's member that are stored: ids, timeout, process and endpoint."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = NO_EPOCH
    process_id: str = ""
    """The id of the member's application instance, which has one member for each of its threads."""
    endpoint: tuple[str, int] | None = None
    """The host and port at which other instances can query the state of the member's instance."""
    tags: tuple[tuple[str, str], ...] = ()
    """The member's client tags as pairs of key and value, in alphabetical order."""

    def for_assignor(self) -> tuple[object, ...]:
        """Return the fields whose change leads to a new assignment, even if the member is static."""
        return self.topology_epoch, self.rack_id, self.tags, self.process_id


class Current(NamedTuple):
    """A member's current assignment: its epochs, and its tasks."""

    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Tasks = NO_TASKS
    revoking: Tasks = NO_TASKS
    """Tasks that the member has to give up, and may still have."""
    epochs: Mapping[Task, int] = {}
    """The member epoch at which each active task was assigned (KIP-1251), including tasks to be given up."""

    def has_same_tasks(self, other: Current) -> bool:
        """Return True if `other` has the same assigned tasks, with the same epochs of assignment."""
        return self.assigned == other.assigned and all(
            self.epochs.get(task) == other.epochs.get(task) for task in self.assigned.active
        )


class Offsets(NamedTuple):
    """The offsets of a member's tasks, each the sum over the partitions of the task's changelogs.

    These offsets are not stored: members report them again.
    """

    reached: Mapping[Task, int] = {}
    """The changelog offsets up to which the member has restored the state of its tasks."""
    ends: Mapping[Task, int] = {}
    """The end offsets of the changelogs of the member's tasks."""


class Epoch(NamedTuple):
    """The epoch of a group, with the topology, metadata and settings for which it began."""

    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    validated_topology: int = NO_EPOCH
    """The topology's epoch if all topics of the topology exist and are valid, otherwise `NO_EPOCH`."""
    configs: tuple[tuple[str, str], ...] = ()
    """The settings for the assignor, as pairs of name and value."""


class SetEpoch(NamedTuple):
    """A change of the group epoch; a value of None removes the group."""

    value: Epoch | None


class SetTopology(NamedTuple):
    """A change of the topology; the value is None if the group is removed."""

    value: Topology | None


class SetMember(NamedTuple):
    """A change of a member; a value of None removes the member."""

    member_id: str
    value: Member | None


class SetTargetEpoch(NamedTuple):
    """A change of the epoch and time of the target assignment; a value of None removes both."""

    value: tuple[int, int] | None


class SetTarget(NamedTuple):
    """A change of a member's target assignment; a value of None removes the assignment."""

    member_id: str
    value: Tasks | None


class SetCurrent(NamedTuple):
    """A change of a member's current assignment; a value of None removes the assignment."""

    member_id: str
    value: Current | None


class SetOffsets(NamedTuple):
    """A change of a member's task offsets, which is not stored."""

    member_id: str
    value: Offsets


Change: TypeAlias = SetEpoch | SetTopology | SetMember | SetTargetEpoch | SetTarget | SetCurrent
"""Any change of a streams group that is stored as a record."""

_V = TypeVar("_V")

_NOBODY: frozenset[str] = frozenset()


class StreamsState:
    """The members of one streams group, their tasks, its topology and its epochs."""

    def __init__(self) -> None:
        self.group = Epoch()
        self.target_epoch = FIRST_EPOCH
        self.target_time_ms = NO_TIME
        self.topology: Topology | None = None
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        """A dict from the instance id of each static member to its member id."""
        self.offsets: dict[str, Offsets] = {}
        self.currents: dict[str, Current] = {}
        self.targets: dict[str, Tasks] = {}
        self.owners: dict[Task, str] = {}
        """A dict from each active task to the id of its owner, including tasks that the owner must give up.
        """
        self.holders: dict[Task, frozenset[str]] = {}
        """A dict from task to the ids of the members that have it as a standby or warm-up task."""
        self.target_tasks = 0
        """The number of tasks in all target assignments: active, standby and warm-up."""
        self.task_offsets = 0
        """The number of task offsets that all members have reported."""
        self.names_bytes = 0
        self.topology_bytes = 0

    def copy(self) -> StreamsState:
        """Return a copy that can be changed without changing this state."""
        other = StreamsState.__new__(StreamsState)
        other.__dict__.update(self.__dict__)
        for name in ("members", "instances", "offsets", "currents", "targets", "owners", "holders"):
            setattr(other, name, getattr(self, name).copy())
        return other

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The group epoch."""
        return self.group.epoch

    @property
    def state(self) -> State:
        """The state of the group."""
        if not self.members:
            return State.EMPTY
        if self.topology is None or self.topology.epoch != self.group.validated_topology:
            return State.NOT_READY
        if self.epoch > self.target_epoch:
            return State.ASSIGNING
        for member_id in self.members:
            current = self.current(member_id)
            if current.state is not MemberState.STABLE or current.epoch != self.target_epoch:
                return State.RECONCILING
        return State.STABLE

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, that the group uses."""
        members = MEMBER_BYTES * len(self.members) + TASK_BYTES * self.target_tasks
        return self.names_bytes + self.topology_bytes + members + OFFSET_BYTES * self.task_offsets

    def current(self, member_id: str) -> Current:
        """Return a member's current assignment, or an empty one with epoch 0 if the member has none yet."""
        return self.currents.get(member_id, _JOINED)

    def target(self, member_id: str) -> Tasks:
        """Return the target assignment of a member."""
        return self.targets.get(member_id, NO_TASKS)

    def process_of(self, member_id: str) -> str:
        """Return the process id of a member, or an empty string if the member does not exist."""
        member = self.members.get(member_id)
        return "" if member is None else member.process_id

    def is_held_elsewhere(self, task: Task, member_id: str, *, as_active: bool) -> bool:
        """Return True if a member has to wait for a task because another member still has it.

        An active task has at most one owner in the group. A process has at most one copy of a task, whether
        active, standby or warm-up.
        """
        owner = self.owners.get(task)
        process = self.process_of(member_id)
        if owner is not None and owner != member_id and (as_active or self.process_of(owner) == process):
            return True
        holders = self.holders.get(task, _NOBODY)
        return any(each != member_id and self.process_of(each) == process for each in holders)

    # --- changing ----------------------------------------------------------------------------------------

    def apply(self, change: Change | SetOffsets) -> None:
        """Apply one change to the state."""
        if isinstance(change, SetCurrent):
            self._set_current(change.member_id, change.value)
        elif isinstance(change, SetTarget):
            self.target_tasks += (change.value or NO_TASKS).size - self.target(change.member_id).size
            _put(self.targets, change.member_id, change.value)
        elif isinstance(change, SetMember):
            self._set_member(change.member_id, change.value)
        elif isinstance(change, SetOffsets):
            self._set_offsets(change.member_id, change.value)
        elif isinstance(change, SetTargetEpoch):
            self.target_epoch, self.target_time_ms = change.value or (FIRST_EPOCH, NO_TIME)
        elif isinstance(change, SetEpoch):
            self.group = change.value or Epoch()
        else:
            self.topology = change.value
            self.topology_bytes = 0 if change.value is None else sum(_text_sizes(change.value))

    def _set_member(self, member_id: str, value: Member | None) -> None:
        older = self.members.get(member_id)
        self.names_bytes += _size_of(member_id, value) - _size_of(member_id, older)
        _put(self.members, member_id, value)
        if older is not None and self.instances.get(older.instance_id or "") == member_id:
            del self.instances[older.instance_id or ""]
        if value is None:
            self._set_offsets(member_id, None)
        elif value.instance_id is not None:
            self.instances[value.instance_id] = member_id

    def _set_offsets(self, member_id: str, value: Offsets | None) -> None:
        for each, sign in ((value, 1), (self.offsets.get(member_id), -1)):
            self.task_offsets += sign * sum(map(len, each or ()))
        _put(self.offsets, member_id, value)

    def _set_current(self, member_id: str, value: Current | None) -> None:
        older = self.currents.get(member_id)
        if older is not None:
            for task in older.assigned.active | older.revoking.active:
                if self.owners.get(task) == member_id:
                    del self.owners[task]
            for task in _passive(older):
                left = self.holders.get(task, _NOBODY) - {member_id}
                _put(self.holders, task, left or None)
        _put(self.currents, member_id, value)
        if value is not None:
            for task in value.assigned.active | value.revoking.active:
                self.owners[task] = member_id
            for task in _passive(value):
                self.holders[task] = self.holders.get(task, _NOBODY) | {member_id}


_K = TypeVar("_K")


def _put(kept: dict[_K, _V], key: _K, value: _V | None) -> None:
    if value is None:
        kept.pop(key, None)
    else:
        kept[key] = value


def _passive(current: Current) -> frozenset[Task]:
    assigned, revoking = current.assigned, current.revoking
    return assigned.standby | assigned.warmup | revoking.standby | revoking.warmup


def _size_of(member_id: str, member: Member | None) -> int:
    if member is None:
        return 0
    names = [
        member_id,
        member.instance_id or "",
        member.rack_id or "",
        member.client_id,
        member.client_host,
        member.process_id,
    ]
    names += [text for tag in member.tags for text in tag]
    return sum(60 + len(name) for name in names) + len((member.endpoint or ("", 0))[0])


def _text_sizes(topology: Topology) -> Iterator[int]:
    """Yield the approximate sizes in bytes of the parts of a topology."""
    for each in topology.subtopologies:
        yield TOPIC_BYTES + len(each.id)
        for topic in (*each.repartition_sources, *each.changelogs):
            yield TOPIC_BYTES + len(topic.name)
            yield from (150 + len(key) + len(text) for key, text in topic.configs)
        yield from (TOPIC_BYTES + len(name) for name in (*each.source_topics, *each.repartition_sinks))
        for group in each.copartition_groups:
            yield TOPIC_BYTES + 8 * (len(group.source_topics) + len(group.repartition_topics))


_JOINED = Current()


def removal(state: StreamsState) -> list[Change]:
    """Return the changes that remove a group, in the order in which Apache Kafka writes them."""
    changes: list[Change] = [SetCurrent(member_id, None) for member_id in state.currents]
    changes += [SetTarget(member_id, None) for member_id in state.targets]
    changes.append(SetTargetEpoch(None))
    changes += [SetMember(member_id, None) for member_id in state.members]
    changes += [SetEpoch(None), SetTopology(None)]
    return changes
