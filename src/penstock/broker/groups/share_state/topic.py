"""`__share_group_state`: the topic that the states of share partitions are stored in, and read from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.broker.groups.share_state.records import read_change, record_of
from penstock.broker.groups.share_state.state import Change, Stored
from penstock.broker.partitions.internal_topics import SHARE_STATE_TOPIC
from penstock.broker.partitions.own_records import append_own, own_rows
from penstock.common.java_hash import partition_of
from penstock.errors import DecodeError

if TYPE_CHECKING:
    from penstock.broker.groups.share_state.keys import ShareKey
    from penstock.broker.metadata.cluster import Cluster
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition

_PREFIX = "share.coordinator.state.topic."


class ShareStateTopic:
    """The topic. `wrote` is called with a partition and the size in bytes of each batch appended to it."""

    def __init__(self, cluster: Cluster, store: LogStore, wrote: Callable[[Partition, int], None]) -> None:
        self._cluster = cluster
        self._store = store
        self._wrote = wrote

    @property
    def exists(self) -> bool:
        return SHARE_STATE_TOPIC in self._cluster.topics

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions of the topic; none where there is no topic."""
        topic = self._cluster.topics.get(SHARE_STATE_TOPIC)
        return () if topic is None else topic.partitions

    def index_of(self, key: ShareKey) -> int:
        """Return the number of the partition of the topic, which must exist, that has a state."""
        return partition_of(key.text, len(self.partitions))

    def create(self, now_ms: int) -> None:
        """Make the topic, which this node does not know.

        Raises:
            KafkaError, StorageError: it cannot be made now.
        """
        self._cluster.catch_up()
        if self.exists:
            return  # another node has made it
        config = self._cluster.config
        count = config.integer(f"{_PREFIX}num.partitions")
        replicas = self._cluster.plan_topic(SHARE_STATE_TOPIC, count).replication_factor
        plan = self._cluster.plan_topic(
            SHARE_STATE_TOPIC,
            count,
            configs={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(min(config.integer(f"{_PREFIX}min.isr"), replicas)),
                "segment.bytes": str(config.integer(f"{_PREFIX}segment.bytes")),
                "retention.ms": "-1",
            },
        )
        self._cluster.create_topics([plan], now_ms)

    def append(self, index: int, changes: Sequence[Change], now_ms: int) -> int:
        """Store changes in a partition of the topic, all or none; return the offset of the first record.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), they exceed what a batch of the topic may have.
            StorageError: they could not be written.
        """
        partition = self.partitions[index]
        records = [record_of(change) for change in changes]
        offset, size = append_own(partition, records, now_ms, "share groups")
        self._wrote(partition, size)
        return offset

    def replay(self, index: int, lost: Callable[[str], None]) -> Iterator[Stored]:
        """Yield everything that is stored in one partition, in order, with the offsets of records.

        What is damaged, or of a version that only newer brokers have, is passed over; `lost` is called with
        it.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        topic = self._cluster.topics[SHARE_STATE_TOPIC]
        if not self._store.has_log(SHARE_STATE_TOPIC, index, topic.id):
            return
        log = topic.partitions[index].log
        for row in own_rows(log, SHARE_STATE_TOPIC, index, lost):
            if row.offset < log.start_offset:
                continue
            try:
                change = read_change(row.key, row.value)
            except DecodeError as error:
                lost(f"the record at offset {row.offset}: {error}")
                continue
            if change is not None:
                yield change, row.offset
