"""Batches of any magic to rows an application may see: the reading half of the row API.

Promises the rows that `decode` gives as columns: no control records, no aborted transactions, nothing
outside the range. Small buffers are read by pure Python; large ones by the compiled kernels, where the
package has them and numpy is installed, for about half the time per row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.model import Header, Record, TimestampType
from penstock.records.aborted import AbortedTransactions
from penstock.records.batch import ABORT_MARKER, iter_records, read_marker
from penstock.records.compression.budget import UNPACKED_BYTES_MAX, UNPACKED_RECORDS_MAX, UnpackBudget
from penstock.records.format.batch_header import read_header, split_batches, verify_crc
from penstock.records.legacy import read_message

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.records.columns import BytesColumn, HeadersColumn, RecordColumns

COMPILED_FROM_BYTES = 8 * 1024
"""From this size on the kernels are the faster way, once they are loaded."""

LOAD_FROM_BYTES = 64 * 1024
"""From this size on they are worth loading with numpy, 0.1 s once: clients that fetch so much fetch more."""

_loads_kernels = True

CHUNK_ROWS = 2_048
"""Records that become objects at a time: few enough that the memory of the last ones is warm for the next."""

PIECE_BYTES = 1 << 20
"""Columns decoded at a time on the way to rows: what a processor's cache keeps until they are objects."""

OFFSET_MAX = (1 << 63) - 1
"""No record has this offset: the one after it could not be asked for."""

_DECODE = "penstock.records.decode"

_KINDS = (TimestampType.NONE, TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)
"""Types of timestamps by their numbers, less one."""


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
    """Return (records, offset to read on from) of the whole batches in `buffer`.

    `end_offset` is exclusive; `aborted` lists (producer id, first offset) of aborted transactions,
    as a fetch response does. A partial batch at the end is left out.

    Raises:
        CorruptRecordError: a checksum (if `verify`) or the layout is wrong.
        UnpackLimitError: a compressed batch holds more than `limit_bytes` or `limit_records`.
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
    """Yield (some records, offset to read on from after them) of the whole batches in `buffer`.

    Records are `record_class`. The other arguments are those of `decode_rows`.
    Of what is compressed no more than one batch is unpacked at a time, and records become objects some ten
    thousand at a time. The last piece, which may have no records, says at which offset the buffer ends.

    Raises:
        CorruptRecordError: a checksum (if `verify`) or the layout is wrong; pieces before it were yielded.
        UnpackLimitError: a compressed batch holds more than `limit_bytes` or `limit_records`.
    """
    view = memoryview(buffer)
    if _DECODE in sys.modules:
        is_large = view.nbytes >= COMPILED_FROM_BYTES
    else:
        is_large = view.nbytes >= LOAD_FROM_BYTES and _loads_kernels
    if is_large and has_kernels():
        yield from _from_columns(
            view,
            topic,
            partition,
            start_offset,
            end_offset,
            aborted,
            verify,
            limit_bytes,
            limit_records,
            record_class,
        )
        return
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
        budget = UnpackBudget(limit_bytes, limit_records)
        is_cut = first < start_offset or last >= end_offset
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
                rows += found
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


@contextmanager
def few_rows() -> Iterator[None]:
    """Have kernels that are not loaded yet stay so, in all threads, while the block runs.

    For programs that read a few records of large batches and end.
    """
    global _loads_kernels
    before, _loads_kernels = _loads_kernels, False
    try:
        yield
    finally:
        _loads_kernels = before


@cache
def has_kernels() -> bool:
    """Whether the kernels can be had, and compiled: uncompiled ones are slower than pure Python."""
    if find_spec("numpy") is None:
        return False
    from penstock.records.kernels.compiled import COMPILED

    return COMPILED


def _from_columns(
    view: memoryview,
    topic: str,
    partition: int,
    start_offset: int,
    end_offset: int | None,
    aborted: Iterable[tuple[int, int]],
    verify: bool,
    limit_bytes: int,
    limit_records: int,
    record_class: type[Record],
) -> Iterator[tuple[list[Record], int]]:
    from penstock.records.decode import iter_columns

    next_offset = start_offset
    for columns in iter_columns(
        [view],
        start_offset=start_offset,
        end_offset=end_offset,
        aborted=aborted,
        verify_crcs=verify,
        limit_bytes=limit_bytes,
        limit_records=limit_records,
        batch_bytes=PIECE_BYTES,
        keep_last=True,
    ):
        count, next_offset = columns.row_count, columns.next_offset
        for first in range(0, count - CHUNK_ROWS, CHUNK_ROWS):
            rows = rows_of(columns, topic, partition, first, first + CHUNK_ROWS, record_class)
            yield rows, rows[-1].offset + 1
        first = max(count - 1, 0) // CHUNK_ROWS * CHUNK_ROWS
        yield rows_of(columns, topic, partition, first, count, record_class), next_offset


def rows_of(
    columns: RecordColumns,
    topic: str,
    partition: int,
    first: int = 0,
    last: int | None = None,
    record_class: type[Record] = Record,
) -> list[Record]:
    """Return rows `first` to before `last` (all) of `columns`, all of which must have been decoded.

    Raises:
        ValueError: a column is missing.
    """
    offsets, timestamps, types = columns.offsets, columns.timestamps, columns.timestamp_types
    key, value, headers = columns.key, columns.value, columns.headers
    if (
        offsets is None
        or timestamps is None
        or types is None
        or key is None
        or value is None
        or headers is None
    ):
        raise ValueError("rows need every column")
    from penstock.records.kernels.compiled import records_of

    last = columns.row_count if last is None else last
    if records_of is not None:
        shared = (record_class, topic, partition, _KINDS, first, last, offsets, timestamps, types)
        parts = (
            *_parts(key),
            *_parts(value),
            headers.offsets,
            *_parts(headers.names),
            *_parts(headers.values),
        )
        return records_of(*shared, *parts)
    lists: Iterable[Sequence[Header]] = (
        _header_lists(headers, first, last) if len(headers.names) else repeat(())
    )
    kinds = types[first:last].tolist()
    kind_of_all = _KINDS[kinds[0] + 1] if kinds and kinds.count(kinds[0]) == len(kinds) else None
    fields = zip(
        repeat(topic),
        repeat(partition),
        offsets[first:last].tolist(),
        timestamps[first:last].tolist(),
        repeat(kind_of_all) if kind_of_all is not None else (_KINDS[kind + 1] for kind in kinds),
        _byte_strings(key, first, last),
        _byte_strings(value, first, last),
        lists,
        strict=False,
    )
    return list(map(tuple.__new__, repeat(record_class), fields))


def _parts(column: BytesColumn) -> tuple[object, object, object]:
    """Return the arrays of a column whose validity begins with its first bit."""
    return column.data, column.offsets, b"" if column.validity is None else column.validity


def _header_lists(headers: HeadersColumn, first: int, last: int) -> Iterable[Sequence[Header]]:
    ends = headers.offsets[first : last + 1].tolist()
    begin, end = ends[0], ends[-1]
    name_ends = headers.names.offsets[begin : end + 1].tolist()
    joined = headers.names.data[name_ends[0] : name_ends[-1]].tobytes()
    if joined.isascii():
        text = joined.decode("ascii")
        start = name_ends[0]
        names = [text[a - start : b - start] for a, b in pairwise(name_ends)]
    else:
        names = [(name or b"").decode() for name in _byte_strings(headers.names, begin, end)]
    pairs = list(zip(names, _byte_strings(headers.values, begin, end), strict=True))
    return [pairs[a - begin : b - begin] or () for a, b in pairwise(ends)]


def _byte_strings(column: BytesColumn, first: int, last: int) -> Sequence[bytes | None]:
    """Values `first` to before `last` of a column."""
    if column.null_count == len(column):
        return [None] * (last - first)
    ends = column.offsets[first : last + 1].tolist()
    start = ends[0]
    data = column.data[start : ends[-1]].tobytes()
    found: list[bytes | None] = [data[a - start : b - start] for a, b in pairwise(ends)]
    if column.null_count:
        import numpy as np

        assert column.validity is not None
        bits = np.unpackbits(column.validity, count=len(column), bitorder="little")[first:last]
        for row in np.flatnonzero(bits == 0).tolist():
            found[row] = None
    return found
