"""The state of a consumer group, and the changes to it.

Only `GroupState.apply` changes a group: with changes that a request or a timer has caused, once they are
stored, and with changes that are read from `__consumer_offsets`. So the same records always produce the same
group, in any order in which compaction leaves the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

from penstock.broker.groups import metadata_view

Partition: TypeAlias = metadata_view.Partition
"""A partition as a pair: topic id and partition index."""

FIRST_EPOCH = 1
"""The epoch of a group that has no record of its own yet; the group's first change raises it to 2."""

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
"""The member epochs in heartbeats of a joining member, a leaving one, and a leaving static one that may
return.
"""

NO_TIME = 0
"""The assignment time, in wall-clock ms, of a group whose target assignment was never computed: 0."""

MEMBER_BYTES = 1500
"""The approximate memory of a member in bytes, without its ids and names."""

PARTITION_BYTES = 220
"""The approximate memory, in bytes, of one partition in both the target and the current assignment."""


class State(StrEnum):
    """The state of a group. The values are the names in responses of ConsumerGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    """A group without members; it may have committed offsets."""
    ASSIGNING = "Assigning"
    """The group epoch is ahead of the target assignment; a later heartbeat computes the new assignment."""
    RECONCILING = "Reconciling"
    """At least one member does not have its target assignment yet."""
    STABLE = "Stable"
    """Every member has its target assignment."""
    DEAD = "Dead"
    """A deleted group. Apache Kafka never reports this state."""


class MemberState(IntEnum):
    """A member's progress towards its target assignment; the values are the numbers in stored records."""

    STABLE = 0
    """The member has the epoch of its target assignment, and all partitions of it."""
    UNREVOKED = 1
    """The member has to give up partitions before its epoch advances."""
    UNRELEASED = 2
    """The member has the epoch of its target assignment, and waits for partitions that other members own."""
    UNKNOWN = 127
    """A state that a newer version of the broker has stored."""


class ConsumerSubscription(NamedTuple):
    """A member's identity and subscription. `regex` is empty if the member uses no regular expression.

    `session_timeout_ms` is set for a member of the classic protocol; `protocols` are the assignors of this
    member with their metadata, in its order of preference.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """The names of the subscribed topics, in alphabetical order."""
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    session_timeout_ms: int | None = None
    protocols: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_classic(self) -> bool:
        """Return True if the member uses the classic protocol."""
        return self.session_timeout_ms is not None


class Current(NamedTuple):
    """A member's current assignment and epochs; each partition has its epoch of assignment (KIP-1251)."""

    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Mapping[Partition, int] = {}
    revoking: Mapping[Partition, int] = {}
    """The partitions that the member has to give up, and may still own, with their assignment epochs."""


class Resolved(NamedTuple):
    """The topics that a regular expression matches, with metadata version and wall-clock time."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


class SetEpoch(NamedTuple):
    """A change of the group epoch, with the hash of the topics. A value of None removes the group."""

    value: tuple[int, int] | None


class SetSubscription(NamedTuple):
    """A change of a member's subscription; a value of None removes the member."""

    member_id: str
    value: ConsumerSubscription | None


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


class SetRegex(NamedTuple):
    """A change of the topics that a regular expression matches; a value of None removes the expression."""

    regex: str
    value: Resolved | None


Change: TypeAlias = SetEpoch | SetSubscription | SetTargetEpoch | SetTarget | SetCurrent | SetRegex

_V = TypeVar("_V")

_NO_PARTITIONS: frozenset[Partition] = frozenset()


class GroupState:
    """The members of one group, their assignments and its epochs."""

    def __init__(self) -> None:
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = FIRST_EPOCH
        self.target_time_ms = NO_TIME
        self.subscriptions: dict[str, ConsumerSubscription] = {}
        self.currents: dict[str, Current] = {}
        self.targets: dict[str, frozenset[Partition]] = {}
        self.regexes: dict[str, Resolved] = {}
        self.instances: dict[str, str] = {}
        """A dict from the instance id of each static member to its member id."""
        self.owners: dict[Partition, str] = {}
        """A dict from each partition to its owner's member id, including partitions that it must give up."""
        self.names_bytes = 0
        self.targeted = 0
        """The number of partitions in the target assignments of all members together."""
        self.regex_members = 0
        """The number of members that subscribe with a regular expression."""
        self._topics: frozenset[str] | None = None

    def copy(self) -> GroupState:
        """Return a copy that can be changed without changing this state."""
        other = GroupState.__new__(GroupState)
        other.epoch, other.metadata_hash = self.epoch, self.metadata_hash
        other.target_epoch, other.target_time_ms = self.target_epoch, self.target_time_ms
        other.subscriptions = self.subscriptions.copy()
        other.currents = self.currents.copy()
        other.targets = self.targets.copy()
        other.regexes = self.regexes.copy()
        other.instances = self.instances.copy()
        other.owners = self.owners.copy()
        other.names_bytes, other.targeted = self.names_bytes, self.targeted
        other.regex_members = self.regex_members
        other._topics = self._topics
        return other

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Return the state of the group, derived from its epochs and its members."""
        if not self.subscriptions:
            return State.EMPTY
        if self.epoch > self.target_epoch:
            return State.ASSIGNING
        for member_id in self.subscriptions:
            current = self.current(member_id)
            if current.state is not MemberState.STABLE or current.epoch != self.target_epoch:
                return State.RECONCILING
        return State.STABLE

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, that the group uses."""
        members = MEMBER_BYTES * len(self.subscriptions)
        return self.names_bytes + members + PARTITION_BYTES * self.targeted

    def current(self, member_id: str) -> Current:
        """Return a member's current assignment, or an empty one with epoch 0 if the member has none yet."""
        return self.currents.get(member_id, _JOINED)

    def target(self, member_id: str) -> frozenset[Partition]:
        """Return the target assignment of a member."""
        return self.targets.get(member_id, _NO_PARTITIONS)

    def topics_of(self, subscription: ConsumerSubscription) -> frozenset[str]:
        """Return the topics that a member subscribes to, by name and with its regular expression."""
        resolved = self.regexes.get(subscription.regex) if subscription.regex else None
        if resolved is None:
            return frozenset(subscription.topics)
        return frozenset(subscription.topics) | frozenset(resolved.topics)

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that any member subscribes to."""
        if self._topics is None:
            found: set[str] = set()
            for subscription in set(self.subscriptions.values()):
                found |= self.topics_of(subscription)
            self._topics = frozenset(found)
        return self._topics

    def has_regex(self, regex: str) -> bool:
        """Return True if any member subscribes with this regular expression."""
        return any(each.regex == regex for each in self.subscriptions.values())

    def classic_members(self) -> list[str]:
        """Return the ids of the members that use the classic protocol."""
        return [member_id for member_id, each in self.subscriptions.items() if each.is_classic]

    def unresolved(self) -> set[str]:
        """Return the members' regular expressions that have not been matched with topics yet."""
        if not self.regex_members:
            return set()
        found = {each.regex for each in self.subscriptions.values() if each.regex}
        return found - self.regexes.keys()

    # --- changing ----------------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Apply one change to the state."""
        if isinstance(change, SetCurrent):
            self._set_current(change.member_id, change.value)
        elif isinstance(change, SetTarget):
            self.targeted += len(change.value or ()) - len(self.target(change.member_id))
            _put(self.targets, change.member_id, change.value)
        elif isinstance(change, SetSubscription):
            self._set_subscription(change.member_id, change.value)
        elif isinstance(change, SetTargetEpoch):
            self.target_epoch, self.target_time_ms = change.value or (FIRST_EPOCH, NO_TIME)
        elif isinstance(change, SetEpoch):
            self.epoch, self.metadata_hash = change.value or (FIRST_EPOCH, 0)
        else:
            self._set_regex(change.regex, change.value)

    def _set_subscription(self, member_id: str, value: ConsumerSubscription | None) -> None:
        older = self.subscriptions.get(member_id)
        if older is not None:
            self.names_bytes -= _size_of(member_id, older)
            self.regex_members -= bool(older.regex)
            if older.instance_id is not None and self.instances.get(older.instance_id) == member_id:
                del self.instances[older.instance_id]
        if value is not None:
            self.names_bytes += _size_of(member_id, value)
            self.regex_members += bool(value.regex)
            if value.instance_id is not None:
                self.instances[value.instance_id] = member_id
        _put(self.subscriptions, member_id, value)
        if older is None or value is None or (older.topics, older.regex) != (value.topics, value.regex):
            self._topics = None

    def _set_current(self, member_id: str, value: Current | None) -> None:
        older = self.currents.get(member_id)
        if older is not None:
            self._give_back(member_id, older.assigned)
            self._give_back(member_id, older.revoking)
        if value is not None:
            # A compacted log may hide that another member has given a partition up: the later record counts.
            self.owners.update(dict.fromkeys(value.assigned, member_id))
            self.owners.update(dict.fromkeys(value.revoking, member_id))
        _put(self.currents, member_id, value)

    def _give_back(self, member_id: str, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if self.owners.get(partition) == member_id:
                del self.owners[partition]

    def _set_regex(self, regex: str, value: Resolved | None) -> None:
        older = self.regexes.get(regex)
        for resolved, sign in ((older, -1), (value, 1)):
            if resolved is not None:
                self.names_bytes += sign * (len(regex) + sum(map(len, resolved.topics)))
        _put(self.regexes, regex, value)
        self._topics = None


def _put(kept: dict[str, _V], key: str, value: _V | None) -> None:
    if value is None:
        kept.pop(key, None)
    else:
        kept[key] = value


def _size_of(member_id: str, subscription: ConsumerSubscription) -> int:
    texts = [subscription.instance_id, subscription.rack_id, subscription.client_id, subscription.client_host]
    names = [member_id, subscription.regex, *subscription.topics, *(each or "" for each in texts)]
    return sum(60 + len(name) for name in names) + sum(len(data) for _, data in subscription.protocols)


_JOINED = Current()


def removal(state: GroupState) -> list[Change]:
    """Return the changes that remove a group, in the order in which Apache Kafka writes them."""
    changes: list[Change] = [SetCurrent(member_id, None) for member_id in state.currents]
    changes += [SetTarget(member_id, None) for member_id in state.targets]
    changes.append(SetTargetEpoch(None))
    changes += [SetSubscription(member_id, None) for member_id in state.subscriptions]
    changes += [SetRegex(regex, None) for regex in state.regexes]
    changes.append(SetEpoch(None))
    return changes
