"""Reads the logs of a sink's topics: the rows of transactions, and their commit or abort markers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

from penstock.client.fetch.offsets import fetch_known_offsets
from penstock.client.fetch.ranges import RangeReader
from penstock.model import EARLIEST, LATEST, OffsetRange, TopicPartition
from penstock.records.batch import COMMIT_MARKER, read_marker
from penstock.records.format.batch_header import BatchHeader, read_header, split_batches
from penstock.spark.exactly_once.decision import Ranges, TaskTransaction
from penstock.spark.exactly_once.settlement import TransactionFate

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.cluster.client import AsyncClient

COPIED = ("key", "value", "headers", "partition", "timestamp")
"""The columns of a record that are copied into a new transaction. The copy gets a new offset."""


async def fates(
    client: AsyncClient, transactions: Collection[TaskTransaction], ranges: Ranges
) -> dict[TaskTransaction, TransactionFate]:
    """Return the fate of each transaction (committed or aborted), from the markers after its rows in the log.

    A transaction without a marker after its rows is UNCLEAR. It is LOST if rows may have been removed from
    the log.

    Raises:
        KafkaError: a topic was deleted, or may not be read.
        NetworkError, RequestTimeoutError: a broker does not answer.
    """
    by_producer = {each.producer_id: each for each in transactions}
    known: dict[TaskTransaction, TransactionFate] = {}
    seen: set[TaskTransaction] = set()
    starts = await fetch_known_offsets(client, _partitions(ranges), EARLIEST)
    ends = await fetch_known_offsets(client, _partitions(ranges), LATEST)
    is_cut = False
    for tp, (first, end) in _spans(ranges):
        is_cut |= starts[tp] > first
        waiting: set[int] = set()
        async with aclosing(_batches(client, tp, max(first, starts[tp]), ends[tp])) as batches:
            async for view, header in batches:
                transaction = by_producer.get(header.producer_id)
                if transaction is not None and header.is_control and header.producer_id in waiting:
                    kind, _ = read_marker(view, 0, len(view))
                    known[transaction] = (
                        TransactionFate.COMMITTED if kind == COMMIT_MARKER else TransactionFate.ABORTED
                    )
                    waiting.discard(header.producer_id)
                elif transaction is not None and _is_of(header, transaction, end):
                    seen.add(transaction)
                    waiting.add(header.producer_id)
                if header.next_offset >= end and not waiting:
                    break
    return {each: _fate(known.get(each), is_cut, each in seen) for each in transactions}


def _fate(found: TransactionFate | None, is_cut: bool, is_seen: bool) -> TransactionFate:
    if found is TransactionFate.COMMITTED:
        return found
    if is_cut or not is_seen:
        # Its rows may be among those that are gone; without any, compaction has been there.
        return TransactionFate.LOST
    return found or TransactionFate.UNCLEAR


async def rows(
    client: AsyncClient, transactions: Collection[TaskTransaction], ranges: Ranges
) -> AsyncIterator[tuple[str, pa.RecordBatch]]:
    """Yield (topic, rows) of transactions, committed or not; those of a partition are in offset order.

    Raises:
        CorruptRecordError: a batch is damaged.
        KafkaError, NetworkError, RequestTimeoutError: as for `fates`.
    """
    from penstock.records.arrow import to_arrow
    from penstock.records.decode import iter_columns

    by_producer = {each.producer_id: each for each in transactions}
    for tp, (first, end) in _spans(ranges):
        async with aclosing(_batches(client, tp, first, end)) as batches:
            async for view, header in batches:
                transaction = by_producer.get(header.producer_id)
                if transaction is not None and _is_of(header, transaction, end):
                    for piece in iter_columns([view], columns=COPIED):
                        yield tp.topic, to_arrow(piece, *tp, COPIED)


def _is_of(header: BatchHeader, transaction: TaskTransaction, end: int) -> bool:
    """Return True if a batch of the producer has rows of the transaction that begin before `end`."""
    return (
        not header.is_control
        and header.producer_epoch == transaction.epoch
        and header.base_offset < end
        and header.record_count > 0
    )


async def _batches(
    client: AsyncClient, tp: TopicPartition, first: int, end: int
) -> AsyncGenerator[tuple[memoryview, BatchHeader], None]:
    """Yield a partition's raw batches, in message format 2, from offset `first` to before `end`."""
    if first >= end:
        return
    reader = RangeReader(client, [OffsetRange(*tp, first, end)])
    try:
        await reader.start()
        while parts := await reader.next_parts():
            for part in parts:
                for start, stop, magic in split_batches(part.records):
                    if magic == 2:
                        view = part.records[start:stop]
                        yield view, read_header(view, 0)
    finally:
        await reader.close()


def _spans(ranges: Ranges) -> Iterator[tuple[TopicPartition, tuple[int, int]]]:
    for topic, partitions in sorted(ranges.items()):
        for partition, span in sorted(partitions.items()):
            yield TopicPartition(topic, partition), span


def _partitions(ranges: Ranges) -> list[TopicPartition]:
    return [tp for tp, _ in _spans(ranges)]


def spans_of(offsets: Mapping[str, Mapping[int, tuple[int, int]]]) -> dict[str, dict[int, tuple[int, int]]]:
    """Return the offset ranges as plain dictionaries and integers, for storing as JSON."""
    return {
        topic: {int(p): (int(first), int(end)) for p, (first, end) in each.items()}
        for topic, each in offsets.items()
    }
