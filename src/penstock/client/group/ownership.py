"""The application's view of a membership: its partitions, and the changes it must be notified of.

This state changes only when the application asks for records, so that no partition is lost in the middle of a
batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.client.group.requests import AssignmentChange, ChangeKind
from penstock.model import TopicPartition
from penstock.protocol.messages.consumer_group_heartbeat_response import Assignment

NOTHING: frozenset[TopicPartition] = frozenset()


class Ownership:
    """The partitions of one member, after the last change that its application was notified of."""

    def __init__(self) -> None:
        self.owned = NOTHING
        """The partitions that the application has, after the last change that it was notified of."""
        self.granted: frozenset[TopicPartition] | None = None
        """An assignment of which the application has not been notified yet, or None."""
        self.is_lost = False
        """True if `owned` was lost, and the application has not been notified of that yet."""
        self._since: dict[TopicPartition, int] = {}
        """The generation in which each partition in `owned` was assigned."""
        self._has_revoked = False
        """True if partitions were revoked before `granted`, so that another rebalance is due."""

    def grant(self, partitions: Iterable[TopicPartition]) -> None:
        """Store a new assignment, of which the application has to be notified next."""
        self.granted = frozenset(partitions)

    def withdraw_grant(self) -> None:
        """Drop an assignment of which the application has not been notified."""
        self.granted = None
        self._has_revoked = False

    def lose(self) -> None:
        """Mark the partitions as lost, since other members may have them: they cannot be revoked any more."""
        self.withdraw_grant()
        self.is_lost = bool(self.owned)

    def next_change(self, to_revoke: frozenset[TopicPartition]) -> AssignmentChange | None:
        """Return the next change to notify the application of, or None.

        `to_revoke` are partitions to be revoked before an assignment that was granted.
        """
        if self.is_lost:
            return AssignmentChange(ChangeKind.LOST, tuple(sorted(self.owned)))
        if to_revoke:
            return AssignmentChange(ChangeKind.REVOKED, tuple(sorted(to_revoke)))
        if self.granted is not None:
            return AssignmentChange(ChangeKind.ASSIGNED, tuple(sorted(self.granted - self.owned)))
        return None

    def confirm(self, change: AssignmentChange, generation: int) -> bool:
        """Apply `change` after the application has been notified; return True if the member must join again.

        The member must join again if it revoked partitions before this assignment: the group can then assign
        the revoked partitions to other members.
        """
        if change.kind is ChangeKind.LOST:
            self.is_lost = False
            self.owned = NOTHING
            self._since = {}
        elif change.kind is ChangeKind.REVOKED:
            self._has_revoked |= self.granted is not None
            self.owned -= frozenset(change.partitions)
            self._since = {tp: since for tp, since in self._since.items() if tp in self.owned}
            self.is_lost = self.is_lost and bool(self.owned)
        elif self.granted is not None and not self.is_lost:
            self._since = {tp: self._since.get(tp, generation) for tp in self.granted}
            self.owned = self.granted
            self.granted = None
            has_revoked, self._has_revoked = self._has_revoked, False
            return has_revoked
        return False

    def kept_since(self, generation: int) -> frozenset[TopicPartition]:
        """Return the partitions that the application has had continuously since the given generation."""
        return frozenset(tp for tp in self.owned if self._since.get(tp, generation + 1) <= generation)


class AssignmentTarget:
    """A member's assignment by topic id, and the topic ids of its application's partitions (KIP-848).

    The application identifies its partitions by topic name. If a topic was deleted and created anew, with
    another id, the member gets the new topic's partitions only after the old ones have been revoked.
    """

    def __init__(self) -> None:
        self.is_known = False
        """True if the coordinator has sent an assignment since the member joined."""
        self._assigned: dict[bytes, frozenset[int]] = {}
        self._names: dict[bytes, str] = {}
        self._owned_ids: dict[str, bytes] = {}
        """A dict from topic name to topic id, for the application's partitions."""

    def set(self, assignment: Assignment | None) -> None:
        """Replace the assignment. None means an empty one."""
        topics = assignment.topic_partitions if assignment is not None else []
        self._assigned = {bytes(each.topic_id): frozenset(each.partitions) for each in topics}
        self._names = {
            topic_id: name
            for topic_id, name in self._names.items()
            if topic_id in self._assigned or self._owned_ids.get(name) == topic_id
        }
        self.is_known = True

    def clear(self) -> None:
        """Drop the assignment, because the member has lost its membership."""
        self._assigned = {}
        self.is_known = False

    def learn(self, names: Mapping[bytes, str]) -> None:
        """Add names of assigned topics, as a dict from topic id to name."""
        self._names.update({topic_id: name for topic_id, name in names.items() if topic_id in self._assigned})

    @property
    def nameless(self) -> tuple[bytes, ...]:
        """The ids of assigned topics whose names are not known yet."""
        return tuple(sorted(topic_id for topic_id in self._assigned if topic_id not in self._names))

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The assigned partitions that the application can have now.

        Their topics' names are known, and the application has no partition of a deleted topic of the same
        name.
        """
        return frozenset(
            TopicPartition(name, number)
            for topic_id, name in self._names.items()
            if self._owned_ids.get(name, topic_id) == topic_id
            for number in self._assigned.get(topic_id, ())
        )

    def note_owned(self, owned: Iterable[TopicPartition]) -> None:
        """Store the topic ids of the partitions that the application has now."""
        topics = {tp.topic for tp in owned}
        ids = {
            name: topic_id
            for topic_id, name in self._names.items()
            if name in topics and topic_id in self._assigned
        }
        self._owned_ids = {name: self._owned_ids.get(name) or ids[name] for name in topics}

    def owned_by_id(self, owned: Iterable[TopicPartition]) -> list[tuple[bytes, int]]:
        """Return the application's partitions, each as a pair of topic id and partition number."""
        return [(self._owned_ids[tp.topic], tp.partition) for tp in owned]
