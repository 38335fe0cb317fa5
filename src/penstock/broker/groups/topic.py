"""`__consumer_offsets`: where groups and offsets are stored, and how they are found again.

The topic is made when the first group needs it. A group lives in the partition that the hash of its id
says, as at Apache Kafka; that partition is read from its beginning before the group is first touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.broker.cluster import OFFSETS_TOPIC
from penstock.broker.groups.records import KeyAndValue, StoredGroup, StoredOffset, read_record
from penstock.common.java_hash import string_hash
from penstock.errors import DecodeError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.batch import decode_batch, encode_batch, read_header, read_marker, split_batches

if TYPE_CHECKING:
    from penstock.broker.cluster import Cluster
    from penstock.broker.partition import Partition
    from penstock.broker.storage import LogStore
    from penstock.model import Record

NAME = OFFSETS_TOPIC

_READ_BYTES = 1 << 20
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

    def replay(self, index: int) -> Iterator[Stored]:
        """Everything that is stored in one partition, in order, tombstones too.

        Offsets that a transaction has committed come when its marker comes.

        Raises:
            StorageError: the log cannot be read or makes no sense.
        """
        partition = self._cluster.topics[NAME].partitions[index]
        log = partition.log
        offset = log.start_offset
        open_transactions: dict[int, list[Stored]] = {}
        while offset < log.end_offset:
            data = log.read(offset, _READ_BYTES).to_bytes()
            if not data:
                break
            try:
                for start, end, magic in split_batches(data):
                    if magic < 2:
                        rows = decode_batch(data, start, end, NAME, index)
                        offset = rows[-1].offset + 1 if rows else offset + 1
                        yield from _stored(rows)
                        continue
                    header = read_header(data, start)
                    offset = header.next_offset
                    if header.is_control:
                        finished = open_transactions.pop(header.producer_id, [])
                        if read_marker(data, start, end)[0] == _COMMIT_MARKER:
                            yield from finished
                        continue
                    found = _stored(decode_batch(data, start, end, NAME, index))
                    if header.is_transactional:
                        open_transactions.setdefault(header.producer_id, []).extend(found)
                    else:
                        yield from found
            except DecodeError as error:
                raise StorageError(f"{NAME}-{index} cannot be read near offset {offset}: {error}") from error


def _stored(rows: Sequence[Record]) -> Iterator[Stored]:
    for row in rows:
        stored = read_record(row.key, row.value)
        if stored is not None:
            yield stored
