"""Encodes columns as batches of magic 2, with compiled kernels.

There are two passes over the rows: the first finds the size of every record and the end of every batch, the
second writes each record to its final position. Python code only does the work per batch: header,
compression, checksum.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import EncodeError
from penstock.model import TimestampType
from penstock.records.columns import NO_BYTES, BytesColumn, RecordColumns, empty
from penstock.records.compression.codecs import CompressionCodec, compress
from penstock.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_BYTES,
    LOG_APPEND_BIT,
    TRANSACTIONAL_BIT,
    pack_header,
)
from penstock.records.format.crc import crc32c
from penstock.records.kernels import encode_kernels as kernels
from penstock.records.kernels.compiled import Bytes, Int32s, Ints

BATCH_BYTES_MAX = 1_000_000
"""The default maximum of a batch's bytes before compression: below the usual limit of brokers."""

_TABLE_LINES = 1024
_NO_INT32S: Int32s = np.empty(0, dtype=np.int32)
_NO_INTS: Ints = np.empty(0, dtype=np.int64)
_SEQUENCE_MASK = 0x7FFFFFFF


def encode_columns(
    columns: RecordColumns,
    *,
    rows: Ints | None = None,
    codec: int = CompressionCodec.NONE,
    level: int | None = None,
    batch_bytes_max: int = BATCH_BYTES_MAX,
    base_offset: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    is_transactional: bool = False,
    partition_leader_epoch: int = -1,
    has_crc: bool = True,
) -> list[memoryview]:
    """Encode rows of `columns` as batches of at most `batch_bytes_max` bytes each before compression.

    A record larger than that gets a batch of its own. `rows` are the indices of the rows to write, in that
    order (default: all). If the key or value column is None, all its values are null; if the headers are
    None, all are empty. Offsets count from 0 in every batch, as producers send them, or from `base_offset`
    through all batches; sequence numbers count from `base_sequence` through all batches.

    The batches are writable views; uncompressed ones share one block of memory. Without `has_crc` their
    checksums are 0, and the caller computes them once the bytes are final.

    Raises:
        EncodeError: timestamps are missing, an index is out of range, a record has 2 GiB, or a codec
            or level does not exist.
    """
    timestamps = columns.timestamps
    if timestamps is None:
        raise EncodeError("records need timestamps: fill the column, with -1 where there is none")
    if rows is None:
        row_count, rows = columns.row_count, _NO_INTS
    else:
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        row_count = len(rows)
        if row_count and not (rows.min() >= 0 and rows.max() < columns.row_count):
            raise EncodeError(f"a row index outside 0..{columns.row_count - 1}")
    if not row_count:
        return []
    source = _Source(columns, timestamps, rows, row_count)
    attributes = (
        codec
        | (LOG_APPEND_BIT if timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if is_transactional else 0)
    )
    batches: list[memoryview] = []
    offset, sequence = base_offset or 0, base_sequence
    for batch, count, time_base, time_max in source.batches(batch_bytes_max):
        if codec:
            body = compress(codec, batch.data[HEADER_BYTES:], level)
            batch = np.empty(HEADER_BYTES + len(body), dtype=np.uint8)
            batch.data[HEADER_BYTES:] = body
        pack_header(
            batch.data,
            base_offset=offset,
            partition_leader_epoch=partition_leader_epoch,
            attributes=attributes,
            record_count=count,
            base_timestamp=time_base,
            max_timestamp=time_max,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )
        if has_crc:
            checksum = crc32c(batch[ATTRIBUTES_POSITION:].data)
            batch.data[CRC_POSITION:ATTRIBUTES_POSITION] = checksum.to_bytes(4, "big")
        batches.append(batch.data)
        if base_offset is not None:
            offset += count
        if sequence >= 0:
            sequence = (sequence + count) & _SEQUENCE_MASK
    return batches


class _Source:
    """The columns to encode, as arrays in the order of the kernels' parameters."""

    def __init__(self, columns: RecordColumns, timestamps: Ints, rows: Ints, row_count: int) -> None:
        self._rows = _read_only(rows)
        self._row_count = row_count
        self._timestamps = _read_only(np.ascontiguousarray(timestamps, dtype=np.int64))
        self._key = _arrays(columns.key)
        self._value = _arrays(columns.value)
        headers = columns.headers
        if headers is None or not len(headers.names):
            self._header_ends, self._names, self._contents = _NO_HEADERS
        else:
            self._header_ends = _read_only(headers.offsets)
            self._names, self._contents = _arrays(headers.names), _arrays(headers.values)

    def batches(self, batch_bytes_max: int) -> list[tuple[Bytes, int, int, int]]:
        """Return a list of (header space and records, record count, base and latest timestamp) per batch."""
        bodies: Int32s = empty(self._row_count, np.int32)
        tables = self._plan(batch_bytes_max, bodies)
        sizes = [table[:, kernels.BYTES] + HEADER_BYTES for table in tables]
        target: Bytes = empty(int(sum(int(size.sum()) for size in sizes)), np.uint8)
        position = 0
        found: list[tuple[Bytes, int, int, int]] = []
        for table in tables:
            start = position
            position = kernels.write_batches(
                target,
                position,
                table,
                len(table),
                self._rows,
                bodies,
                self._timestamps,
                *self._key,
                *self._value,
                self._header_ends,
                self._names[0],
                self._names[1],
                *self._contents,
            )
            for _, count, size, time_base, time_max in table.tolist():
                end = start + HEADER_BYTES + size
                found.append((target[start:end], count, time_base, time_max))
                start = end
        return found

    def _plan(self, batch_bytes_max: int, bodies: Int32s) -> list[Ints]:
        state: Ints = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
        tables: list[Ints] = []
        while state[kernels.NEXT] < self._row_count:
            table: Ints = np.empty(
                (min(self._row_count, _TABLE_LINES), kernels.TABLE_COLUMNS), dtype=np.int64
            )
            too_large = kernels.plan_batches(
                self._rows,
                self._row_count,
                batch_bytes_max,
                self._timestamps,
                *self._key[1:],
                *self._value[1:],
                self._header_ends,
                self._names[1],
                *self._contents[1:],
                bodies,
                table,
                state,
            )
            if too_large >= 0:
                raise EncodeError(f"the record in row {too_large} is too large for a batch")
            tables.append(table[: state[kernels.LINES]])
        return tables


_Number = TypeVar("_Number", np.uint8, np.int32, np.int64)
_Arrays = tuple[Bytes, Int32s, Bytes, int]


def _read_only(array: NDArray[_Number]) -> NDArray[_Number]:
    """Return a read-only view of the array, as Arrow's arrays are, so that kernels see one array type."""
    view = array[:]
    view.flags.writeable = False
    return view


def _arrays(column: BytesColumn | None) -> _Arrays:
    """Return a column's (data, ends, validity bitmap, bit offset in the bitmap); empty arrays for None."""
    if column is None:
        return _NOTHING
    validity = NO_BYTES if column.validity is None else column.validity
    return _read_only(column.data), _read_only(column.offsets), _read_only(validity), column.validity_offset


_NOTHING: _Arrays = (_read_only(NO_BYTES), _read_only(_NO_INT32S), _read_only(NO_BYTES), 0)
_NO_HEADERS = (_read_only(_NO_INT32S), _NOTHING, _NOTHING)
