"""The state of a share group, and the changes to it.

Only `ShareState.apply` changes a group: with changes that a request or a timer has caused, once they are
stored, and with changes that are read from `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

from penstock.broker.groups.metadata_view import Partition

FIRST_EPOCH = 1
"""The epoch of a group that has no record of its own yet; the group's first change raises it to 2."""

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
"""The member epochs of a ShareGroupHeartbeat that joins, and of one that leaves."""

NO_TIME = 0
"""The assignment time, in wall-clock ms, of a group whose target assignment was never computed: 0."""

MEMBER_BYTES = 1200
"""The approximate memory of a member in bytes, without its ids and names."""

PARTITION_BYTES = 200
"""The approximate memory, in bytes, of one partition in both the target and the current assignment."""


class State(StrEnum):
    """The state of a group. The values are the names in responses of ShareGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    """A group without members; its share partitions may have start offsets."""
    STABLE = "Stable"
    """A group with members."""


class Member(NamedTuple):
    """The identity of a member, and its subscription."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """The names of the subscribed topics, in alphabetical order."""


class Current(NamedTuple):
    """The epochs of a member, and the partitions assigned to it."""

    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    assigned: frozenset[Partition] = frozenset()


class TopicPartitions(NamedTuple):
    """The name of a topic, and the indices of some of its partitions."""

    name: str
    partitions: frozenset[int]


Topics: TypeAlias = Mapping[bytes, TopicPartitions]
"""A mapping from topic id to the topic's name and some of its partitions."""


class ShareInitialization(NamedTuple):
    """The share partitions of a group that have a state at the share coordinator, or are about to get one.

    `initializing` has the partitions whose state has been requested, `initialized` those that have a state.
    `deleting` has the names of topics whose states are being deleted. All three are dicts keyed by topic id.
    """

    initializing: Mapping[bytes, TopicPartitions] = {}
    initialized: Mapping[bytes, TopicPartitions] = {}
    deleting: Mapping[bytes, str] = {}

    def begin(self, topics: Topics) -> ShareInitialization:
        """Return a copy in which these partitions are initializing: their states have been requested."""
        left = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return self._replace(initializing=added(self.initializing, topics), deleting=left)

    def finish(self, topics: Topics) -> ShareInitialization:
        """Return a copy in which these partitions are initialized instead of initializing."""
        return self._replace(
            initializing=without(self.initializing, topics), initialized=added(self.initialized, topics)
        )

    def give_up(self, topics: Topics) -> ShareInitialization:
        """Return a copy in which these partitions are no longer initializing, because the request failed."""
        return self._replace(initializing=without(self.initializing, topics))

    def delete(self, topics: Mapping[bytes, str]) -> ShareInitialization:
        """Return a copy in which the states of these initialized topics are being deleted."""
        kept = {topic_id: each for topic_id, each in self.initialized.items() if topic_id not in topics}
        return self._replace(initialized=kept, deleting={**self.deleting, **topics})

    def forget(self, topic_ids: Iterable[bytes]) -> ShareInitialization:
        """Return a copy without the given topics."""
        gone = set(topic_ids)
        return ShareInitialization(
            {topic_id: each for topic_id, each in self.initializing.items() if topic_id not in gone},
            {topic_id: each for topic_id, each in self.initialized.items() if topic_id not in gone},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in gone},
        )

    @property
    def topic_ids(self) -> set[bytes]:
        """Return the ids of all topics that are initializing, initialized or being deleted."""
        return {*self.initializing, *self.initialized, *self.deleting}


def added(topics: Topics, more: Topics) -> dict[bytes, TopicPartitions]:
    """Return a dict from topic id to the partitions that are in at least one of the two arguments."""
    found = dict(topics)
    for topic_id, each in more.items():
        before = found.get(topic_id)
        partitions = each.partitions if before is None else before.partitions | each.partitions
        found[topic_id] = TopicPartitions(each.name, partitions)
    return found


def without(topics: Topics, less: Topics) -> dict[bytes, TopicPartitions]:
    """Return a dict from topic id to the partitions of the first argument that are not in the second."""
    found = {}
    for topic_id, each in topics.items():
        left = each.partitions - less[topic_id].partitions if topic_id in less else each.partitions
        if left:
            found[topic_id] = each._replace(partitions=left)
    return found


class SetEpoch(NamedTuple):
    """A change of the group epoch, with the hash of the topics; a value of None removes the group."""

    value: tuple[int, int] | None


class SetMember(NamedTuple):
    """A change that sets a member's identity and subscription; a value of None removes the member."""

    member_id: str
    value: Member | None


class SetTargetEpoch(NamedTuple):
    """A change of the epoch and time of the target assignment; a value of None removes both."""

    value: tuple[int, int] | None


class SetTarget(NamedTuple):
    """A change of a member's target assignment; a value of None removes the assignment."""

    member_id: str
    value: frozenset[Partition] | None


class SetCurrent(NamedTuple):
    """A change of a member's current assignment; a value of None removes the assignment."""

    member_id: str
    value: Current | None


class SetInitialization(NamedTuple):
    """A change of the initialized and initializing share partitions; None removes them with the group."""

    value: ShareInitialization | None


Change: TypeAlias = SetEpoch | SetMember | SetTargetEpoch | SetTarget | SetCurrent | SetInitialization

_V = TypeVar("_V")

_NO_PARTITIONS: frozenset[Partition] = frozenset()


class ShareState:
    """The members of one share group, their assignments, its epochs, and its initialized share partitions."""

    def __init__(self) -> None:
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = FIRST_EPOCH
        self.target_time_ms = NO_TIME
        self.members: dict[str, Member] = {}
        self.currents: dict[str, Current] = {}
        self.targets: dict[str, frozenset[Partition]] = {}
        self.initialization: ShareInitialization | None = None
        """The initialized and initializing share partitions; None if no record of them is stored."""
        self.names_bytes = 0
        self._topics: frozenset[str] | None = None

    def copy(self) -> ShareState:
        """Return a copy that can be changed without changing this state."""
        other = ShareState.__new__(ShareState)
        other.__dict__.update(self.__dict__)
        other.members = self.members.copy()
        other.currents = self.currents.copy()
        other.targets = self.targets.copy()
        return other

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state of the group."""
        return State.STABLE if self.members else State.EMPTY

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, that the group uses."""
        noted = sum(len(each.partitions) for each in self.initialized.values())
        assigned = noted + sum(map(len, self.targets.values()))
        return self.names_bytes + MEMBER_BYTES * len(self.members) + PARTITION_BYTES * assigned

    @property
    def initialized(self) -> Topics:
        """Return the share partitions that have a state at the share coordinator, by topic id."""
        return {} if self.initialization is None else self.initialization.initialized

    def current(self, member_id: str) -> Current:
        """Return a member's current assignment, or an empty one with epoch 0 if the member has none yet."""
        return self.currents.get(member_id, _JOINED)

    def target(self, member_id: str) -> frozenset[Partition]:
        """Return the target assignment of a member."""
        return self.targets.get(member_id, _NO_PARTITIONS)

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that any member subscribes to."""
        if self._topics is None:
            self._topics = frozenset(
                name for topics in {each.topics for each in self.members.values()} for name in topics
            )
        return self._topics

    # --- changing ----------------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Apply one change to the state."""
        if isinstance(change, SetCurrent):
            _put(self.currents, change.member_id, change.value)
        elif isinstance(change, SetTarget):
            _put(self.targets, change.member_id, change.value)
        elif isinstance(change, SetMember):
            self._set_member(change.member_id, change.value)
        elif isinstance(change, SetTargetEpoch):
            self.target_epoch, self.target_time_ms = change.value or (FIRST_EPOCH, NO_TIME)
        elif isinstance(change, SetEpoch):
            self.epoch, self.metadata_hash = change.value or (FIRST_EPOCH, 0)
        else:
            self.initialization = change.value

    def _set_member(self, member_id: str, value: Member | None) -> None:
        older = self.members.get(member_id)
        self.names_bytes += _size_of(member_id, value) - _size_of(member_id, older)
        _put(self.members, member_id, value)
        if older is None or value is None or older.topics != value.topics:
            self._topics = None


def _put(kept: dict[str, _V], key: str, value: _V | None) -> None:
    if value is None:
        kept.pop(key, None)
    else:
        kept[key] = value


def _size_of(member_id: str, member: Member | None) -> int:
    if member is None:
        return 0
    names = [member_id, member.rack_id or "", member.client_id, member.client_host, *member.topics]
    return sum(60 + len(name) for name in names)


_JOINED = Current()


def removal(state: ShareState) -> list[Change]:
    """Return the changes that remove a group, in the order in which Apache Kafka writes them."""
    changes: list[Change] = [SetCurrent(member_id, None) for member_id in state.currents]
    changes += [SetTarget(member_id, None) for member_id in state.targets]
    changes += [SetMember(member_id, None) for member_id in state.members]
    changes += [SetTargetEpoch(None), SetInitialization(None), SetEpoch(None)]
    return changes
