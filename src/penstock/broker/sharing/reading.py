"""Reads a partition for a share group: finds batches by their headers, and returns their bytes.

Records are not decoded. A whole batch is returned if any of its records is acquired; clients ignore the
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.sharing.share_partition import Acquired, FoundBatch
from penstock.errors import CorruptRecordError, KafkaError, StorageError
from penstock.log.walk import fetch_from, walk_whole
from penstock.records.format.batch_header import CONTROL_BIT, PRODUCER_ID_POSITION, TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.partitions.producers.transactions import AbortedTransaction
    from penstock.broker.sharing.led_partition import LedPartition
    from penstock.broker.sharing.settings import SharingSettings

CHUNK_BYTES = 256 << 10
"""The maximum bytes of a partition that are read at a time, unless the first batch is larger."""

CHUNKS_MAX = 256
"""The maximum number of chunks of a partition that one request reads, since many may have nothing to
acquire.
"""

_PRODUCER_ID = Struct(">q")


class LogChunk:
    """Consecutive batches of the log. Iterating over `batches` reads their headers one by one.

    The headers are read lazily, because a member often takes only the first of thousands of batches.
    """

    def __init__(self, data: memoryview, read_from: int, aborted: Sequence[AbortedTransaction]) -> None:
        self.data = data
        self._read_from = read_from
        self._aborted = aborted
        self.found: list[tuple[FoundBatch, int, int]] = []
        """The batches that were read, each with its start and end positions in `data`."""

    @property
    def next_offset(self) -> int:
        """The offset after the last batch that `batches` has yielded."""
        return self.found[-1][0].last + 1 if self.found else self._read_from

    def batches(self) -> Iterator[FoundBatch]:
        """Yield the batches; end before a damaged one, unless it is the first.

        Raises:
            CorruptRecordError: the log is damaged at the start of the chunk.
        """
        data, found = self.data, self.found
        try:
            for entry in walk_whole(fetch_from(data), 0, len(data)):
                begin, first = entry.position, entry.base_offset
                if entry.magic < 2:
                    first = min(first, self.next_offset)
                is_dropped = bool(self._aborted) and self._is_aborted(begin, entry.attributes, first)
                batch = FoundBatch(first, entry.last_offset, is_dropped)
                found.append((batch, begin, begin + entry.size))
                yield batch
        except CorruptRecordError:
            if not found:
                raise

    def _is_aborted(self, position: int, attributes: int, first: int) -> bool:
        if attributes & CONTROL_BIT or not attributes & TRANSACTIONAL_BIT:
            return False
        (producer,) = _PRODUCER_ID.unpack_from(self.data, position + PRODUCER_ID_POSITION)
        return any(
            each.producer_id == producer and each.first_offset <= first < each.marker_offset
            for each in self._aborted
        )

    def pieces(self, acquired: Sequence[Acquired]) -> list[memoryview]:
        """Return the bytes of the batches that have acquired records; adjacent batches form one slice."""
        pieces: list[tuple[int, int]] = []
        ranges = iter(acquired)
        current = next(ranges, None)
        for batch, begin, end in self.found:
            while current is not None and current.last < batch.first:
                current = next(ranges, None)
            if current is None:
                break
            if current.first <= batch.last:
                if pieces and pieces[-1][1] == begin:
                    pieces[-1] = pieces[-1][0], end
                else:
                    pieces.append((begin, end))
        return [self.data[begin:end] for begin, end in pieces]


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
    """Read batches from an offset on; return None if there are no batches that the group may read.

    With `at_least_one`, the first batch may be larger than `max_bytes`.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE (1).
        StorageError: the log cannot be read.
    """
    found = partition.read(read_from, max_bytes, at_least_one=at_least_one, committed_only=committed_only)
    if not found.size:
        return None
    data = memoryview(found.to_bytes())
    aborted = partition.aborted_transactions(read_from, found.size) if committed_only else []
    return LogChunk(data, read_from, aborted)


def free_bytes(led: LedPartition, settings: SharingSettings, most: int) -> int:
    """Return the bytes of the batches that a member could acquire now; stop counting at `most`.

    Raises the same errors as `read_chunk` and `LogChunk.batches`.
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
        for batch in chunk.batches():
            if not batch.is_dropped and share.free_in(max(batch.first, read_from), batch.last):
                _, begin, end = chunk.found[-1]
                total += end - begin
                if total >= most:
                    return total
        read_from = chunk.next_offset
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
    """Acquire records of a partition for a member, up to limits. The first batch may exceed `max_bytes`.

    Raises the same errors as `read_chunk` and `LogChunk.batches`, if no record has been acquired yet. After
    that, records are returned and the next call raises the error, because acquired records are locked for the
    member.
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
        try:
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
                chunk.batches(),
                settings,
                now,
                most=most,
                batch_size=batch_size,
                is_exact=is_exact,
            )
        except (KafkaError, StorageError, CorruptRecordError):
            if taken.acquired:
                break
            raise
        for each in acquired:
            _join(taken.acquired, each, batch_size)
        pieces = chunk.pieces(acquired)
        taken.pieces.extend(pieces)
        taken = taken._replace(size=taken.size + sum(map(len, pieces)))
        if share.next_offset == read_from or (acquired and acquired[-1].deliveries > 1):
            break
    return taken


def _join(ranges: list[Acquired], each: Acquired, batch_size: int) -> None:
    """Append a range, or extend the last one if adjacent, as often delivered, and below `batch_size`."""
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
