"""`__consumer_offsets`: where groups and offsets are stored, and how they are found again.

The topic is made when the first group needs it. A group lives in the partition that the hash of its id
says, as at Apache Kafka; that partition is read from its beginning before the group is first touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.broker.groups.records import KeyAndValue, StoredGroup, StoredOffset, read_record
from penstock.broker.metadata.cluster import OFFSETS_TOPIC
from penstock.common.java_hash import string_hash
from penstock.errors import DecodeError
from penstock.log.salvage import sound_batches
from penstock.log.segmented import SegmentedLog
from penstock.log.walk import walk_buffer
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.batch import decode_batch, encode_batch, read_header, read_marker

if TYPE_CHECKING:
    from penstock.broker.metadata.cluster import Cluster
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition

NAME = OFFSETS_TOPIC

_COMMIT_MARKER = 1

Stored = StoredGroup | StoredOffset


class OffsetsTopic:
    """The topic. `wrote` is told of every batch that was appended to a partition, with its size."""

    def __init__(self, cluster: Cluster, store: LogStore, wrote: Callable[[Partition, int], None]) -> None:
        self._cluster = cluster
        self._store = store
        self._wrote = wrote

    @property
    def exists(self) -> bool:
        return NAME in self._cluster.topics

    def partition_of(self, group_id: str) -> int:
        """The number of the partition that a group lives in."""
        topic = self._cluster.topics.get(NAME)
        count = len(topic.partitions) if topic is not None else 0
        count = count or self._cluster.config.integer("offsets.topic.num.partitions")
        number = string_hash(group_id)
        return 0 if number == -(1 << 31) else abs(number) % count

    def used_partitions(self) -> list[int]:
        """The partitions that may hold something."""
        topic = self._cluster.topics.get(NAME)
        count = len(topic.partitions) if topic is not None else 0
        return [index for index in range(count) if self.is_begun(index)]

    def is_begun(self, index: int) -> bool:
        """Whether anything has ever been written to a partition of the topic, which exists."""
        return self._store.has_log(NAME, index, self._cluster.topics[NAME].id)

    def create(self, now_ms: int) -> int:
        """Make the topic, which there is not; return how many partitions it has.

        Raises:
            StorageError: the metadata log cannot be written.
        """
        config = self._cluster.config
        plan = self._cluster.plan_topic(
            NAME,
            config.integer("offsets.topic.num.partitions"),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.integer("offsets.topic.segment.bytes")),
            },
        )
        self._cluster.create_topics([plan], now_ms)
        return plan.partitions

    def append(self, group_id: str, records: Sequence[KeyAndValue], now_ms: int) -> None:
        """Store records of one group in the topic, which exists: all or none of them.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), they exceed what a batch of the topic may have.
            StorageError: they could not be written.
        """
        partition = self._cluster.topics[NAME].partitions[self.partition_of(group_id)]
        log = partition.log
        first_offset = log.end_offset
        batch = encode_batch(
            [(key, value, (), now_ms) for key, value in records],
            base_offset=first_offset,
            partition_leader_epoch=partition.leader_epoch,
        )
        limit = min(partition.config.max_message_bytes, partition.config.segment_bytes)
        if len(batch) > limit:
            raise error_for(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{len(records)} records of group {group_id} have {len(batch)} bytes, the limit is {limit}",
            )
        log.append(
            batch,
            first_offset=first_offset,
            last_offset=first_offset + len(records) - 1,
            max_timestamp=now_ms,
            now_ms=now_ms,
        )
        self._wrote(partition, len(batch))

    def replay(self, index: int, losses: Losses) -> Iterator[Stored]:
        """Everything that is stored in one partition, in order, tombstones too.

        Offsets that a transaction has committed come when its marker comes. What is damaged, or of a version
        that only newer brokers know, is passed over and noted in `losses`.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        log = self._cluster.topics[NAME].partitions[index].log
        assert isinstance(log, SegmentedLog)
        open_transactions: dict[int, list[Stored]] = {}
        for segment in list(log.segments):
            for batch, magic in sound_batches(segment, partial(losses.damaged, segment.base_offset)):
                if magic < 2:
                    yield from _stored(batch, index, losses)
                    continue
                header = read_header(batch)
                if header.last_offset < log.start_offset:
                    continue
                if header.is_control:
                    finished = open_transactions.pop(header.producer_id, [])
                    if _marker_of(batch, losses) == _COMMIT_MARKER:
                        yield from finished
                elif header.is_transactional:
                    kept = open_transactions.setdefault(header.producer_id, [])
                    kept.extend(_stored(batch, index, losses))
                else:
                    yield from _stored(batch, index, losses)


class Losses:
    """What could not be read in one partition, for one line in the broker's log."""

    def __init__(self) -> None:
        self.count = 0
        self._told: list[str] = []

    def add(self, what: str) -> None:
        """Note something that is lost, in words."""
        self.count += 1
        if len(self._told) < _LOSSES_TOLD:
            self._told.append(what)

    def damaged(self, segment: int, position: int, size: int) -> None:
        """Note bytes of a segment in which there is no sound batch."""
        self.add(f"{size} bytes at position {position} of segment {segment} are no sound batch")

    def __str__(self) -> str:
        more = self.count - len(self._told)
        return "; ".join(self._told) + (f"; and {more} more" if more else "")


def _stored(batch: memoryview, index: int, losses: Losses) -> Iterator[Stored]:
    """What the records of a sound batch say."""
    try:
        rows = decode_batch(batch, 0, len(batch), NAME, index, verify=False)
    except Exception as error:
        # A barrier: nothing has been taken from the batch yet. Bytes under a right checksum may be anything.
        losses.add(f"the batch at {_offsets_of(batch)}: {_said(error)}")
        return
    for row in rows:
        try:
            stored = read_record(row.key, row.value)
        except Exception as error:
            # The same for one record.
            losses.add(f"the record at offset {row.offset}: {_said(error)}")
            continue
        if stored is not None:
            yield stored


def _marker_of(batch: memoryview, losses: Losses) -> int:
    try:
        return read_marker(batch, 0, len(batch))[0]
    except Exception as error:
        # A barrier, as in `_stored`. The transaction counts as not committed.
        losses.add(f"the marker at {_offsets_of(batch)}: {_said(error)}")
        return -1


def _offsets_of(batch: memoryview) -> str:
    entry = next(walk_buffer(batch))
    return f"offsets {entry.base_offset} to {entry.last_offset}"


def _said(error: Exception) -> str:
    """An error in words: those of ours are sentences, others have a name."""
    return str(error) if isinstance(error, DecodeError) else f"{type(error).__name__}: {error}"


_LOSSES_TOLD = 5
"""Losses of one partition that are told one by one; the others are counted."""
