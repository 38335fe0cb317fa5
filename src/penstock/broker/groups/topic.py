"""The topic `__consumer_offsets`, which offsets and groups are stored in.

The topic is created when the first group needs it. A group lives in the partition that the hash of its id
says, as at Apache Kafka. Independent of the group protocol: `records.GroupRecords` read their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from penstock.broker.groups.records import (
    GroupRecords,
    KeyAndValue,
    StoredOffset,
    StoredRecord,
    read_record,
)
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.broker.partitions.own_records import OwnPartition, append_own, check_own_size
from penstock.broker.partitions.producers.transactional_appends import append_offsets
from penstock.common.java_hash import partition_of
from penstock.errors import DecodeError
from penstock.log.segments.salvage import sound_batches
from penstock.log.walk import walk_buffer
from penstock.records.batch import decode_batch, encode_batch, read_marker
from penstock.records.format.batch_header import read_header

NAME = OFFSETS_TOPIC

_COMMIT_MARKER = 1

Stored = StoredOffset | StoredRecord


class _Partition(OwnPartition, Protocol):
    @property
    def leads(self) -> bool: ...
    def check_leads(self) -> None: ...


class _Topic(Protocol):
    @property
    def id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[_Partition]: ...


class Settings(Protocol):
    """The settings of the broker."""

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting."""


class Topics(Protocol):
    """What the topic needs of the broker's metadata."""

    @property
    def topics(self) -> Mapping[str, _Topic]: ...
    @property
    def config(self) -> Settings: ...
    def catch_up(self) -> None:
        """Take in all metadata that have been written."""

    def plan_topic(self, name: str, partitions: int, *, configs: Mapping[str, str | None]) -> Any: ...
    def create_topics(self, topics: Sequence[Any], now_ms: int) -> object: ...


class Logs(Protocol):
    """What the topic needs of the broker's store of logs."""

    def has_log(self, topic: str, partition: int, topic_id: bytes) -> bool:
        """Return whether a partition has ever been written to."""


class OffsetsTopic:
    """The topic.

    `wrote` is called after every append, with the partition and the batch's bytes. `kinds` are the kinds of
    groups whose records are read.
    """

    def __init__(
        self,
        cluster: Topics,
        logs: Logs,
        wrote: Callable[[Any, int], object],
        kinds: Sequence[GroupRecords] = (),
    ) -> None:
        self._cluster = cluster
        self._logs = logs
        self._wrote = wrote
        self._kinds = kinds

    @property
    def exists(self) -> bool:
        return NAME in self._cluster.topics

    def partition_of(self, group_id: str) -> int:
        """Return the number of the partition that a group is stored in."""
        topic = self._cluster.topics.get(NAME)
        count = len(topic.partitions) if topic is not None else 0
        count = count or self._cluster.config.integer("offsets.topic.num.partitions")
        return partition_of(group_id, count)

    def used_partitions(self) -> list[int]:
        """Return the numbers of the partitions that may hold something."""
        topic = self._cluster.topics.get(NAME)
        count = len(topic.partitions) if topic is not None else 0
        return [index for index in range(count) if self.is_begun(index)]

    def is_begun(self, index: int) -> bool:
        """Return whether a partition of the topic, which must exist, has ever been written to."""
        return self._logs.has_log(NAME, index, self._cluster.topics[NAME].id)

    def check_leads(self, index: int) -> None:
        """Check that this node leads a partition of the topic, which must exist.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6).
        """
        self._cluster.topics[NAME].partitions[index].check_leads()

    def create(self, now_ms: int) -> list[int]:
        """Create the topic, which this node does not know; return the new partitions that this node leads.

        Raises:
            StorageError: the metadata log cannot be written.
        """
        self._cluster.catch_up()
        if self.exists:
            return []  # another node has made it
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
        partitions = self._cluster.topics[NAME].partitions
        return [index for index, each in enumerate(partitions) if each.leads]

    def append(self, group_id: str, records: Sequence[KeyAndValue], now_ms: int) -> int:
        """Store records of one group in the topic, which must exist: all or none of them.

        Return the offset of the first record.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), they exceed what a batch of the topic may have.
            StorageError: they could not be written.
        """
        partition = self._cluster.topics[NAME].partitions[self.partition_of(group_id)]
        first_offset, size = append_own(partition, records, now_ms, f"group {group_id}")
        self._wrote(partition, size)
        return first_offset

    def append_in_transaction(
        self,
        group_id: str,
        records: Sequence[KeyAndValue],
        producer: tuple[int, int],
        now_ms: int,
        verification: Any,
    ) -> int:
        """Store records that count once the transaction of `producer` (id and epoch) is committed.

        `verification` is what the partition's `join` has returned. Return the offset of the first record.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), or the transaction has ended meanwhile.
            StorageError: they could not be written.
        """
        partition = self.partition(group_id)
        batch = encode_batch(
            [(key, value, (), now_ms) for key, value in records],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            is_transactional=True,
        )
        check_own_size(partition, len(batch), len(records), f"group {group_id}")
        view = memoryview(bytearray(batch))
        offset = append_offsets(partition, view, read_header(view), now_ms, verification)
        self._wrote(partition, len(batch))
        return offset

    def partition(self, group_id: str) -> Any:
        """Return the partition that a group is stored in, of the topic, which must exist."""
        return self._cluster.topics[NAME].partitions[self.partition_of(group_id)]

    def replay(
        self, index: int, losses: Losses, pending: dict[int, list[Stored]] | None = None
    ) -> Iterator[Stored]:
        """Yield everything that is stored in one partition, in order, tombstones too.

        Offsets that a transaction has committed come when its marker comes; those of transactions that are
        still open are in `pending` afterwards, by producer id. What is damaged, or of a version that only
        newer brokers have, is passed over and noted in `losses`.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        log = self._cluster.topics[NAME].partitions[index].log
        open_transactions: dict[int, list[Stored]] = {} if pending is None else pending
        for segment in list(log.segments):
            for batch, magic in sound_batches(segment, partial(losses.damaged, segment.base_offset)):
                if magic < 2:
                    yield from _stored(batch, index, losses, self._kinds)
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
                    kept.extend(_stored(batch, index, losses, self._kinds))
                else:
                    for stored in _stored(batch, index, losses, self._kinds):
                        if isinstance(stored, StoredOffset) and stored.committed is None:
                            _drop(open_transactions, stored)
                        yield stored


def _drop(open_transactions: dict[int, list[Stored]], removed: StoredOffset) -> None:
    """A tombstone removes what is pending, too."""
    for producer_id, kept in open_transactions.items():
        open_transactions[producer_id] = [
            each
            for each in kept
            if not isinstance(each, StoredOffset)
            or (each.group_id, each.partition) != (removed.group_id, removed.partition)
        ]


class Losses:
    """Records of one partition that could not be read, for one line in the broker's log."""

    def __init__(self) -> None:
        self.count = 0
        self._listed: list[str] = []

    def add(self, what: str) -> None:
        """Count a loss, with its description."""
        self.count += 1
        if len(self._listed) < _LOSSES_LISTED:
            self._listed.append(what)

    def damaged(self, segment: int, position: int, size: int) -> None:
        """Count bytes of a segment in which there is no sound batch."""
        self.add(f"{size} bytes at position {position} of segment {segment} are no sound batch")

    def __str__(self) -> str:
        more = self.count - len(self._listed)
        return "; ".join(self._listed) + (f"; and {more} more" if more else "")


def _stored(batch: memoryview, index: int, losses: Losses, kinds: Sequence[GroupRecords]) -> Iterator[Stored]:
    """Yield the parsed records of a sound batch."""
    try:
        rows = decode_batch(batch, 0, len(batch), NAME, index, verify=False)
    except Exception as error:
        # A barrier: nothing has been taken from the batch yet. Bytes under a right checksum may be anything.
        losses.add(f"the batch at {_offsets_of(batch)}: {_described(error)}")
        return
    for row in rows:
        try:
            stored = read_record(row.key, row.value, kinds)
        except Exception as error:
            # A barrier around one record: the others are kept.
            losses.add(f"the record at offset {row.offset}: {_described(error)}")
            continue
        if isinstance(stored, StoredOffset) and stored.committed is not None:
            stored = stored._replace(committed=stored.committed._replace(record_offset=row.offset))
        if stored is not None:
            yield stored


def _marker_of(batch: memoryview, losses: Losses) -> int:
    try:
        return read_marker(batch, 0, len(batch))[0]
    except Exception as error:
        # A barrier, as in `_stored`. The transaction counts as not committed.
        losses.add(f"the marker at {_offsets_of(batch)}: {_described(error)}")
        return -1


def _offsets_of(batch: memoryview) -> str:
    entry = next(walk_buffer(batch))
    return f"offsets {entry.base_offset} to {entry.last_offset}"


def _described(error: Exception) -> str:
    """Return the text of an error, with its class where it is not one of Penstock's."""
    return str(error) if isinstance(error, DecodeError) else f"{type(error).__name__}: {error}"


_LOSSES_LISTED = 5
"""Losses of one partition that the log line lists; the others are counted."""
