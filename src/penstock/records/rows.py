"""Batches of any magic to rows an application may see: the reading half of the row API.

Promises the rows that `decode` gives as columns: no control records, no aborted transactions, nothing
outside the range. Small buffers are read by pure Python; large ones by the kernels, where numpy and
numba are installed, for about half the time per row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

from penstock.model import Header, Record, TimestampType
from penstock.records.aborted import AbortedTransactions
from penstock.records.batch import (
    ABORT_MARKER,
    DECOMPRESSED_BYTES_MAX,
    decode_batch,
    read_header,
    read_marker,
    split_batches,
    verify_crc,
)
from penstock.records.legacy import read_message

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.records.columns import BytesColumn, HeadersColumn, RecordColumns

COMPILED_FROM_BYTES = 8 * 1024
"""From this size on the kernels are the faster way, once they are loaded."""

LOAD_FROM_BYTES = 64 * 1024
"""From this size on they are worth loading, half a second once: whoever fetches so much fetches more."""

OFFSET_MAX = (1 << 63) - 1
"""Nobody has a record here: the offset after it could not be asked for."""

_DECODE = "penstock.records.decode"


def decode_rows(
    buffer: Buffer,
    topic: str,
    partition: int,
    *,
    start_offset: int = 0,
    end_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    verify: bool = True,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> tuple[list[Record], int]:
    """Return (records, offset to read on from) of the whole batches in `buffer`.

    `end_offset` is exclusive; `aborted` lists (producer id, first offset) of aborted transactions,
    as a fetch response does. A partial batch at the end is left out.

    Raises:
        CorruptRecordError: a checksum (if `verify`) or the layout is wrong, or a batch grows beyond
            `limit_bytes` when decompressed.
    """
    view = memoryview(buffer)
    if view.nbytes >= (COMPILED_FROM_BYTES if _DECODE in sys.modules else LOAD_FROM_BYTES) and _has_kernels():
        return _from_columns(view, topic, partition, start_offset, end_offset, aborted, verify, limit_bytes)
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
        found = decode_batch(view, start, end, topic, partition, verify=verify, limit_bytes=limit_bytes)
        if first < start_offset or last >= end_offset:
            found = [record for record in found if start_offset <= record.offset < end_offset]
        rows += found
    return rows, min(next_offset, end_offset)


@cache
def _has_kernels() -> bool:
    """Whether the kernels can be had, and compiled: uncompiled ones are slower than pure Python."""
    if find_spec("numpy") is None or find_spec("numba") is None:
        return False
    from penstock.records.jit import COMPILED

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
) -> tuple[list[Record], int]:
    from penstock.records.decode import decode_columns

    columns = decode_columns(
        [view],
        start_offset=start_offset,
        end_offset=end_offset,
        aborted=aborted,
        verify_crcs=verify,
        limit_bytes=limit_bytes,
    )
    return rows_of(columns, topic, partition), columns.next_offset


def rows_of(columns: RecordColumns, topic: str, partition: int) -> list[Record]:
    """Return the rows of `columns`, all of which must have been decoded."""
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
    lists: Iterable[Sequence[Header]] = _header_lists(headers) if len(headers.names) else repeat(())
    kinds = types.tolist()
    by_number = {int(kind): kind for kind in TimestampType}
    kind_of_all = by_number[kinds[0]] if kinds and kinds.count(kinds[0]) == len(kinds) else None
    fields = zip(
        repeat(topic),
        repeat(partition),
        offsets.tolist(),
        timestamps.tolist(),
        repeat(kind_of_all) if kind_of_all is not None else map(by_number.__getitem__, kinds),
        _byte_strings(key),
        _byte_strings(value),
        lists,
        strict=False,
    )
    return list(map(tuple.__new__, repeat(Record), fields))


def _header_lists(headers: HeadersColumn) -> Iterable[Sequence[Header]]:
    joined = headers.names.data.tobytes()
    if joined.isascii():
        text = joined.decode("ascii")
        names = [text[begin:end] for begin, end in pairwise(headers.names.offsets.tolist())]
    else:
        names = [(name or b"").decode() for name in _byte_strings(headers.names)]
    pairs = list(zip(names, _byte_strings(headers.values), strict=True))
    return [pairs[begin:end] or () for begin, end in pairwise(headers.offsets.tolist())]


def _byte_strings(column: BytesColumn) -> Sequence[bytes | None]:
    if column.null_count == len(column):
        return [None] * len(column)
    data = column.data.tobytes()
    ends = column.offsets.tolist()
    found: list[bytes | None] = [data[a:b] for a, b in pairwise(ends)]
    if column.null_count:
        import numpy as np

        assert column.validity is not None
        bits = np.unpackbits(column.validity, count=len(column), bitorder="little")
        for row in np.flatnonzero(bits == 0).tolist():
            found[row] = None
    return found
