"""Reads a partition for a share group: batches of its log by their headers, and the bytes to return.

Records are not decoded. A whole batch is returned if any of its records is acquired; clients ignore the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.sharing.share_partition import Acquired, FoundBatch
from penstock.log.walk import fetch_from, walk_whole
from penstock.records.format.batch_header import CONTROL_BIT, PRODUCER_ID_POSITION, TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.partitions.producers.transactions import AbortedTransaction
    from penstock.broker.sharing.led_partition import LedPartition
    from penstock.broker.sharing.settings import SharingSettings

CHUNK_BYTES = 256 << 10
"""How much of a partition is read at a time, beside a larger batch: more of it only where it is taken."""

CHUNKS_MAX = 256
"""How many of these one request reads of a partition: most of what it reads may be of no use to it."""

_PRODUCER_ID = Struct(">q")


class LogChunk(NamedTuple):
    """Consecutive batches of the log, with their positions in `data`."""

    data: memoryview
    read_from: int
    batches: list[FoundBatch]
    bounds: list[tuple[int, int]]
    """Of each batch, where it begins and ends."""


class Taken(NamedTuple):
    """The records that a member acquires in a partition: ranges, and the bytes of their batches."""

    acquired: list[Acquired]
    pieces: list[memoryview]
    size: int


def read_chunk(
    partition: Partition,
    read_from: int,
    max_bytes: int,
    *,
    committed_only: bool,
    at_least_one: bool = True,
) -> LogChunk | None:
    """Read batches from an offset on; return None if there are none that the group may read.

    With `at_least_one`, the first batch may be larger than `max_bytes`.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE (1).
        StorageError: the log cannot be read.
        CorruptRecordError: the log is damaged.
    """
    found = partition.read(read_from, max_bytes, at_least_one=at_least_one, committed_only=committed_only)
    if not found.size:
        return None
    data = memoryview(found.to_bytes())
    aborted = partition.aborted_transactions(read_from, found.size) if committed_only else []
    batches, bounds = [], []
    expected = read_from
    for entry in walk_whole(fetch_from(data), 0, len(data)):
        first = entry.base_offset if entry.magic >= 2 else min(entry.base_offset, expected)
        is_dropped = bool(aborted) and _is_aborted(data, entry.position, entry.attributes, first, aborted)
        batches.append(FoundBatch(first, entry.last_offset, is_dropped))
        bounds.append((entry.position, entry.position + entry.size))
        expected = entry.last_offset + 1
    return LogChunk(data, read_from, batches, bounds)


def _is_aborted(
    data: memoryview, position: int, attributes: int, first: int, aborted: Sequence[AbortedTransaction]
) -> bool:
    if attributes & CONTROL_BIT or not attributes & TRANSACTIONAL_BIT:
        return False
    (producer,) = _PRODUCER_ID.unpack_from(data, position + PRODUCER_ID_POSITION)
    return any(
        each.producer_id == producer and each.first_offset <= first < each.marker_offset for each in aborted
    )


def free_bytes(led: LedPartition, settings: SharingSettings, most: int) -> int:
    """Return how many bytes of batches a member could acquire now, counting up to `most`.

    Raises the errors of `read_chunk`.
    """
    share = led.share
    if share is None or not share.has_room(settings):
        return 0
    share.archive_below(led.partition.log_start_offset)
    total, read_from = 0, share.next_offset
    for _ in range(CHUNKS_MAX):
        chunk = read_chunk(led.partition, read_from, CHUNK_BYTES, committed_only=settings.committed_only)
        if chunk is None:
            break
        for batch, (begin, end) in zip(chunk.batches, chunk.bounds, strict=True):
            if not batch.is_dropped and share.free_in(max(batch.first, read_from), batch.last):
                total += end - begin
        read_from = chunk.batches[-1].last + 1
        if total >= most:
            break
    return total


def take(
    led: LedPartition,
    member: str,
    settings: SharingSettings,
    now: float,
    *,
    max_bytes: int,
    max_records: int,
    batch_size: int,
    is_exact: bool,
) -> Taken:
    """Acquire records of a partition for a member, up to limits; the first batch may exceed `max_bytes`.

    Raises the errors of `read_chunk`; records acquired before the error stay acquired.
    """
    share, partition = led.share, led.partition
    taken = Taken([], [], 0)
    if share is None:
        return taken
    share.archive_below(partition.log_start_offset)
    for _ in range(CHUNKS_MAX):
        left = max_bytes - taken.size
        most = max_records - sum(each.last - each.first + 1 for each in taken.acquired)
        if most <= 0 or (taken.acquired and left <= 0) or not share.has_room(settings):
            break
        read_from = share.next_offset
        size = max(1, min(left, CHUNK_BYTES))
        chunk = read_chunk(
            partition,
            read_from,
            size,
            committed_only=settings.committed_only,
            at_least_one=not taken.acquired,
        )
        if chunk is None:
            break
        acquired = share.acquire(
            member,
            read_from,
            chunk.batches,
            settings,
            now,
            most=most,
            batch_size=batch_size,
            is_exact=is_exact,
        )
        for each in acquired:
            _join(taken.acquired, each, batch_size)
        pieces = _pieces(chunk, acquired)
        taken.pieces.extend(pieces)
        taken = taken._replace(size=taken.size + sum(map(len, pieces)))
        if share.next_offset == read_from or (acquired and acquired[-1].deliveries > 1):
            break
    return taken


def _join(ranges: list[Acquired], each: Acquired, batch_size: int) -> None:
    """Append a range, or extend the last one if it continues there and is shorter than `batch_size`."""
    last = ranges[-1] if ranges else None
    if (
        last is not None
        and last.last + 1 == each.first
        and last.deliveries == each.deliveries
        and last.last - last.first + 1 < batch_size
    ):
        ranges[-1] = last._replace(last=each.last)
    else:
        ranges.append(each)


def _pieces(chunk: LogChunk, acquired: Sequence[Acquired]) -> list[memoryview]:
    """Return the bytes of the batches that have acquired records; adjacent batches are one piece."""
    pieces: list[tuple[int, int]] = []
    ranges = iter(acquired)
    current = next(ranges, None)
    for batch, (begin, end) in zip(chunk.batches, chunk.bounds, strict=True):
        while current is not None and current.last < batch.first:
            current = next(ranges, None)
        if current is None:
            break
        if current.first <= batch.last:
            if pieces and pieces[-1][1] == begin:
                pieces[-1] = pieces[-1][0], end
            else:
                pieces.append((begin, end))
    return [chunk.data[begin:end] for begin, end in pieces]
