"""`__transaction_state`: the topic that transactions are stored in, and read from after a start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from penstock.broker.partitions.internal_topics import TRANSACTIONS_TOPIC
from penstock.broker.transactions.records import KeyAndValue, StoredTransaction, read_record
from penstock.errors import DecodeError
from penstock.log.segments.salvage import sound_batches
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import read_header

if TYPE_CHECKING:
    from penstock.broker.metadata.cluster import Cluster
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition


class TransactionTopic:
    """The topic. `wrote` is called with a partition and the size in bytes of each batch appended to it."""

    def __init__(self, cluster: Cluster, store: LogStore, wrote: Callable[[Partition, int], None]) -> None:
        self._cluster = cluster
        self._store = store
        self._wrote = wrote

    @property
    def exists(self) -> bool:
        return TRANSACTIONS_TOPIC in self._cluster.topics

    @property
    def partition_count(self) -> int:
        """The number of its partitions; of those that it would get while there is no such topic."""
        topic = self._cluster.topics.get(TRANSACTIONS_TOPIC)
        count = len(topic.partitions) if topic is not None else 0
        return count or self._cluster.config.integer("transaction.state.log.num.partitions")

    def leader_epoch(self, index: int) -> int:
        """The epoch of a partition's leader: that of the coordinator of the ids in it."""
        return self._cluster.topics[TRANSACTIONS_TOPIC].partitions[index].leader_epoch

    def is_begun(self, index: int) -> bool:
        """Whether anything has ever been written to a partition of the topic, which exists."""
        return self._store.has_log(TRANSACTIONS_TOPIC, index, self._cluster.topics[TRANSACTIONS_TOPIC].id)

    def create(self, now_ms: int) -> None:
        """Make the topic, which this node does not know.

        Raises:
            StorageError: the metadata log cannot be written.
        """
        self._cluster.catch_up()
        if self.exists:
            return  # another node has made it
        config = self._cluster.config
        plan = self._cluster.plan_topic(
            TRANSACTIONS_TOPIC,
            config.integer("transaction.state.log.num.partitions"),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(config.integer("transaction.state.log.segment.bytes")),
                "unclean.leader.election.enable": "false",
            },
        )
        self._cluster.create_topics([plan], now_ms)

    def append(self, index: int, record: KeyAndValue, now_ms: int) -> None:
        """Store one record in a partition of the topic, which exists.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), it exceeds what a batch of the topic may have.
            StorageError: it could not be written.
        """
        partition = self._cluster.topics[TRANSACTIONS_TOPIC].partition(index)
        log = partition.log
        offset = log.end_offset
        batch = encode_batch(
            [(*record, (), now_ms)],
            base_offset=offset,
            partition_leader_epoch=partition.leader_epoch,
        )
        limit = min(partition.config.max_message_bytes, partition.config.segment_bytes)
        if len(batch) > limit:
            raise error_for(
                ErrorCode.MESSAGE_TOO_LARGE, f"a transaction takes {len(batch)} bytes, the limit is {limit}"
            )
        log.append(batch, first_offset=offset, last_offset=offset, max_timestamp=now_ms, now_ms=now_ms)
        partition.advance()
        self._wrote(partition, len(batch))

    def replay(self, index: int, lost: Callable[[str], None]) -> Iterator[StoredTransaction]:
        """Everything that is stored in one partition, in order, tombstones too.

        What is damaged, or of a version that only newer brokers have, is passed over; `lost` is called with
        it.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        log = self._cluster.topics[TRANSACTIONS_TOPIC].partitions[index].log
        for segment in list(log.segments):
            for batch, magic in sound_batches(segment, partial(_damaged, lost, segment.base_offset)):
                if magic < 2 or read_header(batch).last_offset < log.start_offset:
                    continue
                yield from _stored(batch, index, lost)


def _damaged(lost: Callable[[str], None], segment: int, position: int, size: int) -> None:
    lost(f"{size} bytes at position {position} of segment {segment} are no sound batch")


def _stored(batch: memoryview, index: int, lost: Callable[[str], None]) -> Iterator[StoredTransaction]:
    """Yield the parsed records of a sound batch."""
    try:
        rows = decode_batch(batch, 0, len(batch), TRANSACTIONS_TOPIC, index, verify=False)
    except Exception as error:
        # A barrier: nothing has been taken from the batch yet. Bytes under a right checksum may be anything.
        lost(f"a batch: {type(error).__name__}: {error}")
        return
    for row in rows:
        try:
            stored = read_record(row.key, row.value)
        except DecodeError as error:
            lost(f"the record at offset {row.offset}: {error}")
            continue
        if stored is not None:
            yield stored
