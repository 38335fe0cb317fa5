"""Offsets that open transactions have written, which take effect when the transaction is committed.

Several producers may have pending offsets for one partition; of several committed ones, the one whose record
has the highest offset in `__consumer_offsets` is valid.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.broker.groups.offsets import OFFSET_BYTES, CommittedOffset, PartitionKey

Key = tuple[str, PartitionKey]
"""A group id, and a partition (topic and index) for which the group has a pending offset."""


class PendingOffsets:
    """The pending offsets of all groups: those written in transactions that are still open."""

    def __init__(self) -> None:
        self._by_producer: dict[tuple[int, int], dict[Key, CommittedOffset]] = {}
        """The pending offsets by (index of the partition of `__consumer_offsets`, producer id).

        The index is part of the key because a transaction marker ends only the offsets in its own partition.
        """
        self._counts: dict[Key, int] = {}
        self.size_bytes = 0
        """The approximate memory of all pending offsets in bytes."""

    def put(
        self, index: int, producer_id: int, group_id: str, partition: PartitionKey, offset: CommittedOffset
    ) -> None:
        """Add a pending offset, whose record is in partition `index` of `__consumer_offsets`."""
        offsets = self._by_producer.setdefault((index, producer_id), {})
        key = group_id, partition
        present = offsets.get(key)
        if present is None:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:
            self.size_bytes -= OFFSET_BYTES + len(present.metadata)
        self.size_bytes += OFFSET_BYTES + len(offset.metadata)
        offsets[key] = offset

    def end(self, index: int, producer_id: int) -> list[tuple[Key, CommittedOffset]]:
        """Remove and return the pending offsets of a producer in one partition of `__consumer_offsets`."""
        ended = list(self._by_producer.pop((index, producer_id), {}).items())
        for key, offset in ended:
            self._uncount(key, offset)
        return ended

    def is_pending(self, group_id: str, partition: PartitionKey) -> bool:
        """Return True if any producer has a pending offset for a partition."""
        return (group_id, partition) in self._counts

    def of_group(self, group_id: str) -> set[PartitionKey]:
        """Return the partitions for which a group has pending offsets."""
        return {partition for group, partition in self._counts if group == group_id}

    def of_topics(self, topics: Iterable[str]) -> list[tuple[str, list[PartitionKey]]]:
        """Return (group id, partitions) for each group that has pending offsets in these topics."""
        names = set(topics)
        found: dict[str, list[PartitionKey]] = {}
        for group_id, partition in self._counts:
            if partition[0] in names:
                found.setdefault(group_id, []).append(partition)
        return list(found.items())

    def discard(self, group_id: str, partitions: Iterable[PartitionKey]) -> None:
        """Remove a group's pending offsets for partitions whose committed offsets are being removed."""
        for partition in partitions:
            key = group_id, partition
            if key in self._counts:
                for offsets in self._by_producer.values():
                    gone = offsets.pop(key, None)
                    if gone is not None:
                        self._uncount(key, gone)

    def forget(self, index: int) -> None:
        """Drop the pending offsets in a partition of `__consumer_offsets` that another node now leads."""
        for key in [each for each in self._by_producer if each[0] == index]:
            self.end(*key)

    def _uncount(self, key: Key, offset: CommittedOffset) -> None:
        self.size_bytes -= OFFSET_BYTES + len(offset.metadata)
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
