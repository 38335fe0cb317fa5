"""The committed offsets of groups: the next offset to read in each partition, with metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

NEVER_EXPIRES = -1

OFFSET_BYTES = 450
"""The approximate memory of a committed offset in bytes, without its metadata."""

PartitionKey = tuple[str, int]
"""A partition as a pair: topic name and partition index."""


class CommittedOffset(NamedTuple):
    """One committed offset. Times are milliseconds of the wall clock.

    `expire_ms` is the expiry time if the client chose a retention time (OffsetCommit v2 to v4), and otherwise
    -1.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NEVER_EXPIRES
    record_offset: int = -1
    """The offset of the commit's record in `__consumer_offsets`. The latest record is the valid commit."""


class OffsetExpiration(NamedTuple):
    """The rule by which a group's committed offsets expire, which depends on the group's type and state."""

    since_ms: int = -1
    """The wall-clock time, in ms, at which all offsets' retention begins; -1 if it begins with each commit.
    """
    subscribed_topics: frozenset[str] = frozenset()
    """The names of the topics whose offsets do not expire."""


def _size(committed: CommittedOffset) -> int:
    return OFFSET_BYTES + len(committed.metadata)


class Offsets:
    """The committed offsets of all groups that a broker has read, in memory."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[PartitionKey, CommittedOffset]] = {}
        self.size_bytes = 0
        """The approximate memory of all committed offsets in bytes."""

    def of_group(self, group_id: str) -> dict[PartitionKey, CommittedOffset]:
        """Return a group's committed offsets by partition. The caller must not change the returned dict."""
        return self._by_group.get(group_id, {})

    def groups(self) -> list[str]:
        """Return the ids of the groups that have committed offsets."""
        return list(self._by_group)

    def put(self, group_id: str, partition: PartitionKey, committed: CommittedOffset) -> None:
        """Add or replace a committed offset, after its record has been stored."""
        self.size_bytes += self.growth(group_id, partition, committed)
        self._by_group.setdefault(group_id, {})[partition] = committed

    def growth(self, group_id: str, partition: PartitionKey, committed: CommittedOffset) -> int:
        """Return the memory, in bytes, that `put` would add: the new offset's less the replaced one's."""
        offsets = self._by_group.get(group_id)
        if offsets is None:
            return _size(committed) + len(group_id)
        present = offsets.get(partition)
        return _size(committed) if present is None else len(committed.metadata) - len(present.metadata)

    def remove(self, group_id: str, partition: PartitionKey) -> None:
        """Remove a partition's committed offset, if it has one, after its tombstone has been stored."""
        offsets = self._by_group.get(group_id)
        if offsets is not None:
            gone = offsets.pop(partition, None)
            if gone is not None:
                self.size_bytes -= _size(gone)
            if not offsets:
                self.size_bytes -= len(group_id)
                del self._by_group[group_id]

    def of_topics(self, topics: Iterable[str]) -> Iterator[tuple[str, list[PartitionKey]]]:
        """Yield (group id, partitions) for each group that has committed offsets in these topics."""
        names = set(topics)
        for group_id, offsets in self._by_group.items():
            partitions = [partition for partition in offsets if partition[0] in names]
            if partitions:
                yield group_id, partitions

    def expired(
        self, group_id: str, expiration: OffsetExpiration, now_ms: int, retention_ms: int
    ) -> list[PartitionKey]:
        """Return the partitions of a group whose committed offsets have expired.

        Times are wall-clock milliseconds. An offset is kept for `retention_ms` after it was committed, or
        after `expiration.since_ms`. An expiry time chosen by the client (OffsetCommit v2 to v4) overrides
        this.
        """
        expired = []
        for partition, committed in self.of_group(group_id).items():
            if partition[0] in expiration.subscribed_topics:
                continue
            if committed.expire_ms != NEVER_EXPIRES:
                is_due = now_ms >= committed.expire_ms
            else:
                since_ms = expiration.since_ms if expiration.since_ms >= 0 else committed.commit_ms
                is_due = now_ms - since_ms >= retention_ms
            if is_due:
                expired.append(partition)
        return expired
