"""Reads Protobuf messages as Arrow columns: makes the loop's tables from descriptors, and runs the loop."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from penstock.errors import DecodeError
from penstock.records.kernels.compiled import Bytes, Ints
from penstock.registry.columns import nodes
from penstock.registry.columns import protobuf_kernel as kernel
from penstock.registry.columns.gathering import Gathering
from penstock.registry.columns.nodes import ColumnLayout, ColumnNode, LoopStore
from penstock.registry.columns.span_kernels import REASONS
from penstock.registry.protobuf.schema import (
    ProtobufSchemaError,
    message_at,
    message_named,
    parse_protobuf,
)
from penstock.registry.schemas import Schema

ROWS = 1 << 13
STORE_NUMBERS_MAX = 1 << 25
FRAMES_MAX = 5_000
_F = FieldDescriptor
TIMESTAMP = "google.protobuf.Timestamp"

# The wire type, how the loop reads it, how it is stored, and the Arrow type.
_SCALARS: dict[int, tuple[int, int, int, pa.DataType]] = {
    _F.TYPE_DOUBLE: (1, kernel.FIXED64, nodes.DOUBLES, pa.float64()),
    _F.TYPE_FLOAT: (5, kernel.FIXED32, nodes.FLOATS, pa.float32()),
    _F.TYPE_INT64: (0, kernel.VARINT64, nodes.NUMBER, pa.int64()),
    _F.TYPE_UINT64: (0, kernel.VARINT64, nodes.NUMBER, pa.uint64()),
    _F.TYPE_INT32: (0, kernel.INT32, nodes.NUMBER, pa.int32()),
    _F.TYPE_FIXED64: (1, kernel.FIXED64, nodes.NUMBER, pa.uint64()),
    _F.TYPE_FIXED32: (5, kernel.FIXED32, nodes.NUMBER, pa.uint32()),
    _F.TYPE_BOOL: (0, kernel.BOOL, nodes.FLAGS, pa.bool_()),
    _F.TYPE_STRING: (2, kernel.TEXT, nodes.SPAN, pa.string()),
    _F.TYPE_BYTES: (2, kernel.BINARY, nodes.SPAN, pa.binary()),
    _F.TYPE_UINT32: (0, kernel.UINT32, nodes.NUMBER, pa.uint32()),
    _F.TYPE_SFIXED32: (5, kernel.FIXED32, nodes.NUMBER, pa.int32()),
    _F.TYPE_SFIXED64: (1, kernel.FIXED64, nodes.NUMBER, pa.int64()),
    _F.TYPE_SINT32: (0, kernel.ZIGZAG, nodes.NUMBER, pa.int32()),
    _F.TYPE_SINT64: (0, kernel.ZIGZAG, nodes.NUMBER, pa.int64()),
    _F.TYPE_ENUM: (0, kernel.INT32, nodes.SYMBOLS, pa.string()),
}


class ColumnTables:
    """The tree of columns of a message type, and the tables that control how the loop fills them."""

    def __init__(self, message: Descriptor) -> None:
        """Allocate columns and make tables for a message type.

        Raises:
            ProtobufSchemaError: the message type has too many columns.
        """
        self.layout = ColumnLayout()
        self._frames: list[list[list[int]]] = []
        self._oneofs: list[int] = []
        self._skips: dict[str, int] = {}
        self.root = self._message(message, 0, ())
        self.entries = np.array(
            [number for frame in self._frames for entry in frame for number in entry] or [0] * kernel.ENTRY,
            dtype=np.int64,
        )
        self.counts = np.array([len(frame) for frame in self._frames], dtype=np.int64)
        self.firsts = np.cumsum(self.counts) - self.counts
        self.oneofs = np.array(self._oneofs or [0], dtype=np.int64)

    def _new_frame(self) -> tuple[int, list[list[int]]]:
        if len(self._frames) >= FRAMES_MAX:
            raise ProtobufSchemaError(f"the schema has more than {FRAMES_MAX:,} nested messages")
        self._frames.append([])
        return len(self._frames) - 1, self._frames[-1]

    def _message(self, message: Descriptor, group: int, above: tuple[str, ...]) -> ColumnNode:
        number, frame = self._new_frame()
        inner = (*above, message.full_name)
        children, fields = [], []
        by_oneof: dict[str, list[list[int]]] = {}
        for field in message.fields:
            node, entry = self._field(field, group, inner)
            children.append(node)
            fields.append(pa.field(field.name, node.type, node.nullable))
            frame.append(entry)
            if field.containing_oneof is not None:
                by_oneof.setdefault(field.containing_oneof.name, []).append(entry)
        for entries in by_oneof.values():
            if len(entries) == 1:
                continue  # an optional field: there is no other to take away
            first = len(self._oneofs)
            self._oneofs += [entry[kernel.VALID] for entry in entries]
            for entry in entries:
                entry[kernel.ONEOF], entry[kernel.ONEOF_COUNT] = first, len(entries)
        frame.sort()
        found = ColumnNode(nodes.STRUCT, pa.struct(fields), group, children=children)
        found.items = number  # the frame, until the field that holds the message takes it
        return found

    def _field(
        self, field: FieldDescriptor, group: int, above: tuple[str, ...]
    ) -> tuple[ColumnNode, list[int]]:
        entry = [field.number, *([-1] * (kernel.ENTRY - 1))]
        entry[kernel.GROUP], entry[kernel.ONEOF_COUNT], entry[kernel.PACKABLE] = group, 0, 0
        if not field.is_repeated:
            node = self._value(field, group, above, entry)
            if field.has_presence and not field.containing_type.GetOptions().map_entry:
                node.valid = entry[kernel.VALID] = self.layout.add(group)
            return node, entry
        items = self.layout.add_group()
        child = self._value(field, items, above, entry)
        sizes = self.layout.add(group)
        entry[kernel.ITEMS], entry[kernel.SIZES] = items, sizes
        entry[kernel.PACKABLE] = int(entry[kernel.WIRE] != 2)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = child.children
            kind = pa.map_(key.type, pa.field("value", value.type, value.nullable))
            return ColumnNode(nodes.MAP, kind, group, sizes, items=items, children=[key, value]), entry
        kind = pa.list_(pa.field("element", child.type, child.nullable))
        return ColumnNode(nodes.LIST, kind, group, sizes, items=items, children=[child]), entry

    def _value(
        self, field: FieldDescriptor, group: int, above: tuple[str, ...], entry: list[int]
    ) -> ColumnNode:
        """Return the `ColumnNode` for one value of a field, with its columns in `group`."""
        if field.message_type is None:
            wire, kind, stored, arrow = _SCALARS[field.type]
            entry[kernel.WIRE], entry[kernel.KIND] = wire, kind
            entry[kernel.COLUMN] = self.layout.add(group, 2 if stored == nodes.SPAN else 1)
            node = ColumnNode(stored, arrow, group, entry[kernel.COLUMN])
            if field.enum_type is not None:
                node.symbols = {each.number: each.name for each in reversed(field.enum_type.values)}
            return node
        if field.type == _F.TYPE_GROUP:
            raise ProtobufSchemaError(f"{field.full_name} is a group, which is out of use")
        message = field.message_type
        entry[kernel.WIRE] = 2
        if message.full_name in above:
            entry[kernel.KIND], entry[kernel.FRAME] = kernel.WHOLE, self._skip(message)
            entry[kernel.COLUMN] = self.layout.add(group, 2)
            return ColumnNode(
                nodes.JSON_SPAN, pa.string(), group, entry[kernel.COLUMN], as_text=_text_maker(message)
            )
        entry[kernel.KIND] = kernel.MESSAGE
        node = self._message(message, group, above)
        entry[kernel.FRAME], node.items = node.items, nodes.NO_COLUMN
        if message.full_name == TIMESTAMP:
            node.kind, node.type = nodes.MOMENT, pa.timestamp("us", "UTC")
        return node

    def _skip(self, message: Descriptor) -> int:
        """Return the number of the table of fields (frame) with which the loop skips a message."""
        known = self._skips.get(message.full_name)
        if known is not None:
            return known
        number, frame = self._new_frame()
        self._skips[message.full_name] = number
        for field in message.fields:
            entry = [field.number, *([-1] * (kernel.ENTRY - 1))]
            entry[kernel.GROUP], entry[kernel.ONEOF_COUNT], entry[kernel.PACKABLE] = 0, 0, 0
            if field.message_type is not None:
                entry[kernel.WIRE], entry[kernel.KIND] = 2, kernel.MESSAGE
                entry[kernel.FRAME] = self._skip(field.message_type)
            else:
                entry[kernel.WIRE], entry[kernel.KIND] = _SCALARS[field.type][:2]
                entry[kernel.PACKABLE] = int(field.is_repeated and entry[kernel.WIRE] != 2)
                # A list that has no column: -2 says that it may be packed.
                entry[kernel.ITEMS] = -2 if entry[kernel.PACKABLE] else -1
            frame.append(entry)
        frame.sort()
        return number


class ProtobufFormat:
    """The Protobuf implementation of `decoding.ValueFormat`, with a reader's message type."""

    def __init__(self, schema: Schema, referenced: Mapping[str, Schema], message: str | None) -> None:
        """Parse the reader's schema, with the schemas that it refers to, and find the message type.

        Raises:
            ProtobufSchemaError: the text is not a Protobuf schema, or has no such message.
        """
        file = parse_protobuf(schema.text, {name: each.text for name, each in referenced.items()})
        self._message = message_at(file, (0,)) if message is None else message_named(file, message)
        self._tables = ColumnTables(self._message)
        self.type: pa.DataType = self._tables.root.type

    def reading(
        self, writer: Schema, referenced: Mapping[str, Schema], path: tuple[int, ...]
    ) -> ProtobufReading:
        """Return an object that reads the messages of a writer's schema, with fields matched by number.

        Raises:
            DecodeError: the message at `path` is of another type.
        """
        if path:
            file = parse_protobuf(writer.text, {name: each.text for name, each in referenced.items()})
            written = message_at(file, path)
            if written.full_name != self._message.full_name:
                raise DecodeError(f"the message is {written.full_name}, not {self._message.full_name}")
        return ProtobufReading(self._tables)


class ProtobufReading:
    """Reads messages into the columns of one message type."""

    def __init__(self, tables: ColumnTables) -> None:
        self._tables = tables

    def read(self, data: Bytes, starts: Ints, ends: Ints) -> tuple[pa.Array, Ints, Mapping[int, str]]:
        """Return (decoded values as an array, indices of their rows, a reason for each undecodable row)."""
        tables = self._tables
        reasons = np.zeros(len(starts), dtype=np.uint8)
        stack = np.zeros((kernel.DEPTH_MAX + 1) * kernel.FRAME_NUMBERS, dtype=np.int64)
        gathering, places = Gathering(tables.root, len(starts)), []
        row = 0
        store = LoopStore(tables.layout, min(ROWS, len(starts)))
        while row < len(starts):
            last = min(row + ROWS, len(starts))
            store.clear()
            begin = row
            while row < last:
                row, full = kernel.read_protobuf(
                    data,
                    starts[:last],
                    ends[:last],
                    row,
                    tables.entries,
                    tables.firsts,
                    tables.counts,
                    tables.oneofs,
                    store.base,
                    store.caps,
                    store.group_of,
                    store.numbers,
                    store.filled,
                    store.saved,
                    stack,
                    reasons,
                )
                if full >= 0:
                    if store.size > STORE_NUMBERS_MAX:
                        if row == begin:
                            raise DecodeError("one value has more items than memory allows for a batch")
                        break
                    store.grow(full)
            rows = begin + np.flatnonzero(reasons[begin:row] == 0)
            if len(rows):
                gathering.add(store, data)
                places.append(rows)
            if store.size > STORE_NUMBERS_MAX:  # the next rows may need other groups
                store = LoopStore(tables.layout, min(ROWS, len(starts)))
        dead = {int(each): REASONS[int(reasons[each])] for each in np.flatnonzero(reasons)}
        return gathering.array(), np.concatenate(places) if places else np.zeros(0, dtype=np.int64), dead


def _text_maker(message: Descriptor) -> Callable[[bytes], str]:
    """Return a function that converts a recursive message to JSON text."""
    made: Any = GetMessageClass(message)

    def as_text(data: bytes) -> str:
        try:
            found = json_format.MessageToDict(made.FromString(data), preserving_proto_field_name=True)
        except (ValueError, TypeError, json_format.Error):  # an Any of an unknown type, a time out of range
            return json.dumps({"@bytes": base64.b64encode(data).decode()})
        return json.dumps(found, ensure_ascii=False)

    return as_text
