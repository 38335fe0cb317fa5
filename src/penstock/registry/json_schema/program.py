"""Compiles the shape of JSON values to the tables that control `read_json`, the loop that reads values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.errors import DecodeError
from penstock.records.kernels.compiled import Bytes, Ints
from penstock.registry.columns import json_kernel as kernel
from penstock.registry.columns import nodes
from penstock.registry.columns.nodes import ColumnLayout, ColumnNode, LoopStore, to_array
from penstock.registry.columns.number_kernels import POWERS
from penstock.registry.json_schema.shapes import (
    BOOLEAN,
    INTEGER,
    LIST,
    MAP,
    NOTHING,
    NUMBER,
    OBJECT,
    STRING,
    TEXT,
    JsonShape,
)

ROWS = 1 << 13
"""The number of rows that are read before they are converted to Arrow arrays: so many fit into a CPU
cache.
"""

STORE_NUMBERS = 1 << 21
"""The initial capacity of a store in 64-bit numbers. If there are many columns, it fills before `ROWS` rows
are read.
"""

STORE_NUMBERS_MAX = 1 << 25
"""The capacity of a store, in 64-bit numbers, at which the rows read so far are converted to Arrow arrays. It
takes 256 MiB.
"""

# How the loop reads a value, how it is stored, and in how many numbers.
_SCALARS = {
    INTEGER: (kernel.INTEGER, nodes.NUMBER, 1),
    NUMBER: (kernel.NUMBER, nodes.DOUBLES, 1),
    STRING: (kernel.STRING, nodes.SPAN, 2),
    BOOLEAN: (kernel.BOOLEAN, nodes.FLAGS, 1),
    TEXT: (kernel.TEXT, nodes.JSON_SPAN, 2),
    NOTHING: (kernel.NOTHING, nodes.NULL, 0),
}


class RowChunk(NamedTuple):
    """Some decoded rows: an array of their values, and their indices `rows`.

    `odd` are the indices of the rows that Python's parser must read instead of the loop.
    """

    array: pa.Array
    rows: Ints
    odd: Ints


class JsonProgram:
    """The tree of columns for a shape of JSON values, and the tables that control how the loop fills them."""

    def __init__(self, shape: JsonShape) -> None:
        """Allocate columns and make tables for a shape."""
        self.layout = ColumnLayout()
        self._nodes: list[list[int]] = []
        self._fields: list[list[int]] = []
        self._slots: list[int] = []
        self._names = bytearray()
        self._depth = 0
        self.root, _ = self._node(shape, 0, 1)
        self.root.valid = self._nodes[0][kernel.VALID] = nodes.NO_COLUMN
        self.nodes = np.array(self._nodes, dtype=np.int64).reshape(-1)
        self.fields = np.array(self._fields or [[0] * kernel.FIELD], dtype=np.int64).reshape(-1)
        self.slots = np.array(self._slots or [-1], dtype=np.int64)
        self.names = np.frombuffer(bytes(self._names) or b"\0", dtype=np.uint8)
        self.stack_size = (self._depth + 1) * kernel.FRAME_NUMBERS

    def _node(self, shape: JsonShape, group: int, depth: int) -> tuple[ColumnNode, int]:
        """Add a column node for a shape; return the node and its position in the table of nodes."""
        self._depth = max(self._depth, depth)
        entry = [nodes.NO_COLUMN] * kernel.NODE
        place = len(self._nodes) * kernel.NODE
        self._nodes.append(entry)
        entry[kernel.GROUP] = group
        if shape.kind in _SCALARS:
            entry[kernel.KIND], stored, width = _SCALARS[shape.kind]
            node = ColumnNode(stored, shape.type, group)
            if width:
                node.column = entry[kernel.COLUMN] = self.layout.add(group, width)
            if shape.kind == TEXT:
                node.as_text = _as_text
        elif shape.kind == OBJECT:
            entry[kernel.KIND] = kernel.OBJECT
            node = ColumnNode(nodes.STRUCT, shape.type, group)
            found = [(name, self._node(child, group, depth + 1)) for name, child in shape.children]
            node.children = [child for _, (child, _) in found]
            self._object(entry, [(name, child) for name, (_, child) in found])
        else:
            self._items(shape, group, depth, entry)
            node = self._items_node
        if shape.kind != NOTHING:
            node.valid = entry[kernel.VALID] = self.layout.add(group)
        return node, place

    def _items(self, shape: JsonShape, group: int, depth: int, entry: list[int]) -> None:
        items = self.layout.add_group()
        kind = kernel.LIST if shape.kind == LIST else kernel.MAP
        sizes = self.layout.add(group)
        entry[kernel.KIND], entry[kernel.COLUMN], entry[kernel.ITEMS] = kind, sizes, items
        children = []
        if shape.kind == MAP:
            entry[kernel.SLOTS] = self.layout.add(items, 2)
            children.append(ColumnNode(nodes.SPAN, pa.string(), items, entry[kernel.SLOTS]))
        child, entry[kernel.CHILD] = self._node(shape.children[0][1], items, depth + 1)
        children.append(child)
        stored = nodes.LIST if shape.kind == LIST else nodes.MAP
        self._items_node = ColumnNode(stored, shape.type, group, sizes, items=items, children=children)

    def _object(self, entry: list[int], children: list[tuple[str, int]]) -> None:
        """Add the properties of a JSON object to the tables."""
        first = len(self._fields)
        entry[kernel.CHILD], entry[kernel.COUNT] = first, len(children)
        size = 2
        while size < 2 * len(children):
            size *= 2
        entry[kernel.SLOTS], entry[kernel.MASK] = len(self._slots), size - 1
        slots = [-1] * size
        for number, (name, child) in enumerate(children):
            data = name.encode()
            word = int.from_bytes((data + b'"')[:8], "little")
            mask = (1 << (8 * min(len(data) + 1, 8))) - 1
            self._fields.append([len(self._names), len(data), child, _signed(word), _signed(mask)])
            self._names += data
            array = np.frombuffer(data, dtype=np.uint8)
            slot = kernel.name_hash(array, 0, len(data)) & (size - 1)
            while slots[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            slots[slot] = first + number
        self._slots += slots

    def read(self, data: Bytes, starts: Ints, ends: Ints) -> Iterator[RowChunk]:
        """Yield chunks of rows, some thousands at a time.

        Raises:
            DecodeError: one value has more items than memory allows, or a column more bytes than Arrow can
                hold.
        """
        count = len(starts)
        reasons = np.zeros(count, dtype=np.uint8)
        seen = np.zeros(len(self.fields) // kernel.FIELD, dtype=np.int64)
        stack = np.zeros(self.stack_size, dtype=np.int64)
        state = np.zeros(2, dtype=np.int64)
        rows = max(min(ROWS, count, STORE_NUMBERS // (len(self.layout.group_of) + 1)), 1)
        store = LoopStore(self.layout, rows)
        row = 0
        while row < count:
            last = min(row + rows, count)
            begin = row
            store.clear()
            state[kernel.SCRATCH] = 0
            store.constants = np.empty(int((ends[row:last] - starts[row:last]).sum()) + 1, dtype=np.uint8)
            while row < last:
                row, full = kernel.read_json(
                    data,
                    starts[:last],
                    ends[:last],
                    row,
                    self.nodes,
                    self.fields,
                    self.names,
                    self.slots,
                    POWERS,
                    store.base,
                    store.caps,
                    store.group_of,
                    store.numbers,
                    store.filled,
                    store.saved,
                    seen,
                    stack,
                    store.constants,
                    state,
                    reasons,
                )
                if full >= 0:
                    if store.size > STORE_NUMBERS_MAX:
                        if row == begin:
                            raise DecodeError("one value has more items than memory allows for a batch")
                        break
                    store.grow(full)
            is_read = reasons[begin:row] == 0
            yield RowChunk(
                to_array(self.root, store, data),
                begin + np.flatnonzero(is_read),
                begin + np.flatnonzero(~is_read),
            )
            if store.size > STORE_NUMBERS_MAX:  # the next rows may need other groups
                store = LoopStore(self.layout, rows)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _as_text(data: bytes) -> str:
    return json.dumps(json.loads(data), ensure_ascii=False)


def is_readable(shape: JsonShape) -> bool:
    """Return True if the loop can read values of a shape: names are unique, and need no escapes in JSON."""
    names = [name for name, _ in shape.children]
    if shape.kind == OBJECT and (
        len(set(names)) < len(names)
        or any(min(name, default=" ") < " " or '"' in name or "\\" in name for name in names)
        or any("\ud800" <= each < "\ue000" for name in names for each in name)
    ):
        return False
    return all(is_readable(child) for _, child in shape.children)
