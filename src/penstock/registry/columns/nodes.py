"""The tree of output columns of a reader's schema, and the conversion of stored numbers to Arrow arrays.

Every node has columns in the `LoopStore`: one for a number, two for a span of bytes, and one more if the node
may be null. The items of a list form their own group of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.errors import DecodeError
from penstock.records.kernels.compiled import Bytes, Ints
from penstock.registry.columns.span_kernels import copy_spans, read_decimals

NUMBER, DOUBLES, FLOATS, FLAGS, SPAN, DECIMALS, SYMBOLS, STRUCT, LIST, MAP, NULL, JSON_SPAN, MOMENT = range(
    13
)
"""The kinds of `ColumnNode`: each determines how the numbers in a store become an Arrow array."""

NO_COLUMN = -1
COLUMN_BYTES_MAX = (1 << 31) - 1


@dataclass(eq=False)
class ColumnNode:
    """A column of the output, or a nested part of a column.

    `column` is the number of the node's first column in the store, `valid` the number of the column with a
    flag for each row that is not null. `group` is the number of the group of its rows, `items` of the group
    of a list's items.
    """

    kind: int
    type: pa.DataType
    group: int
    column: int = NO_COLUMN
    valid: int = NO_COLUMN
    items: int = NO_COLUMN
    names: tuple[str, ...] = ()
    children: list[ColumnNode] = field(default_factory=list)
    symbols: dict[int, str] = field(default_factory=dict)
    as_text: Callable[[bytes], str] | None = None
    """A function that converts the bytes of a recursive type to JSON text; None for all other types."""

    @property
    def nullable(self) -> bool:
        """True if the column may hold nulls."""
        return self.valid != NO_COLUMN or self.kind == NULL


class ColumnLayout:
    """The list of columns that a loop fills, each in a group of rows, and the bytes of default values."""

    def __init__(self) -> None:
        self.group_of: list[int] = []
        self.groups = 1
        self.constants = bytearray()

    def add(self, group: int, count: int = 1) -> int:
        """Add `count` columns of numbers to a group of rows; return the number of the first column."""
        self.group_of += [group] * count
        return len(self.group_of) - count

    def add_group(self) -> int:
        """Add a group of rows, such as the items of a list; return the group's number."""
        self.groups += 1
        return self.groups - 1

    def constant(self, data: bytes) -> int:
        """Add the bytes of a default value; return their start (negative, unlike a position in the data)."""
        start = -1 - len(self.constants)
        self.constants += data
        return start


class LoopStore:
    """The columns of numbers that a reading loop fills.

    It grows when a group is full, and is cleared for the next rows.
    """

    def __init__(self, layout: ColumnLayout, rows: int) -> None:
        self.group_of = np.array(layout.group_of or [0], dtype=np.int64)
        self.caps = np.full(layout.groups, max(rows, 1), dtype=np.int64)
        self.filled = np.zeros(layout.groups, dtype=np.int64)
        self.saved = np.zeros(layout.groups, dtype=np.int64)
        self.constants = np.frombuffer(bytes(layout.constants) or b"\0", dtype=np.uint8)
        self._lay_out()

    def _lay_out(self) -> None:
        sizes = self.caps[self.group_of]
        self.base = np.zeros(len(sizes), dtype=np.int64)
        np.cumsum(sizes[:-1], out=self.base[1:])
        self.numbers = np.zeros(int(sizes.sum()), dtype=np.int64)

    def grow(self, group: int) -> None:
        """Double the number of rows for which a group has space, and keep the stored numbers."""
        before, base, caps = self.numbers, self.base, self.caps[self.group_of]
        self.caps[group] *= 2
        self._lay_out()
        for column, cap in enumerate(caps):
            self.numbers[self.base[column] : self.base[column] + cap] = before[
                base[column] : base[column] + cap
            ]

    def clear(self) -> None:
        """Remove all rows, but keep the allocated memory for the next rows."""
        for column, group in enumerate(self.group_of.tolist()):
            begin = self.base[column]
            self.numbers[begin : begin + min(self.filled[group] + 1, self.caps[group])] = 0
        self.filled[:] = 0

    def column(self, column: int, group: int) -> Ints:
        """Return the numbers that the loop has stored in a column of a group."""
        begin = self.base[column]
        return self.numbers[begin : begin + self.filled[group]]

    @property
    def size(self) -> int:
        """Return the capacity of the store, in 64-bit numbers."""
        return len(self.numbers)


def to_array(node: ColumnNode, store: LoopStore, data: Bytes) -> pa.Array:
    """Return the Arrow array for a node, made from the numbers that a loop has stored for the node.

    Raises:
        DecodeError: the node has more bytes than an Arrow array can hold.
    """
    count = int(store.filled[node.group])
    mask, nulls = _validity(node, store, count)
    if node.kind == STRUCT:
        children = [to_array(child, store, data) for child in node.children]
        return pa.StructArray.from_buffers(node.type, count, [mask], nulls, 0, children)
    if node.kind == MOMENT:
        seconds, nanos = (store.column(child.column, child.group) for child in node.children)
        micros = seconds * 1_000_000 + nanos // 1_000
        return pa.Array.from_buffers(node.type, count, [mask, pa.py_buffer(micros)], nulls)
    if node.kind in (LIST, MAP):
        return _list(node, store, data, count, mask, nulls)
    if node.kind == NULL:
        return pa.nulls(count)
    numbers = store.column(node.column, node.group)
    if node.kind in (SPAN, JSON_SPAN):
        return _spans(node, store, data, numbers, count, mask, nulls)
    if node.kind == DECIMALS:
        words = np.empty(2 * count, dtype=np.int64)
        sizes = store.column(node.column + 1, node.group)
        read_decimals(data, store.constants, numbers, sizes, count, words)
        return pa.Array.from_buffers(node.type, count, [mask, pa.py_buffer(words)], nulls)
    if node.kind == SYMBOLS:
        return _symbols(node, numbers, count, mask, nulls)
    if node.kind == FLAGS:
        bits = np.packbits(numbers.astype(np.bool_), bitorder="little")
        return pa.Array.from_buffers(node.type, count, [mask, pa.py_buffer(bits)], nulls)
    width = node.type.bit_width
    narrow = numbers.copy() if width == 64 else numbers.astype(np.int32)
    return pa.Array.from_buffers(node.type, count, [mask, pa.py_buffer(narrow)], nulls)


def _validity(node: ColumnNode, store: LoopStore, count: int) -> tuple[pa.Buffer | None, int]:
    if node.valid == NO_COLUMN:
        return None, 0
    flags = store.column(node.valid, node.group) != 0
    nulls = count - int(np.count_nonzero(flags))
    if not nulls:
        return None, 0
    return pa.py_buffer(np.packbits(flags, bitorder="little")), nulls


def _list(
    node: ColumnNode, store: LoopStore, data: Bytes, count: int, mask: pa.Buffer | None, nulls: int
) -> pa.Array:
    ends = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(store.column(node.column, node.group), out=ends[1:])
    if ends[-1] > COLUMN_BYTES_MAX:
        raise DecodeError(
            f"a list column has {ends[-1]:,} items: Arrow holds {COLUMN_BYTES_MAX:,}; read fewer rows"
        )
    offsets = pa.py_buffer(ends.astype(np.int32))
    children = [to_array(child, store, data) for child in node.children]
    if node.kind == MAP:
        entry = pa.struct([node.type.key_field, node.type.item_field])
        children = [pa.StructArray.from_buffers(entry, len(children[0]), [None], 0, 0, children)]
    return pa.Array.from_buffers(node.type, count, [mask, offsets], nulls, 0, children)


def _spans(
    node: ColumnNode,
    store: LoopStore,
    data: Bytes,
    starts: Ints,
    count: int,
    mask: pa.Buffer | None,
    nulls: int,
) -> pa.Array:
    sizes = store.column(node.column + 1, node.group)
    total = int(sizes.sum())
    if total > COLUMN_BYTES_MAX:
        raise DecodeError(f"a column has {total:,} bytes: Arrow holds {COLUMN_BYTES_MAX:,}; read fewer rows")
    ends = np.zeros(count + 1, dtype=np.int32)
    target = np.empty(total, dtype=np.uint8)
    copy_spans(data, store.constants, starts, sizes, count, ends, target)
    if pa.types.is_fixed_size_binary(node.type):
        width = node.type.byte_width
        if total != width * count:  # nulls take no bytes in the store
            whole = np.zeros((count, width), dtype=np.uint8)
            whole[sizes == width] = target.reshape(-1, width)
            target = whole.reshape(-1)
        return pa.Array.from_buffers(node.type, count, [mask, pa.py_buffer(target)], nulls)
    kind = pa.binary() if node.kind == JSON_SPAN else node.type
    buffers: Sequence[pa.Buffer | None] = [mask, pa.py_buffer(ends), pa.py_buffer(target)]
    found = pa.Array.from_buffers(kind, count, buffers, nulls)
    if node.as_text is None:
        return found
    return pa.array([each if each is None else node.as_text(each) for each in found.to_pylist()], node.type)


def _symbols(node: ColumnNode, numbers: Ints, count: int, mask: pa.Buffer | None, nulls: int) -> pa.Array:
    """Convert enum numbers to an array of symbols; a number without a symbol becomes its digits, as ``7``."""
    known = node.symbols
    if all(key == place for place, key in enumerate(known)):
        texts, indices = list(known.values()), numbers
        if count and not (numbers.min() >= 0 and numbers.max() < len(texts)):
            texts, indices = _with_unknown(known, numbers)
    else:
        texts, indices = _with_unknown(known, numbers)
    dictionary = pa.array(texts or [""], pa.string())
    places = pa.Array.from_buffers(pa.int32(), count, [mask, pa.py_buffer(indices.astype(np.int32))], nulls)
    return pa.DictionaryArray.from_arrays(places, dictionary).dictionary_decode()


def _with_unknown(known: dict[int, str], numbers: Ints) -> tuple[list[str], Ints]:
    found, indices = np.unique(numbers, return_inverse=True)
    return [known.get(int(number), str(int(number))) for number in found], indices.astype(np.int64)
