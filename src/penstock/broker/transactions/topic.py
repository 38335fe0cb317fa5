"""`__transaction_state`: the topic that transactions are stored in, and read from after a start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penstock.broker.partitions.internal_topics import TRANSACTIONS_TOPIC
from penstock.broker.partitions.own_records import append_own, own_rows
from penstock.broker.transactions.records import KeyAndValue, StoredTransaction, read_record
from penstock.errors import DecodeError

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
        _, size = append_own(partition, [record], now_ms, "a transaction")
        self._wrote(partition, size)

    def replay(self, index: int, lost: Callable[[str], None]) -> Iterator[StoredTransaction]:
        """Everything that is stored in one partition, in order, tombstones too.

        What is damaged, or of a version that only newer brokers have, is passed over; `lost` is called with
        it.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        log = self._cluster.topics[TRANSACTIONS_TOPIC].partitions[index].log
        for row in own_rows(log, TRANSACTIONS_TOPIC, index, lost):
            try:
                stored = read_record(row.key, row.value)
            except DecodeError as error:
                lost(f"the record at offset {row.offset}: {error}")
                continue
            if stored is not None:
                yield stored
