"""The records of a dead letter topic (KIP-1191): their headers, and the originals whose bytes they copy.

A dead letter has neither key nor value, unless the group copies records. Its headers say where the original
is, how often it was delivered, and why it is not delivered again. Apache Kafka writes the same headers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.errors import CorruptRecordError, KafkaError, StorageError, UnpackLimitError
from penstock.log.walk import fetch_from, walk_whole
from penstock.records.batch import encode_batch, iter_records, record_size_max
from penstock.records.compression.codecs import UnpackBudget
from penstock.records.format.batch_header import HEADER_BYTES

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.model import Record

REJECTED = "Offset rejected by client."
EXCEEDED = "Offset delivery count exceeded the threshold."

BATCH_BYTES, BATCH_RECORDS = 256 << 10, 500
"""The limits of a batch of dead letters: the size in bytes from which no record is added, and the maximum
number of records.
"""

READ_BYTES = 64 << 10
"""The most bytes of the log that are read at a time, unless one batch is larger."""

READ_RECORDS = 10_000
"""The maximum number of original records that are decoded for one batch of dead letters, unless a batch of
the log has more.
"""

DECODED_AT_ONCE = 100

Headers = tuple[tuple[str, bytes], ...]


class DeadRange(NamedTuple):
    """Consecutive records that are not delivered again, and the reason: `REJECTED` or `EXCEEDED`."""

    first: int
    last: int
    deliveries: int
    reason: str


class DeadBatch(NamedTuple):
    """An encoded batch of dead letters, and the ranges of the original records."""

    data: bytes
    ranges: list[DeadRange]


class Originals(Protocol):
    """The interface of objects that find the original records of dead letters."""

    @property
    def is_tired(self) -> bool:
        """Return True if as many records were decoded as one batch of dead letters may take."""

    def find(self, offset: int) -> Record | None:
        """Return the original record at `offset`, or None if it cannot be read. Offsets must ascend."""


class NoOriginals:
    """Finds no original records, for share groups whose dead letters have no copy of key and value."""

    is_tired = False

    def find(self, offset: int) -> Record | None:
        """Return None, because no original record is needed."""
        return None


class LoggedOriginals:
    """Reads original records from the log of their partition, by ascending offsets.

    A record is not found if its batch has more than `max_bytes`, stored or decompressed.
    """

    def __init__(self, partition: Partition, max_bytes: int) -> None:
        self._partition = partition
        self._max_bytes = max(max_bytes, READ_BYTES)
        self._data = memoryview(b"")
        self._batches: Iterator[tuple[int, int, int]] = iter(())
        """The batches of `_data` that `find` has not reached yet, each as last offset, start and end
        position.
        """
        self._records: Iterator[Record] = iter(())
        self._last = -1
        """The last offset of the batch that `_records` decodes."""
        self._decoded = 0

    @property
    def is_tired(self) -> bool:
        """Return True if as many records were decoded as one batch of dead letters may take."""
        return self._decoded >= READ_RECORDS

    def find(self, offset: int) -> Record | None:
        """Return the original record at `offset`, or None if it cannot be read. Offsets must ascend."""
        try:
            if offset > self._last and not self._enter(offset):
                return None
            for record in self._records:
                if record.offset >= offset:
                    if record.offset > offset:
                        self._records = chain((record,), self._records)
                        return None
                    return record
        except (KafkaError, StorageError, CorruptRecordError, UnpackLimitError):
            self._records = iter(())
        return None

    def _enter(self, offset: int) -> bool:
        """Begin to decode the log batch that contains `offset`; return False if no such batch can be read.

        Raises:
            KafkaError, StorageError, CorruptRecordError: the log cannot be read here.
        """
        for _ in range(2):
            for last, begin, end in self._batches:
                if last >= offset:
                    self._last = last
                    self._records = self._decode(begin, end)
                    return True
            found = self._partition.read(offset, READ_BYTES, at_least_one=True)
            if not 0 < found.size <= self._max_bytes:
                return False
            self._data = memoryview(found.to_bytes())
            self._batches = (
                (entry.last_offset, entry.position, entry.position + entry.size)
                for entry in walk_whole(fetch_from(self._data), 0, len(self._data))
            )
        return False

    def _decode(self, begin: int, end: int) -> Iterator[Record]:
        partition = self._partition
        budget = UnpackBudget(self._max_bytes, 1 << 31)
        place = partition.topic, partition.index, budget
        for some in iter_records(self._data, begin, end, *place, verify=False, chunk_records=DECODED_AT_ONCE):
            self._decoded += len(some)
            yield from some


def headers_of(group_id: str, topic: str, partition: int, offset: int, dead: DeadRange) -> Headers:
    """Return the headers of a dead letter, under Apache Kafka's names; numbers are text."""
    return (
        ("__dlq.errors.topic", topic.encode()),
        ("__dlq.errors.partition", b"%d" % partition),
        ("__dlq.errors.offset", b"%d" % offset),
        ("__dlq.errors.group", group_id.encode()),
        ("__dlq.errors.delivery.count", b"%d" % dead.deliveries),
        ("__dlq.errors.message", dead.reason.encode()),
    )


def batch_of(
    ranges: deque[DeadRange],
    group_id: str,
    partition: Partition,
    originals: Originals,
    max_bytes: int,
    now_ms: int,
) -> DeadBatch:
    """Return a batch of dead letters for the first records in `ranges`; remove these records from `ranges`.

    The batch ends within a range if it is full. A record that is too large for `max_bytes` has neither key
    nor value.
    """
    rows: list[tuple[bytes | None, bytes | None, Headers, int]] = []
    done: list[DeadRange] = []
    size = HEADER_BYTES
    while ranges:
        dead = ranges[0]
        for offset in range(dead.first, dead.last + 1):
            headers = headers_of(group_id, partition.topic, partition.index, offset, dead)
            record = originals.find(offset)
            key, value = (None, None) if record is None else (record.key, record.value)
            record_size = record_size_max(key, value, headers)
            if HEADER_BYTES + record_size > max_bytes and not _fits(key, value, headers, max_bytes):
                key = value = None
                record_size = record_size_max(None, None, headers)
            if rows and (size + record_size > max_bytes or _is_full(rows, size, originals)):
                if offset > dead.first:
                    done.append(dead._replace(last=offset - 1))
                ranges[0] = dead._replace(first=offset)
                return DeadBatch(encode_batch(rows), done)
            rows.append((key, value, headers, now_ms))
            size += record_size
        done.append(ranges.popleft())
    return DeadBatch(encode_batch(rows), done)


def _is_full(rows: Sequence[object], size: int, originals: Originals) -> bool:
    return len(rows) >= BATCH_RECORDS or size >= BATCH_BYTES or originals.is_tired


def _fits(key: bytes | None, value: bytes | None, headers: Headers, max_bytes: int) -> bool:
    """Return True if a record fits into a batch of its own; it is encoded, since its size was estimated."""
    return len(encode_batch([(key, value, headers, 0)])) <= max_bytes
