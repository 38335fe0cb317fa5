"""Finds the record for a timestamp in one batch, which its header has shown to be the right one.

For a batch that cannot be read, or that exceeds a budget, the header gives the result: its first offset and
its greatest timestamp. A consumer that begins at this offset reads the batch and gets the error, while
lookups of other times still work. The module works on bytes, not on files.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.log.contract import Bytes
from penstock.log.walk import BatchEntry
from penstock.records.batch import records_bytes
from penstock.records.checking import walk_records
from penstock.records.compression.codecs import UnpackBudget
from penstock.records.format.batch_header import read_header

OffsetAndTime = tuple[int, int]
"""The offset and the timestamp of a record."""


def record_since(
    entry: BatchEntry,
    batch: Bytes,
    timestamp_ms: int,
    start_offset: int,
    budget: UnpackBudget,
    *,
    by_limit: bool = True,
) -> OffsetAndTime | None:
    """Return a batch's first record from `start_offset` on at or after `timestamp_ms`, or None.

    For a batch that cannot be read, or (if `by_limit`) exceeds `budget`, the result is that of `by_header`.

    Raises:
        UnpackLimitError: the batch exceeds `budget`, and `by_limit` is False.
    """
    try:
        for found in records_of(entry, batch, budget):
            if found[1] >= timestamp_ms and found[0] >= start_offset:
                return found
    except CorruptRecordError as error:
        if isinstance(error, UnpackLimitError) and not by_limit:
            raise
        return by_header(entry, start_offset)
    return None


def latest_record(
    entry: BatchEntry, batch: Bytes, start_offset: int, budget: UnpackBudget
) -> OffsetAndTime | None:
    """Return a batch's first record from `start_offset` on with the greatest time; None if there is none."""
    best: OffsetAndTime | None = None
    try:
        for found in records_of(entry, batch, budget):
            if found[0] >= start_offset and (best is None or found[1] > best[1]):
                best = found
    except CorruptRecordError:
        return by_header(entry, start_offset)
    return best


def by_header(entry: BatchEntry, start_offset: int) -> OffsetAndTime:
    """Return a batch's first offset (at least `start_offset`) and greatest timestamp, without its records."""
    return max(entry.base_offset, start_offset), entry.max_timestamp


def records_of(entry: BatchEntry, batch: Bytes, budget: UnpackBudget) -> Iterator[OffsetAndTime]:
    """Yield the offset and time of every record in a batch.

    Raises:
        CorruptRecordError: the records cannot be read.
        UnpackLimitError: the records exceed `budget`.
    """
    if entry.magic < 2:
        from penstock.records.legacy import iter_messages  # few logs have messages before magic 2

        for message in iter_messages(batch, 0, len(batch), budget=budget, verify=False):
            yield message.offset, message.timestamp
        return
    header = read_header(batch)
    for chunk in walk_records(records_bytes(batch, 0, len(batch), header, budget), header, budget):
        for delta, timestamp in zip(chunk.offset_deltas, chunk.timestamps, strict=True):
            yield header.base_offset + delta, timestamp
