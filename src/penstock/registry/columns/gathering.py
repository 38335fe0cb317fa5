"""Joins the columns of many batches to one array. Most values are written directly to their final position.

Top-level columns of numbers and text have room for all rows from the start. Every other column is an array
for each batch; these arrays are joined at the end.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.errors import DecodeError
from penstock.records.kernels.compiled import Bytes, Ints
from penstock.registry.columns.nodes import (
    COLUMN_BYTES_MAX,
    DOUBLES,
    FLAGS,
    FLOATS,
    NO_COLUMN,
    NUMBER,
    SPAN,
    STRUCT,
    ColumnNode,
    LoopStore,
    to_array,
)
from penstock.registry.columns.span_kernels import copy_spans

MORE = 1.1
"""The factor by which a new text buffer is larger than the size estimated from the batches so far."""


class Gathering:
    """Builds one Arrow array for a reader's schema from many batches of rows."""

    def __init__(self, root: ColumnNode, rows: int) -> None:
        """Prepare columns for the tree of columns below `root`, and for at most `rows` rows."""
        self._root = root
        self._count = 0
        is_plain = root.kind == STRUCT and root.valid == NO_COLUMN
        self._parts = [_part(child, rows) for child in root.children] if is_plain else None
        self._whole = _Joined(root)

    def add(self, store: LoopStore, data: Bytes) -> None:
        """Add the rows that a reading loop has stored in its `LoopStore`.

        Raises:
            DecodeError: a column has more bytes than an Arrow array can hold.
        """
        count = int(store.filled[self._root.group])
        if not count:
            return
        if self._parts is None:
            self._whole.add(store, data, 0, count)
        else:
            for part in self._parts:
                part.add(store, data, self._count, count)
        self._count += count

    def array(self) -> pa.Array:
        """Return one Arrow array with the rows of all batches."""
        if not self._count:
            return pa.nulls(0, self._root.type)
        if self._parts is None:
            return self._whole.array(self._count)
        children = [part.array(self._count) for part in self._parts]
        return pa.StructArray.from_buffers(self._root.type, self._count, [None], 0, 0, children)


class _Part(Protocol):
    """The interface of an output column under construction, to which batches of rows are added."""

    def add(self, store: LoopStore, data: Bytes, at: int, count: int) -> None:
        """Add the next batch, which has `count` rows; its first row becomes row `at` of the column."""

    def array(self, count: int) -> pa.Array:
        """Return the first `count` rows of the column as an Arrow array."""


def _part(node: ColumnNode, rows: int) -> _Part:
    if node.kind in (NUMBER, DOUBLES, FLOATS, FLAGS):
        return _Numbers(node, rows)
    if node.kind == SPAN and not pa.types.is_fixed_size_binary(node.type) and node.as_text is None:
        return _Spans(node, rows)
    return _Joined(node)


class _Validity:
    """The validity flags of a column under construction: one per row, False for a null."""

    def __init__(self, node: ColumnNode, rows: int) -> None:
        self._node = node
        self._flags = None if node.valid == NO_COLUMN else np.empty(rows, dtype=np.bool_)

    def add(self, store: LoopStore, at: int, count: int) -> None:
        if self._flags is not None:
            self._flags[at : at + count] = store.column(self._node.valid, self._node.group)

    def mask(self, count: int) -> tuple[pa.Buffer | None, int]:
        """Return Arrow's validity bitmap, or None if no row is null, and the number of nulls."""
        if self._flags is None:
            return None, 0
        flags = self._flags[:count]
        nulls = count - int(np.count_nonzero(flags))
        return (pa.py_buffer(np.packbits(flags, bitorder="little")), nulls) if nulls else (None, 0)


class _Numbers:
    """A column of numbers or booleans under construction, stored in the bit width of its Arrow type."""

    def __init__(self, node: ColumnNode, rows: int) -> None:
        self._node = node
        self._validity = _Validity(node, rows)
        width = np.int64 if node.type.bit_width == 64 else np.int32
        self._values: Any = np.empty(rows, dtype=np.bool_ if node.kind == FLAGS else width)

    def add(self, store: LoopStore, data: Bytes, at: int, count: int) -> None:
        self._values[at : at + count] = store.column(self._node.column, self._node.group)
        self._validity.add(store, at, count)

    def array(self, count: int) -> pa.Array:
        values: Any = self._values[:count]
        if self._node.kind == FLAGS:
            values = np.packbits(values, bitorder="little")
        mask, nulls = self._validity.mask(count)
        return pa.Array.from_buffers(self._node.type, count, [mask, pa.py_buffer(values)], nulls)


class _Spans:
    """A column of text or bytes under construction, whose values are stored one after another."""

    def __init__(self, node: ColumnNode, rows: int) -> None:
        self._node = node
        self._rows = rows
        self._validity = _Validity(node, rows)
        self._ends = np.empty(rows + 1, dtype=np.int32)
        self._ends[0] = 0
        self._target = np.empty(0, dtype=np.uint8)

    def add(self, store: LoopStore, data: Bytes, at: int, count: int) -> None:
        sizes: Ints = store.column(self._node.column + 1, self._node.group)
        used = int(self._ends[at])
        total = used + int(sizes.sum())
        if total > COLUMN_BYTES_MAX:
            raise DecodeError(
                f"a column has {total:,} bytes: Arrow holds {COLUMN_BYTES_MAX:,}; read fewer rows"
            )
        if total > len(self._target):
            more = np.empty(max(total, int(MORE * total * self._rows / (at + count))), dtype=np.uint8)
            more[:used] = self._target[:used]
            self._target = more
        starts = store.column(self._node.column, self._node.group)
        copy_spans(data, store.constants, starts, sizes, count, self._ends[at:], self._target)
        self._validity.add(store, at, count)

    def array(self, count: int) -> pa.Array:
        mask, nulls = self._validity.mask(count)
        ends = self._ends[: count + 1]
        target = self._target[: ends[-1]]
        buffers = [mask, pa.py_buffer(ends), pa.py_buffer(target)]
        return pa.Array.from_buffers(self._node.type, count, buffers, nulls)


class _Joined:
    """A column of any other type under construction: one array per batch, joined at the end."""

    def __init__(self, node: ColumnNode) -> None:
        self._node = node
        self._arrays: list[pa.Array] = []

    def add(self, store: LoopStore, data: Bytes, at: int, count: int) -> None:
        self._arrays.append(to_array(self._node, store, data))

    def array(self, count: int) -> pa.Array:
        return self._arrays[0] if len(self._arrays) == 1 else pa.concat_arrays(self._arrays)
