"""Decodes batches of any magic into rows for applications.

The rows are the same records that `decode` returns as columns: no control records, no aborted transactions,
nothing outside the range of offsets. The module does not import numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.model import Record
from penstock.records.aborted import AbortedTransactions
from penstock.records.batch import ABORT_MARKER, iter_records, read_marker, rows_of_batch
from penstock.records.compression.codecs import UNPACKED_BYTES_MAX, UNPACKED_RECORDS_MAX, UnpackBudget
from penstock.records.format.batch_header import read_header, split_batches, verify_crc
from penstock.records.legacy import read_message

if TYPE_CHECKING:
    from typing_extensions import Buffer

CHUNK_ROWS = 2_048
"""The maximum number of records that become objects at a time: few enough that their memory stays in the
CPU cache.
"""

OFFSET_MAX = (1 << 63) - 1
"""The maximum 64-bit offset. No record has it, because the offset after it could not be requested."""


def decode_rows(
    buffer: Buffer,
    topic: str,
    partition: int,
    *,
    start_offset: int = 0,
    end_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    verify: bool = True,
    limit_bytes: int = UNPACKED_BYTES_MAX,
    limit_records: int = UNPACKED_RECORDS_MAX,
) -> tuple[list[Record], int]:
    """Decode the whole batches in `buffer`; return (records, offset to read next).

    `end_offset` is exclusive; `aborted` lists (producer id, first offset) of aborted transactions,
    as a fetch response does. A partial batch at the end is ignored.

    Raises:
        CorruptRecordError: a checksum (if `verify`) or the layout is wrong.
        UnpackLimitError: a compressed batch contains more than `limit_bytes` or `limit_records`.
    """
    rows: list[Record] = []
    next_offset = start_offset
    for some, resume in iter_rows(
        buffer,
        topic,
        partition,
        start_offset=start_offset,
        end_offset=end_offset,
        aborted=aborted,
        verify=verify,
        limit_bytes=limit_bytes,
        limit_records=limit_records,
    ):
        rows += some
        next_offset = resume
    return rows, next_offset


def iter_rows(
    buffer: Buffer,
    topic: str,
    partition: int,
    *,
    start_offset: int = 0,
    end_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    verify: bool = True,
    limit_bytes: int = UNPACKED_BYTES_MAX,
    limit_records: int = UNPACKED_RECORDS_MAX,
    record_class: type[Record] = Record,
) -> Iterator[tuple[list[Record], int]]:
    """Decode the whole batches in `buffer` in parts; yield (records, offset to read next) for each part.

    The records are instances of `record_class`. The other arguments are the same as in `decode_rows`. At most
    one compressed batch is decompressed at a time, and about two thousand records at a time become objects.
    The last part, which may have no records, has the offset after the end of the buffer.

    Raises:
        CorruptRecordError: a checksum (if `verify`) or the layout is wrong; the parts before it were yielded.
        UnpackLimitError: a compressed batch contains more than `limit_bytes` or `limit_records`.
    """
    view = memoryview(buffer)
    end_offset = OFFSET_MAX if end_offset is None else end_offset
    aborted = list(aborted)
    transactions = AbortedTransactions(aborted) if aborted else None
    rows: list[Record] = []
    next_offset = start_offset
    for start, end, magic in split_batches(view):
        if magic == 2:
            header = read_header(view, start)
            if header.base_offset >= end_offset:
                next_offset = end_offset
                break
            first, next_offset = header.base_offset, max(next_offset, header.next_offset)
            if header.is_control:
                if verify:
                    verify_crc(view, start, end)
                if (
                    transactions is not None
                    and header.is_transactional
                    and read_marker(view, start, end)[0] == ABORT_MARKER
                ):
                    transactions.end_transaction(header.producer_id, header.last_offset)
                continue
            if (
                transactions is not None
                and header.is_transactional
                and transactions.is_aborted(header.producer_id, header.last_offset)
            ):
                if verify:
                    verify_crc(view, start, end)
                continue
            if header.last_offset < start_offset or not header.record_count:
                continue
            last = header.last_offset
        else:
            last = read_message(view, start, end).offset
            next_offset = max(next_offset, last + 1)
            if last < start_offset:
                continue
            first = -1  # a wrapper does not say where it begins
        is_cut = first < start_offset or last >= end_offset
        if magic == 2 and not (is_cut or header.codec or header.record_count > CHUNK_ROWS):
            try:
                rows += rows_of_batch(view, start, end, header, topic, partition, verify, record_class)
            except CorruptRecordError:
                if rows:
                    yield rows, rows[-1].offset + 1
                raise
            if len(rows) >= CHUNK_ROWS:
                yield rows, next_offset
                rows = []
            continue
        budget = UnpackBudget(limit_bytes, limit_records)
        try:
            for found in iter_records(
                view,
                start,
                end,
                topic,
                partition,
                budget,
                verify=verify,
                chunk_records=CHUNK_ROWS,
                record_class=record_class,
            ):
                if is_cut:
                    found = [record for record in found if start_offset <= record.offset < end_offset]
                rows = rows + found if rows else found
                if len(rows) >= CHUNK_ROWS:
                    yield rows, min(rows[-1].offset + 1, end_offset)
                    rows = []
        except CorruptRecordError as error:
            if rows:
                yield rows, rows[-1].offset + 1
            if not isinstance(error, UnpackLimitError):
                raise
            offset = first if magic == 2 else last
            raise UnpackLimitError(f"the compressed batch at offset {offset}: {error}") from None
    yield rows, min(next_offset, end_offset)
