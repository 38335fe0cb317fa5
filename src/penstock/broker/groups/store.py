"""The store of groups: committed offsets in memory, and offsets and groups in `__consumer_offsets`.

The store is independent of the group protocols. A protocol supplies a `GroupKind`, which parses its records,
and passes records to be stored as bytes. A partition is read from its beginning before the first group in it
is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.coordination.loaded import LoadedPartitions
from penstock.broker.coordination.records import KeyAndValue
from penstock.broker.coordination.state_topic import Logs, StateTopic, StateTopics
from penstock.broker.coordination.storing import store_records
from penstock.broker.groups.offsets import CommittedOffset, Offsets, PartitionKey
from penstock.broker.groups.pending_offsets import PendingOffsets
from penstock.broker.groups.records import GroupRecords, StoredOffset, offset_record
from penstock.broker.groups.topic import LAYOUT, Stored, replay
from penstock.errors import KafkaError

if TYPE_CHECKING:
    from penstock.broker.coordination.losses import Losses
    from penstock.clock import Clock
    from penstock.common.failures import Failures


class GroupKind(GroupRecords, Protocol):
    """The interface with which the store parses the records of one group protocol and restores groups."""

    def restore(self, stored: Mapping[str, Any], with_offsets: Collection[str]) -> None:
        """Add the groups whose records were read from one partition.

        `stored` has the value of the last record for each key of this type, or None for a tombstone;
        `with_offsets` has the ids of groups that have committed offsets.
        """


class Restorable(Protocol):
    """A coordinator that can restore stored groups."""

    def restore(self, stored: Mapping[Any, Any], now: float) -> None:
        """Add the groups whose records are in one partition of `__consumer_offsets`."""


class KindHost(Protocol):
    """The parts of the broker that the restoring of groups needs."""

    @property
    def clock(self) -> Clock: ...
    @property
    def failures(self) -> Failures: ...


class CoordinatorKind:
    """A `GroupKind` that restores the groups of one coordinator; log messages call these groups `title`."""

    def __init__(self, records: GroupRecords, coordinator: Restorable, host: KindHost, title: str) -> None:
        self.key_types = records.key_types
        self.read = records.read
        self._coordinator = coordinator
        self._host = host
        self._title = title

    def restore(self, stored: Mapping[str, Any], with_offsets: Collection[str]) -> None:
        """Add the groups whose records were read from one partition."""
        try:
            self._coordinator.restore(stored, self._host.clock.monotonic())
        except Exception:
            # A barrier: what stored groups say comes from a disk. Their members join again.
            self._host.failures.caught("groups", f"restoring {self._title}")


class GroupStore:
    """Offsets and groups of one broker. `kinds` are the types of groups whose records are read.

    `wrote` is called after every append, with the partition and the batch's size in bytes.
    """

    def __init__(
        self,
        cluster: StateTopics,
        logs: Logs,
        kinds: Sequence[GroupKind],
        wrote: Callable[[Any, int], object],
    ) -> None:
        self.offsets = Offsets()
        self.pending = PendingOffsets()
        self.topic = StateTopic(LAYOUT, cluster, logs, wrote)
        self._kinds = kinds
        self.loaded = LoadedPartitions(
            self.topic, self._read, "groups", ", so that older commits and members may count again"
        )

    # --- reading -----------------------------------------------------------------------------------------

    def load(self, group_id: str) -> None:
        """Read the partition that has a group's records, unless it has been read.

        Raises:
            KafkaError: NOT_COORDINATOR (16), the log cannot be read.
        """
        if self.topic.exists:
            self.loaded.open(self.topic.partition_of(group_id))

    def load_all(self) -> None:
        """Read every partition that has not been read. An unreadable partition is logged and left out."""
        for index in range(len(self.topic.partitions)):
            if self.topic.is_begun(index):
                with suppress(KafkaError):
                    self.loaded.open(index)

    def unload(self, index: int) -> None:
        """Drop a partition's committed offsets from memory, so that it is read again when needed."""
        self.loaded.drop(index)
        for group_id in [each for each in self.offsets.groups() if self.holds(index, each)]:
            for known in list(self.offsets.of_group(group_id)):
                self.offsets.remove(group_id, known)
        self.pending.forget(index)

    def holds(self, index: int, group_id: str) -> bool:
        """Return True if a group's records belong in the partition `index`."""
        return self.topic.partition_of(group_id) == index

    def _read(self, index: int, losses: Losses) -> None:
        """Replay a partition; restore its offsets and groups from the last record of each key."""
        groups: dict[GroupRecords, dict[Any, Any]] = {kind: {} for kind in self._kinds}
        offsets: dict[tuple[str, PartitionKey], CommittedOffset | None] = {}
        pending: dict[int, list[Stored]] = {}
        for stored in replay(self.topic, index, losses, self._kinds, pending):
            if isinstance(stored, StoredOffset):
                key = stored.group_id, stored.partition
                if not _is_older(stored.committed, offsets.get(key)):
                    offsets[key] = stored.committed
            else:
                groups[stored.kind][stored.key] = stored.value
        with_offsets: dict[str, None] = {}
        for (group_id, partition), committed in offsets.items():
            if committed is not None:
                self.offsets.put(group_id, partition, committed)
                with_offsets[group_id] = None
        for producer_id, written in pending.items():
            for stored in written:
                if isinstance(stored, StoredOffset) and stored.committed is not None:
                    self.pending.put(index, producer_id, stored.group_id, stored.partition, stored.committed)
                    with_offsets[stored.group_id] = None
        for kind in self._kinds:
            kind.restore(groups[kind], with_offsets.keys())

    # --- writing -----------------------------------------------------------------------------------------

    def _begin(self, group_id: str, now_ms: int) -> int:
        """Return the index of a group's `__consumer_offsets` partition; create and read it if needed.

        Raises:
            KafkaError: NOT_COORDINATOR (16), another node leads the partition.
            StorageError: the topic cannot be created.
        """
        self.topic.create(now_ms)
        index = self.topic.partition_of(group_id)
        self.loaded.open(index)
        return index

    def append(self, group_id: str, records: Sequence[KeyAndValue], now_ms: int) -> int:
        """Store records of one group atomically; return the offset of the first record.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10).
            StorageError: the records could not be written.
        """
        index = self._begin(group_id, now_ms)
        return self.topic.append(index, records, now_ms, f"group {group_id}")

    def store(self, group_id: str, records: Sequence[KeyAndValue], now_ms: int) -> None:
        """Store the records of one request or timer of a group atomically, if there are any.

        Raises:
            KafkaError: NOT_COORDINATOR (16) or UNKNOWN_SERVER_ERROR (-1), the records could not be stored.
        """
        if records:
            store_records(lambda: self.append(group_id, records, now_ms), f"group {group_id}")

    def commit(
        self, group_id: str, commits: Sequence[tuple[PartitionKey, CommittedOffset]], now_ms: int
    ) -> None:
        """Write offset commits to `__consumer_offsets`, then update the committed offsets in memory.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10).
            StorageError: the offsets could not be written; nothing has changed.
        """
        if commits:
            records = [offset_record(group_id, partition, committed) for partition, committed in commits]
            first = self.append(group_id, records, now_ms)
            for number, (partition, committed) in enumerate(commits):
                self.offsets.put(group_id, partition, committed._replace(record_offset=first + number))

    def commit_in_transaction(
        self,
        group_id: str,
        producer: tuple[int, int],
        commits: Sequence[tuple[PartitionKey, CommittedOffset]],
        now_ms: int,
        verification: Any,
    ) -> None:
        """Store offsets that take effect when the transaction of `producer` (id and epoch) is committed.

        `verification` is the result of `transactional_appends.join` for this append.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), or the transaction has ended meanwhile.
            StorageError: the offsets could not be written; nothing has changed.
        """
        records = [offset_record(group_id, partition, committed) for partition, committed in commits]
        index = self._begin(group_id, now_ms)
        first = self.topic.append_in_transaction(
            index, records, producer, now_ms, verification, f"group {group_id}"
        )
        for number, (partition, committed) in enumerate(commits):
            placed = committed._replace(record_offset=first + number)
            self.pending.put(index, producer[0], group_id, partition, placed)

    def end_transaction(self, index: int, producer_id: int, is_commit: bool) -> None:
        """Apply or drop the pending offsets of a producer whose transaction was committed or aborted.

        `index` is the partition of `__consumer_offsets` to which the transaction marker was written. A
        committed offset whose record is later in the log than that of the pending offset is kept.
        """
        if index not in self.loaded:
            return  # the marker is read with everything else
        for (group_id, partition), committed in self.pending.end(index, producer_id):
            if is_commit and not _is_older(committed, self.offsets.of_group(group_id).get(partition)):
                self.offsets.put(group_id, partition, committed)

    def remove(self, group_id: str, partitions: Iterable[PartitionKey], now_ms: int) -> None:
        """Remove the committed and pending offsets of the given partitions, if there are any.

        Raises:
            StorageError: the tombstones could not be written; nothing has changed.
        """
        known = self.offsets.of_group(group_id)
        removed = [each for each in partitions if each in known or self.pending.is_pending(group_id, each)]
        self._remove(group_id, removed, [], now_ms)
        self.pending.discard(group_id, removed)

    def delete_group(self, group_id: str, tombstones: Sequence[KeyAndValue], now_ms: int) -> None:
        """Remove all offsets of a group, and write the tombstones of its own records.

        Raises:
            StorageError: the tombstones could not be written; nothing has changed.
        """
        known = {**self.offsets.of_group(group_id), **dict.fromkeys(self.pending.of_group(group_id))}
        self._remove(group_id, list(known), tombstones, now_ms)
        self.pending.discard(group_id, known)

    def _remove(
        self, group_id: str, partitions: list[PartitionKey], more: Sequence[KeyAndValue], now_ms: int
    ) -> None:
        records = [*(offset_record(group_id, partition, None) for partition in partitions), *more]
        for start in range(0, len(records), _TOMBSTONES_AT_ONCE):
            self.append(group_id, records[start : start + _TOMBSTONES_AT_ONCE], now_ms)
        for partition in partitions:
            self.offsets.remove(group_id, partition)

    def forget_topics(self, topics: Sequence[str], now_ms: int) -> None:
        """Remove the offsets of deleted topics.

        Raises:
            KafkaError, StorageError: the stored offsets cannot be removed.
        """
        if self.topic.exists:
            self.load_all()
            for group_id, partitions in [*self.offsets.of_topics(topics), *self.pending.of_topics(topics)]:
                self.remove(group_id, partitions, now_ms)

    def forget_everything(self) -> None:
        """Drop all offsets, because `__consumer_offsets` itself has been deleted."""
        self.offsets = Offsets()
        self.pending = PendingOffsets()
        self.loaded.clear()


def _is_older(committed: CommittedOffset | None, present: CommittedOffset | None) -> bool:
    """Return True if the record of `committed` is before that of `present` in the log."""
    return committed is not None and present is not None and committed.record_offset < present.record_offset


_TOMBSTONES_AT_ONCE = 1000
