"""Reads the logs of a broker or a cluster directly, without requests, so that no fault can interfere."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.broker.partitions.internal_topics import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.errors import PenstockError
from penstock.log.walk import walk
from penstock.model import TopicPartition
from penstock.records.batch import iter_records
from penstock.records.compression.codecs import UnpackBudget
from penstock.records.format.batch_header import CONTROL_BIT, PRODUCER_ID_POSITION, TRANSACTIONAL_BIT
from penstock.testing.chaos.events import LogRecord, State
from penstock.testing.chaos.evidence import FinalLog
from penstock.testing.report import leader_of, nodes_of

if TYPE_CHECKING:
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition
    from penstock.common.listening.serving_thread import Served

T = TypeVar("T")

READ_BYTES = 1 << 20
UNPACKED_BYTES_MAX = 1 << 28
SETTLING_S = 0.25
"""The longest wait, in seconds, for the markers of transactions whose commit or abort has begun."""
SETTLING_STEP_S = 0.005

COMMIT_MARKER = 1
_MARKER = struct.Struct(">hh")
_PRODUCER_ID = struct.Struct(">q")
INTERNAL = frozenset((METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC))


def read_logs(served: Served) -> dict[TopicPartition, FinalLog]:
    """Return the log of each partition that has a leader, without the broker's internal topics.

    A broker that does not run yields an empty dict. The markers of a transaction are written shortly after
    its commit or abort: while a transaction looks open, the logs are read again, for at most `SETTLING_S`
    seconds.

    Raises:
        CorruptRecordError: a log is damaged.
    """
    deadline = time.monotonic() + SETTLING_S
    while True:
        if not served.is_running:
            return {}
        logs = on_loop(served, lambda: _logs(nodes_of(served)))
        is_settled = all(record.state != "open" for log in logs.values() for record in log.records)
        if is_settled or time.monotonic() >= deadline:
            return logs
        time.sleep(SETTLING_STEP_S)


def on_loop(served: Served, function: Callable[[], T]) -> T:
    """Call `function` in the thread of a running broker, and return the function's result."""
    loop = served._thread.loop
    assert loop is not None
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(function())
        except BaseException as error:
            done.set_exception(error)

    loop.call_soon_threadsafe(run)
    return done.result()


def end_offsets(nodes: list[Node]) -> dict[TopicPartition, int]:
    """Return a dict from each partition to its end offset at its leader, without internal topics.

    While a partition has no leader, as after a broker was killed, its longest replica counts: every in-sync
    replica holds the acknowledged records.
    """
    led: dict[TopicPartition, int] = {}
    copied: dict[TopicPartition, int] = {}
    for node in nodes:
        for name, topic in node.cluster.topics.items():
            if name in INTERNAL:
                continue
            for partition in topic.partitions:
                tp, end = TopicPartition(partition.topic, partition.index), partition.reader.end_offset
                if partition.leads:
                    led[tp] = end
                elif node.node_id in partition.replicas:
                    copied[tp] = max(end, copied.get(tp, 0))
    return copied | led


def end_of(brokers: Iterable[Served], tp: TopicPartition) -> int | None:
    """Return the current end offset of a partition, or None if no broker leads the partition. Thread-safe."""
    for served in brokers:
        with contextlib.suppress(PenstockError):  # of a cluster, no node runs
            partition = leader_of(nodes_of(served), *tp) if served.is_running else None
            if partition is not None:
                return partition.reader.end_offset
    return None


def _logs(nodes: list[Node]) -> dict[TopicPartition, FinalLog]:
    logs = {}
    for tp in end_offsets(nodes):
        partition = leader_of(nodes, *tp)
        if partition is not None:
            logs[tp] = _log(tp, partition)
    return logs


@dataclass
class _Reading:
    """Reads the log of one partition batch by batch.

    A transaction's records get their final state when its marker is read.
    """

    tp: TopicPartition
    rows: dict[int, LogRecord] = field(default_factory=dict)
    open: dict[int, list[int]] = field(default_factory=dict)
    """A dict from producer id to the offsets of its records in an open transaction."""

    def take(self, record: Any, producer_id: int, *, is_transactional: bool) -> None:
        """Add one record from a data batch to the log that is being read."""
        state: State = "open" if is_transactional else "committed"
        self.rows[record.offset] = LogRecord(
            *self.tp, record.offset, record.key, record.value, tuple(record.headers), state, producer_id
        )
        if is_transactional:
            self.open.setdefault(producer_id, []).append(record.offset)

    def end(self, producer_id: int, marker: int, *, is_commit: bool) -> None:
        """Set the state of a transaction's records after its commit or abort marker, at offset `marker`."""
        state: State = "committed" if is_commit else "aborted"
        for offset in self.open.pop(producer_id, ()):
            self.rows[offset] = self.rows[offset]._replace(state=state, settled_at=marker)


def _log(tp: TopicPartition, partition: Partition) -> FinalLog:
    source = partition.reader
    reading = _Reading(tp)
    budget = UnpackBudget(UNPACKED_BYTES_MAX, UNPACKED_BYTES_MAX)
    position, end = source.start_offset, source.end_offset
    while position < end:
        data = source.read(position, READ_BYTES, up_to_offset=end, at_least_one=True).to_bytes()
        if not data:
            break
        for entry in walk(lambda start, size, data=data: data[start : start + size], 0, len(data)):  # type: ignore[misc]
            start, stop = entry.position, entry.position + entry.size
            producer_id = -1
            if entry.magic >= 2:
                producer_id = _PRODUCER_ID.unpack_from(data, start + PRODUCER_ID_POSITION)[0]
            is_transactional = bool(entry.attributes & TRANSACTIONAL_BIT)
            for records in iter_records(data, start, stop, tp.topic, tp.partition, budget):
                for record in records:
                    if entry.attributes & CONTROL_BIT:
                        kind = _MARKER.unpack_from(record.key or bytes(_MARKER.size))[1]
                        reading.end(producer_id, record.offset, is_commit=kind == COMMIT_MARKER)
                    elif record.offset >= source.start_offset:
                        reading.take(record, producer_id, is_transactional=is_transactional)
            position = entry.last_offset + 1
    return FinalLog([reading.rows[offset] for offset in sorted(reading.rows)], source.start_offset, end)
