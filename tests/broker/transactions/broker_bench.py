"""A complete broker without sockets, for tests with a transactional producer and consumers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker.bench_node import NOW_MS, batch_of, make_topic, produce_request
from broker.groups.bench_group import Bench
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_store
from penstock.broker.partitions.log_store import LogStore
from penstock.clock import ManualClock
from penstock.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.end_txn_request import EndTxnRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from penstock.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.records.batch import encode_batch
from penstock.records.rows import decode_rows

TP = ("t", 0)


class BrokerBench(Bench):
    """A test broker with a method for each request of a transaction; errors are returned as codes."""

    @classmethod
    def on_disk(cls, directory: Path, clock: ManualClock | None = None, **settings: object) -> BrokerBench:
        clock = clock or ManualClock(NOW_MS)
        return cls(open_store(BrokerConfig({"log.dirs": str(directory)}), clock), clock, **settings)

    def __init__(
        self, store: LogStore | None = None, clock: ManualClock | None = None, **settings: object
    ) -> None:
        super().__init__(store, clock, **settings)
        if "out" not in self.node.cluster.topics:
            make_topic(self.node, "out", partitions=3)

    def again(self) -> BrokerBench:
        return BrokerBench(self.store, self.clock, **self.settings)

    def restart(self, directory: Path, *, kill: bool = False) -> BrokerBench:
        """Stop the broker, cleanly or as after SIGKILL, and return another one on the same directory."""
        if kill:
            self.store.abandon()
        else:
            self.node.note_producers()
            for partition in list(self.node.cluster.opened):
                partition.close()
            self.store.close()
        bench = BrokerBench.on_disk(directory, self.clock, **self.settings)
        bench.node.maintain(self.clock.now_ms())
        return bench

    def initialize(
        self, transactional_id: str | None = "x", version: int = 5, timeout_ms: int = 60_000, **who: int
    ) -> tuple[int, int, int]:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **who
        )
        found = self.ask(request, version).response
        return found.error_code, found.producer_id, found.producer_epoch

    def add(
        self, producer_id: int, epoch: int, *partitions: tuple[str, int], version: int = 3, name: str = "x"
    ) -> list[int]:
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in partitions]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
        found = self.ask(request, version).response.results_by_topic_v3_and_below
        return [each.partition_error_code for topic in found for each in topic.results_by_partition]

    def end(
        self, producer_id: int, epoch: int, commit: bool = True, version: int = 5, name: str = "x"
    ) -> tuple[int, int, int]:
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        found = self.ask(request, version).response
        return found.error_code, found.producer_id, found.producer_epoch

    def write(
        self,
        producer_id: int,
        epoch: int,
        sequence: int,
        *values: bytes,
        partition: tuple[str, int] = TP,
        version: int = 12,
        name: str | None = "x",
        transactional: bool = True,
    ) -> tuple[int, int]:
        """Produce one batch; return the error code and the base offset."""
        records = encode_batch(
            [(b"k", value, (), NOW_MS) for value in values],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
        request = produce_request(bytearray(records), topic=partition[0], partition=partition[1])
        request.transactional_id = name
        found = self.ask(request, version).response.responses[0].partition_responses[0]
        return found.error_code, found.base_offset

    def write_plain(self, *values: bytes, partition: tuple[str, int] = TP) -> int:
        request = produce_request(batch_of(*values), topic=partition[0], partition=partition[1])
        found = self.ask(request, 9).response.responses[0].partition_responses[0]
        assert not found.error_code
        return int(found.base_offset)

    def add_offsets(self, producer_id: int, epoch: int, group: str = "g", version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        return int(self.ask(request, version).response.error_code)

    def commit_offset(
        self,
        producer_id: int,
        epoch: int,
        offset: int,
        *,
        group: str = "g",
        version: int = 5,
        index: int = 0,
        topic_id: bytes | None = None,
        **member: Any,
    ) -> int:
        if topic_id is None:
            topic_id = self.node.cluster.topics["t"].id
        name = "t" if version < 6 else ""
        partition = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=[partition])],
            **member,
        )
        [topic] = self.ask(request, version).response.topics
        return int(topic.partitions[0].error_code)

    # --- reading -----------------------------------------------------------------------------------------

    def fetch(
        self, offset: int = 0, isolation: int = 1, partition: tuple[str, int] = TP, max_bytes: int = 1 << 20
    ) -> Any:
        asked = FetchPartition(partition=partition[1], fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[FetchTopic(topic=partition[0], partitions=[asked])],
        )
        return self.ask(request, 12).response.responses[0].partitions[0]

    def read(self, isolation: int = 1, partition: tuple[str, int] = TP, offset: int = 0) -> list[bytes]:
        """Fetch from a partition; return the values that a consumer with this isolation level gets."""
        found = self.fetch(offset, isolation, partition)
        assert not found.error_code
        pieces = found.records if isinstance(found.records, list) else [found.records]
        data = b"".join(piece.read() if hasattr(piece, "read") else bytes(piece) for piece in pieces)
        aborted = [(one.producer_id, one.first_offset) for one in found.aborted_transactions or ()]
        rows, _ = decode_rows(data, *partition, aborted=aborted, start_offset=offset)
        return [row.value for row in rows if row.value is not None]

    def aborted(self, offset: int = 0) -> list[tuple[int, int]]:
        found = self.fetch(offset).aborted_transactions
        return [(one.producer_id, one.first_offset) for one in found]

    def stable(self, partition: tuple[str, int] = TP) -> tuple[int, int]:
        """Return the last stable offset and the high watermark of a partition."""
        found = self.fetch(0, 0, partition)
        return found.last_stable_offset, found.high_watermark

    def end_offset(self, isolation: int, timestamp: int = -1) -> int:
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=[ListOffsetsTopic(name="t", partitions=[asked])]
        )
        return int(self.ask(request, 5).response.topics[0].partitions[0].offset)

    def offset(self, group: str = "g", stable: bool = False) -> tuple[int, int]:
        """Return the error code and the committed offset of partition 0 of topic ``t``."""
        request = OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])],
            require_stable=stable,
        )
        [topic] = self.ask(request, 7).response.topics
        return topic.partitions[0].error_code, topic.partitions[0].committed_offset
