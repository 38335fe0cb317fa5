"""The growing arrays that `decode` fills with records, and their conversion to columns.

Memory is proportional to the data: arrays have room for the decoded records, and for an estimate of the
records that follow, computed from the decoded fraction of the input. A number in the data alone never
determines a size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import CorruptRecordError, DecodeError
from penstock.records.columns import COLUMN_BYTES_MAX, BytesColumn, HeadersColumn, RecordColumns, cut, empty
from penstock.records.format.batch_header import RECORD_BYTES_MIN
from penstock.records.kernels import decode_kernels as kernels
from penstock.records.kernels.compiled import Bytes, Int32s, Ints

_GUESS_MARGIN = 1.02
_GUESS_FACTOR_MAX = 16
_LARGE = 1 << 24

_PROBLEMS = {
    kernels.CUT: "a record is longer than what is left of its batch",
    kernels.BAD_MAGIC: "unknown magic, or another one than its wrapper's",
    kernels.BAD_LENGTH: "an impossible length",
    kernels.BAD_COUNT: "an impossible offset or number of records",
    kernels.BAD_RECORD: "a record's fields do not fit into its length",
    kernels.TRAILING: "bytes are left over behind a record",
    kernels.BAD_HEADERS: "a record's headers do not fit into its length",
}


def problem(outcome: int, where: int | str) -> CorruptRecordError:
    """Return the exception for a kernel's error code `outcome`; `where` names the batch in the message."""
    return CorruptRecordError(f"batch at {where}: {_PROBLEMS[outcome]}")


def _likely(needed: int, done: float, at_most: int) -> int:
    """Return the estimated final size of an array, if the fraction `done` of the input took `needed` entries.

    The remaining input may differ, so an estimate above `at_most` is reached in several steps.
    """
    likely = int(needed / max(done, 1e-6) * _GUESS_MARGIN) + 64
    step = needed * (_GUESS_FACTOR_MAX if needed < _LARGE else 2)
    return max(needed, min(likely, max(step, at_most)))


def _room(array: NDArray[Any], used: int, needed: int, done: float, at_most: int = 0) -> NDArray[Any]:
    """Return `array` if it has at least `needed` entries, else a larger copy with the size from `_likely`."""
    return array if needed <= len(array) else _enlarged(array, used, _likely(needed, done, at_most))


def _enlarged(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    larger = empty(size, array.dtype.type)
    if used:
        larger[:used] = array[:used]
    return larger


def _too_large() -> DecodeError:
    return DecodeError(
        f"a column of more than {COLUMN_BYTES_MAX} bytes: decode in pieces, as iter_columns does"
    )


class _GrowingField:
    """The growing column of keys or values: a byte per row (0 for null), end positions, and data bytes."""

    __slots__ = ("data", "ends", "marks")

    def __init__(self, is_wanted: bool) -> None:
        self.marks: Bytes = np.empty(int(is_wanted), dtype=np.uint8)
        self.ends: Int32s = np.zeros(2 * is_wanted, dtype=np.int32)
        self.data: Bytes = np.empty(0, dtype=np.uint8)

    def make_room(self, rows: int, needed: int, done: float, at_most: int) -> None:
        self.marks = _room(self.marks, rows, needed, done, at_most)
        self.ends = _room(self.ends, rows + 1, needed + 1, done, at_most)

    def make_bytes_room(self, used: int, size: int) -> None:
        """Enlarge the array of data bytes to at least `size` bytes; copy its first `used` bytes."""
        if size > len(self.data):
            self.data = _enlarged(self.data, used, min(size, COLUMN_BYTES_MAX))

    def column(self, rows: int, used: int, nulls: int) -> BytesColumn:
        validity = np.packbits(self.marks[:rows], bitorder="little") if nulls else None
        return BytesColumn(cut(self.data, used), cut(self.ends, rows + 1), validity, nulls)


class _GrowingBytes:
    """A growing column of byte strings: positions in the source, end positions, and bytes copied so far."""

    __slots__ = ("at", "data", "ends", "used")

    def __init__(self, is_wanted: bool) -> None:
        self.at: Int32s = np.empty(int(is_wanted), dtype=np.int32)
        self.ends: Int32s = np.zeros(2 * is_wanted, dtype=np.int32)
        self.data: Bytes = np.empty(0, dtype=np.uint8)
        self.used = 0

    def make_room(self, rows: int, needed: int, done: float) -> None:
        self.at = _room(self.at, rows, needed, done)
        self.ends = _room(self.ends, rows + 1, needed + 1, done)

    def gather(self, source: Bytes, first: int, last: int, size: int, done: float) -> None:
        """Copy the bytes of rows `first` to before `last`; the column then holds `size` bytes.

        Raises:
            DecodeError: the column grows beyond `COLUMN_BYTES_MAX`.
        """
        if size > COLUMN_BYTES_MAX:
            raise _too_large()
        self.data = _room(self.data, self.used, size, done)
        kernels.gather(source, self.at, self.ends, first, last, self.data)
        self.used = size

    def column(self, rows: int, nulls: int) -> BytesColumn:
        validity = np.packbits(self.at[:rows] >= 0, bitorder="little") if nulls else None
        return BytesColumn(cut(self.data, self.used), cut(self.ends, rows + 1), validity, nulls)


class GrowingColumns:
    """The rows decoded so far, in the requested columns (names as in `model.COLUMN_NAMES`).

    The room for keys and values is estimated from the decoded fraction of the input, and from the fraction of
    keys and values in the records' bytes: in the rows so far, or in `before`, the columns yielded before
    these. `input_bytes` is the size of the whole input; 0 if it is unknown.
    """

    def __init__(
        self, columns: Collection[str], before: GrowingColumns | None = None, input_bytes: int = 0
    ) -> None:
        self._columns = columns
        self._input_bytes = input_bytes
        self._spans: int = 0
        """The size in bytes of the encoded records that were added, including their lengths and offsets."""
        self._before = before if before is not None and before._spans else None
        self._done = 0.0
        self.state: Ints = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
        self._offsets: Ints = np.empty(int("offset" in columns), dtype=np.int64)
        self._timestamps: Ints = np.empty(int("timestamp" in columns), dtype=np.int64)
        self._types: Int32s = np.empty(int("timestampType" in columns), dtype=np.int32)
        self._key = _GrowingField("key" in columns)
        self._value = _GrowingField("value" in columns)
        self._has_headers = "headers" in columns
        self._headers_at: Int32s = np.empty(int(self._has_headers), dtype=np.int32)
        self._headers_stop: Int32s = np.empty(int(self._has_headers), dtype=np.int32)
        self._header_ends: Int32s = np.zeros(2 * self._has_headers, dtype=np.int32)
        self._names = _GrowingBytes(self._has_headers)
        self._header_values = _GrowingBytes(self._has_headers)
        self._capacity = 0

    @property
    def row_count(self) -> int:
        return int(self.state[kernels.ROWS])

    @property
    def size_bytes(self) -> int:
        """The approximate size of the columns: keys, values, headers, and 28 bytes a row."""
        state = self.state
        return int(
            state[kernels.KEY_BYTES]
            + state[kernels.VALUE_BYTES]
            + state[kernels.NAME_BYTES]
            + state[kernels.HEADER_VALUE_BYTES]
            + 28 * state[kernels.ROWS]
        )

    def likely_size(self, spans: int, records: int) -> int:
        """Estimate the bytes that `records` more records, encoded in `spans` bytes, add to `size_bytes`."""
        like = self if self._spans else self._before
        if like is not None:
            return spans * like.size_bytes // like._spans
        has_bytes = self._has_headers or len(self._key.marks) or len(self._value.marks)
        return 28 * records + (spans - RECORD_BYTES_MIN * records if has_bytes else 0)

    def take(
        self,
        scan: Callable[..., int],
        data: Bytes,
        table: Ints,
        lines: int,
        records: int,
        first_offset: int,
        end_offset: int,
        spans: int,
        done: float,
    ) -> None:
        """Add the rows of the first `lines` batches in `table`; the kernel `scan` decodes them from `data`.

        The batches have at most `records` records in `spans` bytes. `done` is the fraction of the input, or
        of the part to yield, that has been decoded after this call.

        Raises:
            CorruptRecordError: a batch does not follow the format.
            DecodeError: a column grows beyond `COLUMN_BYTES_MAX`.
        """
        first = self.row_count
        self._make_room(first, first + records, done)
        self._make_bytes_room(spans, records, done)
        outcome = self._call(scan, data, table, lines, first_offset, end_offset)
        while outcome == kernels.FULL:
            self._make_more_room(first, records, done)
            outcome = self._call(scan, data, table, lines, first_offset, end_offset)
        if outcome != kernels.OK:
            raise problem(outcome, f"offset {table[self.state[kernels.FAILED_LINE], kernels.BASE_OFFSET]}")
        self._done = done
        self._spans += spans
        if self._has_headers:
            self._take_headers(data, first, self.row_count, done)

    def _call(
        self,
        scan: Callable[..., int],
        data: Bytes,
        table: Ints,
        lines: int,
        first_offset: int,
        end_offset: int,
    ) -> int:
        return scan(
            data,
            table,
            lines,
            first_offset,
            end_offset,
            self._offsets,
            self._timestamps,
            self._types,
            self._key.marks,
            self._key.ends,
            self._key.data,
            self._value.marks,
            self._value.ends,
            self._value.data,
            self._headers_at,
            self._headers_stop,
            self._header_ends,
            self.state,
        )

    def _make_room(self, rows: int, needed: int, done: float) -> None:
        if needed <= self._capacity:
            return
        rows_max = self._input_bytes // RECORD_BYTES_MIN
        if len(self._offsets):
            self._offsets = _room(self._offsets, rows, needed, done, rows_max)
        if len(self._timestamps):
            self._timestamps = _room(self._timestamps, rows, needed, done, rows_max)
        if len(self._types):
            self._types = _room(self._types, rows, needed, done, rows_max)
        for column in (self._key, self._value):
            if len(column.marks):
                column.make_room(rows, needed, done, rows_max)
        if self._has_headers:
            self._headers_at = _room(self._headers_at, rows, needed, done, rows_max)
            self._headers_stop = _room(self._headers_stop, rows, needed, done, rows_max)
            self._header_ends = _room(self._header_ends, rows + 1, needed + 1, done, rows_max)
        self._capacity = needed

    def _make_bytes_room(self, spans: int, records: int, done: float) -> None:
        """Enlarge the arrays of keys and values to their estimated sizes, before a kernel fills them."""
        like = self if self._spans else self._before
        most = max(spans - RECORD_BYTES_MIN * records, 0)
        for field, used_at in ((self._key, kernels.KEY_BYTES), (self._value, kernels.VALUE_BYTES)):
            if not len(field.marks):
                continue
            used = int(self.state[used_at])
            share = 1.0 if like is None else int(like.state[used_at]) / like._spans
            needed = used + min(int(spans * share), most)
            if needed > len(field.data):
                field.make_bytes_room(used, _likely(needed, done, self._input_bytes))

    def _make_more_room(self, first: int, records: int, done: float) -> None:
        """Enlarge arrays that were too small for a record, for this record and an estimate of later ones."""
        state = self.state
        share = max((self.row_count - first) / max(records, 1), 1e-3)
        for field, used_at, room_at in (
            (self._key, kernels.KEY_BYTES, kernels.KEY_ROOM),
            (self._value, kernels.VALUE_BYTES, kernels.VALUE_ROOM),
        ):
            if not len(field.marks):
                continue
            needed = int(state[room_at])
            if needed > COLUMN_BYTES_MAX:
                raise _too_large()
            if needed > len(field.data):
                now = self._done + (done - self._done) * share
                field.make_bytes_room(int(state[used_at]), _likely(needed, now, self._input_bytes))

    def _take_headers(self, data: Bytes, first: int, last: int, done: float) -> None:
        begin, end = int(self._header_ends[first]), int(self.state[kernels.HEADERS])
        if end == begin:
            return
        self._names.make_room(begin, end, done)
        self._header_values.make_room(begin, end, done)
        outcome = kernels.scan_headers(
            data,
            self._headers_at,
            self._headers_stop,
            self._header_ends,
            first,
            last,
            self._names.at,
            self._names.ends,
            self._header_values.at,
            self._header_values.ends,
            self.state,
        )
        if outcome != kernels.OK:
            raise problem(outcome, f"row {first} and following")
        self._names.gather(data, begin, end, int(self.state[kernels.NAME_BYTES]), done)
        self._header_values.gather(data, begin, end, int(self.state[kernels.HEADER_VALUE_BYTES]), done)

    def finish(self, next_offset: int) -> RecordColumns:
        """Return the rows as columns. They share the arrays of this object, so add nothing afterwards."""
        state, rows, columns = self.state, self.row_count, self._columns
        headers = None
        if self._has_headers:
            count = int(state[kernels.HEADERS])
            headers = HeadersColumn(
                cut(self._header_ends, rows + 1),
                with_valid_names(self._names.column(count, 0)),
                self._header_values.column(count, int(state[kernels.HEADER_VALUE_NULLS])),
            )
        return RecordColumns(
            rows,
            offsets=cut(self._offsets, rows) if "offset" in columns else None,
            timestamps=cut(self._timestamps, rows) if "timestamp" in columns else None,
            timestamp_types=cut(self._types, rows) if "timestampType" in columns else None,
            key=self._field(self._key, kernels.KEY_BYTES, kernels.KEY_NULLS) if "key" in columns else None,
            value=(
                self._field(self._value, kernels.VALUE_BYTES, kernels.VALUE_NULLS)
                if "value" in columns
                else None
            ),
            headers=headers,
            next_offset=next_offset,
        )

    def _field(self, field: _GrowingField, used_at: int, nulls_at: int) -> BytesColumn:
        return field.column(self.row_count, int(self.state[used_at]), int(self.state[nulls_at]))


def with_valid_names(names: BytesColumn) -> BytesColumn:
    """Return header names with U+FFFD for bytes that are not UTF-8, because Arrow strings must be UTF-8."""
    if not len(names.data) or names.data.max() < 0x80:
        return names
    starts = names.offsets[:-1][names.offsets[:-1] < len(names.data)]
    try:
        names.data.tobytes().decode()
    except UnicodeDecodeError:
        pass
    else:
        if not ((names.data[starts] & 0xC0) == 0x80).any():
            return names  # valid as a whole, and no name begins inside a character
    repaired = [(name or b"").decode(errors="replace").encode() for name in names.to_list()]
    offsets = np.zeros(len(repaired) + 1, dtype=np.int32)
    np.cumsum([len(name) for name in repaired], out=offsets[1:])
    return BytesColumn(np.frombuffer(b"".join(repaired), dtype=np.uint8), offsets)
