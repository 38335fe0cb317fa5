"""The assignment of a member by topic ids, as the coordinator has it, and the names of these topics.

The application has partitions by name. A topic that was deleted and created anew has another id: its
partitions are others, and come only when the former ones have been revoked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.model import TopicPartition
from penstock.protocol.messages.consumer_group_heartbeat_response import Assignment


class Target:
    """What one member has been assigned, and what its application has, by topic id."""

    def __init__(self) -> None:
        self.is_known = False
        """Whether the coordinator has said what is assigned, since the member joined."""
        self._assigned: dict[bytes, frozenset[int]] = {}
        self._names: dict[bytes, str] = {}
        self._owned_ids: dict[str, bytes] = {}
        """The ids of the topics that the application has partitions of, by name."""

    def set(self, assignment: Assignment | None) -> None:
        """Take an assignment; None is an empty one."""
        topics = assignment.topic_partitions if assignment is not None else []
        self._assigned = {bytes(each.topic_id): frozenset(each.partitions) for each in topics}
        self._names = {
            topic_id: name
            for topic_id, name in self._names.items()
            if topic_id in self._assigned or self._owned_ids.get(name) == topic_id
        }
        self.is_known = True

    def clear(self) -> None:
        """Forget the assignment: the member is none any more."""
        self._assigned = {}
        self.is_known = False

    def learn(self, names: Mapping[bytes, str]) -> None:
        """Take the names of topics, by their ids."""
        self._names.update({topic_id: name for topic_id, name in names.items() if topic_id in self._assigned})

    @property
    def nameless(self) -> tuple[bytes, ...]:
        """The ids of assigned topics whose names are not known."""
        return tuple(sorted(topic_id for topic_id in self._assigned if topic_id not in self._names))

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The assigned partitions that the application can have now: their topics have names, and no
        partition of a former topic of the same name is still there."""
        return frozenset(
            TopicPartition(name, number)
            for topic_id, name in self._names.items()
            if self._owned_ids.get(name, topic_id) == topic_id
            for number in self._assigned.get(topic_id, ())
        )

    def note_owned(self, owned: Iterable[TopicPartition]) -> None:
        """Note which partitions the application has now."""
        topics = {tp.topic for tp in owned}
        ids = {
            name: topic_id
            for topic_id, name in self._names.items()
            if name in topics and topic_id in self._assigned
        }
        self._owned_ids = {name: self._owned_ids.get(name) or ids[name] for name in topics}

    def owned_by_id(self, owned: Iterable[TopicPartition]) -> list[tuple[bytes, int]]:
        """Return partitions that the application has by topic id."""
        return [(self._owned_ids[tp.topic], tp.partition) for tp in owned]
