"""What groups have committed: the next offset to read of each partition, with whatever they noted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.groups.states import State

if TYPE_CHECKING:
    from penstock.broker.groups.group import Group

NEVER_EXPIRES = -1

OFFSET_BYTES = 450
"""About what a committed offset takes in memory beside its metadata."""

Place = tuple[str, int]
"""A topic's name and a partition's number."""


class Committed(NamedTuple):
    """One committed offset. Times are wall-clock milliseconds.

    `expire_ms` is for clients that say how long to keep it (OffsetCommit v2 to v4), -1 for the rest.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NEVER_EXPIRES


def _size(committed: Committed) -> int:
    return OFFSET_BYTES + len(committed.metadata)


class Offsets:
    """The committed offsets of all groups."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[Place, Committed]] = {}
        self.size_bytes = 0
        """About what all of them take in memory."""

    def of_group(self, group_id: str) -> dict[Place, Committed]:
        """What a group has committed. To be looked at, not changed."""
        return self._by_group.get(group_id, {})

    def put(self, group_id: str, place: Place, committed: Committed) -> None:
        """Note an offset that has been stored."""
        self.size_bytes += self.growth(group_id, place, committed)
        self._by_group.setdefault(group_id, {})[place] = committed

    def growth(self, group_id: str, place: Place, committed: Committed) -> int:
        """How many bytes of memory noting an offset would take more than what it replaces."""
        offsets = self._by_group.get(group_id)
        if offsets is None:
            return _size(committed) + len(group_id)
        present = offsets.get(place)
        return _size(committed) if present is None else len(committed.metadata) - len(present.metadata)

    def remove(self, group_id: str, place: Place) -> None:
        """Forget an offset whose tombstone has been stored. Harmless if there is none."""
        offsets = self._by_group.get(group_id)
        if offsets is not None:
            gone = offsets.pop(place, None)
            if gone is not None:
                self.size_bytes -= _size(gone)
            if not offsets:
                self.size_bytes -= len(group_id)
                del self._by_group[group_id]

    def of_topics(self, topics: Iterable[str]) -> Iterator[tuple[str, list[Place]]]:
        """For each group, the partitions of these topics that it has committed offsets of."""
        names = set(topics)
        for group_id, offsets in self._by_group.items():
            places = [place for place in offsets if place[0] in names]
            if places:
                yield group_id, places

    def expired(self, group: Group, now_ms: int, retention_ms: int) -> list[Place]:
        """The offsets of a group that need not be kept any longer.

        In an empty group all of them, `retention_ms` after it became empty; of a group that never had
        members each, that long after it was committed; of consumers at work those of topics that
        nobody of them wants any more. An expiry that the client has asked for takes the place of these.
        """
        offsets = self.of_group(group.id)
        kept: set[str] = set()
        since_ms = -1
        if group.protocol_type is not None:
            if group.state is State.EMPTY:
                since_ms = group.since_ms
            elif group.state is State.STABLE:
                topics = group.subscribed_topics()
                if topics is None:
                    return []
                kept = topics
            else:
                return []
        places = []
        for place, committed in offsets.items():
            if place[0] in kept:
                continue
            if committed.expire_ms != NEVER_EXPIRES:
                due = now_ms >= committed.expire_ms
            else:
                due = now_ms - (since_ms if since_ms >= 0 else committed.commit_ms) >= retention_ms
            if due:
                places.append(place)
        return places
