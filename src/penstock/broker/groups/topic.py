"""The topic `__consumer_offsets`, in which offsets and groups are stored: its settings, and how it is read.

The module does not depend on the group protocols: each protocol has a `records.GroupRecords`, which parses
its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.broker.coordination.state_topic import StateTopicLayout
from penstock.broker.groups.records import GroupRecords, StoredOffset, StoredRecord, read_record
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC

if TYPE_CHECKING:
    from penstock.broker.coordination.losses import Losses
    from penstock.broker.coordination.state_topic import StateTopic, StoredBatch

LAYOUT = StateTopicLayout(
    OFFSETS_TOPIC, "offsets.topic.", {"cleanup.policy": "compact", "compression.type": "producer"}
)

Stored = StoredOffset | StoredRecord


def replay(
    topic: StateTopic,
    index: int,
    losses: Losses,
    kinds: Sequence[GroupRecords],
    pending: dict[int, list[Stored]],
) -> Iterator[Stored]:
    """Yield every record of groups and offsets in one partition, parsed and in order, including tombstones.

    Offsets of a transaction are yielded when its commit marker is read; those of open transactions are put
    into `pending`, by producer id. Damaged records, and those of newer versions, are skipped and recorded in
    `losses`.

    Raises:
        StorageError: the log cannot be opened or read.
    """
    for batch in topic.batches(index, losses):
        if batch.header is None or not (batch.is_control or batch.is_transactional):
            for stored in _stored(batch, kinds):
                if isinstance(stored, StoredOffset) and stored.committed is None:
                    _drop(pending, stored)
                yield stored
        elif batch.is_control:
            finished = pending.pop(batch.header.producer_id, [])
            if batch.commits:
                yield from finished
        else:
            pending.setdefault(batch.header.producer_id, []).extend(_stored(batch, kinds))


def _stored(batch: StoredBatch, kinds: Sequence[GroupRecords]) -> Iterator[Stored]:
    """Yield the parsed records of groups and offsets in a batch."""

    def read(key: bytes | None, value: bytes | None) -> Stored | None:
        return read_record(key, value, kinds)

    found: Iterator[tuple[Stored, int]] = batch.read(read)
    for stored, offset in found:
        if isinstance(stored, StoredOffset) and stored.committed is not None:
            stored = stored._replace(committed=stored.committed._replace(record_offset=offset))
        yield stored


def _drop(pending: dict[int, list[Stored]], removed: StoredOffset) -> None:
    """Remove the pending offsets of a group and partition, because a tombstone for them was read."""
    for producer_id, kept in pending.items():
        pending[producer_id] = [
            each
            for each in kept
            if not isinstance(each, StoredOffset)
            or (each.group_id, each.partition) != (removed.group_id, removed.partition)
        ]
