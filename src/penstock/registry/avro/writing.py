"""Writes columns as Avro values in bulk: compiles a schema and an Arrow type to a program for a fast loop.

`write_columns` handles only what it writes exactly as fastavro would: matching types, unions of one type with
null, numbers in range. For all other columns it returns None, and the caller writes row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import EncodeError
from penstock.records.kernels.compiled import Ints
from penstock.registry.avro.schema import (
    NO_DEFAULT,
    AvroArray,
    AvroField,
    AvroFixed,
    AvroRecord,
    Enum,
    Map,
    Type,
    Union,
)
from penstock.registry.columns import avro_write_kernel as loop
from penstock.registry.columns.avro_write_kernel import write_avro

ROWS_AT_A_TIME = 1 << 16
"""The number of rows that one run of the loop encodes. The run needs memory for their longest possible
encoding.
"""

OUTPUT_BYTES_MAX = (1 << 31) - 1
LISTS_MAX = 64
"""The greatest nesting depth of lists and maps in columns that are written in bulk."""

Mask = NDArray[np.bool_]


class _Unsure(Exception):
    """Raised if the bulk writer might encode some value of a column in a different way than fastavro."""


@dataclass
class _Program:
    """The input of the loop that writes a column: operations, columns of numbers, maximum output size."""

    ops: list[int] = field(default_factory=list)
    columns: list[Ints] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """The number of entries in each group. Group 0 has the rows of the column; every other group, the items
    of one list field.
    """
    pieces: list[NDArray[np.uint8]] = field(default_factory=list)
    bytes: int = 0
    room: int = 0

    @property
    def at(self) -> int:
        """Return the position that the next operation in the program will have."""
        return len(self.ops)

    def add(self, op: int, column: int = 0, group: int = 0, c: int = 0, d: int = 0) -> int:
        """Append an operation to the program, and return the operation's position."""
        self.ops += [op, column, group, c, d]
        return len(self.ops) - loop.WIDTH

    def column(self, *numbers: Any) -> int:
        """Append arrays of numbers as columns, and return the index of the first one."""
        self.columns += [np.ascontiguousarray(each, dtype=np.int64) for each in numbers]
        return len(self.columns) - len(numbers)

    def text(self, piece: NDArray[np.uint8]) -> int:
        """Append bytes to the program's data, and return the position of the first byte."""
        self.pieces.append(piece)
        self.bytes += len(piece)
        return self.bytes - len(piece)

    def reserve(self, group: int, size: int, extra: int = 0) -> None:
        """Raise the maximum output size by `size` bytes per entry of a group, and by `extra` bytes."""
        self.room += self.counts[group] * size + extra


def write_columns(column: pa.Array, schema: Type, prefix: bytes) -> pa.Array | None:
    """Return each value as `prefix` and Avro bytes, or None if rows must be written one by one.

    Nulls stay nulls.

    Raises:
        EncodeError: a text is not UTF-8, or the values have more than 2 GiB.
    """
    pieces = []
    for start in range(0, len(column), ROWS_AT_A_TIME):
        piece = _written(column.slice(start, ROWS_AT_A_TIME), schema, prefix)
        if piece is None:
            return None
        pieces.append(piece)
    if sum(piece.nbytes for piece in pieces) > OUTPUT_BYTES_MAX:
        raise EncodeError("the values have more than 2 GiB: write fewer rows at a time")
    return pa.concat_arrays(pieces) if pieces else pa.array([], pa.binary())


def _written(column: pa.Array, schema: Type, prefix: bytes) -> pa.Array | None:
    rows = len(column)
    present = np.asarray(pc.is_valid(column)).astype(np.uint8)
    program = _Program(counts=[rows])
    program.column(np.zeros(max(rows, 1), dtype=np.int64))  # what operations without a column read
    try:
        alive = present.astype(bool)
        _value(program, column, schema, 0, alive)
    except _Unsure:
        return None
    except pa.ArrowInvalid as error:
        raise EncodeError(f"a column cannot be written: {error}") from None
    program.add(loop.END)
    room = program.room + rows * len(prefix)
    if room > OUTPUT_BYTES_MAX and rows > 1:
        half = rows // 2
        first = _written(column.slice(0, half), schema, prefix)
        second = _written(column.slice(half), schema, prefix)
        return None if first is None or second is None else pa.concat_arrays([first, second])
    if room > OUTPUT_BYTES_MAX:
        raise EncodeError("a value has more than 2 GiB")
    ends = np.zeros(rows + 1, dtype=np.int32)
    target = np.empty(room + 1, dtype=np.uint8)
    sizes = np.array([len(each) for each in program.columns], dtype=np.int64)
    base = np.zeros(len(sizes), dtype=np.int64)
    np.cumsum(sizes[:-1], out=base[1:])
    size = write_avro(
        np.concatenate([*program.pieces, np.zeros(1, dtype=np.uint8)]),
        np.frombuffer(prefix, dtype=np.uint8),
        present,
        np.array(program.ops, dtype=np.int64),
        base,
        np.concatenate([*program.columns, np.zeros(1, dtype=np.int64)]),
        np.zeros(len(program.counts), dtype=np.int64),
        np.zeros(LISTS_MAX, dtype=np.int64),
        ends,
        target,
    )
    valid = None if present.all() else pc.is_valid(column)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(target[:size].copy())]
    if valid is not None:
        buffers[0] = pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _value(
    program: _Program, column: pa.Array, schema: Type, group: int, alive: Mask, depth: int = 0
) -> None:
    """Append operations that write the values of a column in the rows for which `alive` is true."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(schema, Union):
        branches = schema.branches
        if len(branches) != 2 or (branches[0].kind == "null") == (branches[1].kind == "null"):
            raise _Unsure
        branch = 0 if branches[1].kind == "null" else 1
        valid = np.asarray(pc.is_valid(column))
        place = program.column(valid)
        program.reserve(group, 1)
        option = program.add(loop.OPTION, place, group, branch)
        if not pa.types.is_null(column.type):
            _value(program, column, branches[branch], group, alive & valid, depth)
        program.ops[option + 4] = program.at
        return
    if schema.kind == "null":
        if column.null_count < len(column) and np.any(np.asarray(pc.is_valid(column)) & alive):
            raise _Unsure
        return
    if column.null_count and np.any(~np.asarray(pc.is_valid(column)) & alive):
        raise _Unsure
    _present(program, column, schema, group, alive, depth)


def _present(program: _Program, column: pa.Array, schema: Type, group: int, alive: Mask, depth: int) -> None:
    kind = column.type
    match schema:
        case AvroRecord():
            _record(program, column, schema, group, alive, depth)
        case AvroArray():
            _list(program, column, [schema.items], group, alive, depth)
        case Map():
            _list(program, column, [Type("string"), schema.values], group, alive, depth)
        case Enum():
            if not pa.types.is_string(kind):
                raise _Unsure
            found = pc.index_in(column, value_set=pa.array(schema.symbols, pa.string()))
            if np.any(np.asarray(pc.is_null(found)) & alive):
                raise _Unsure
            _number(program, loop.NUMBER, found.fill_null(0), group, loop.VARINT_BYTES)
        case AvroFixed():
            if schema.logical is not None or not pa.types.is_fixed_size_binary(kind):
                raise _Unsure
            if kind.byte_width != schema.size:
                raise _Unsure
            _span(program, loop.FIXED, column.cast(pa.binary()), group)
        case _:
            _plain(program, column, schema, group, alive)


def _plain(program: _Program, column: pa.Array, schema: Type, group: int, alive: Mask) -> None:
    kind = column.type
    if schema.kind in ("int", "long"):
        _whole(program, column, schema, group, alive)
    elif schema.kind == "boolean" and pa.types.is_boolean(kind):
        _number(program, loop.BOOLEAN, column.cast(pa.int8()).fill_null(0), group, 1)
    elif schema.kind == "double" and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        numbers = np.asarray(column.cast(pa.float64(), safe=False).fill_null(0.0))
        program.reserve(group, 8)
        program.add(loop.DOUBLE, program.column(numbers.view(np.int64)), group)
    elif schema.kind == "float" and (pa.types.is_float32(kind) or pa.types.is_float16(kind)):
        floats = np.asarray(column.cast(pa.float32()).fill_null(0.0))
        program.reserve(group, 4)
        program.add(loop.FLOAT, program.column(floats.view(np.int32)), group)
    elif schema.kind == "string" and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        _texts(column)
        _span(program, loop.TEXT, column.cast(pa.large_string()), group)
    elif schema.kind == "bytes" and schema.logical == "decimal" and pa.types.is_decimal128(kind):
        if kind.scale != schema.scale or kind.precision > schema.precision:
            raise _Unsure
        words = np.frombuffer(column.buffers()[1], dtype=np.int64)
        words = words[2 * column.offset : 2 * (column.offset + len(column))]
        program.reserve(group, loop.DECIMAL_BYTES)
        program.add(loop.DECIMAL, program.column(words[::2], words[1::2]), group)
    elif (
        schema.kind == "bytes"
        and schema.logical is None
        and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
    ):
        _span(program, loop.TEXT, column.cast(pa.large_binary()), group)
    else:
        raise _Unsure


_MOMENTS = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
_ZONED = {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns"}


def _whole(program: _Program, column: pa.Array, schema: Type, group: int, alive: Mask) -> None:
    kind = column.type
    if pa.types.is_integer(kind):
        bounds = pa.int32() if schema.kind == "int" else pa.int64()
        is_unsigned = pa.types.is_unsigned_integer(kind)
        if kind.bit_width + is_unsigned > bounds.bit_width:
            # Where a value is too large, rows are written one by one, and the error names it.
            numbers = column.filter(pa.array(alive)) if not alive.all() else column
            try:
                numbers.cast(bounds)
            except pa.ArrowInvalid:
                raise _Unsure from None
    elif schema.logical in _ZONED:
        if not pa.types.is_timestamp(kind) or kind.tz is None or kind.unit != _ZONED[schema.logical]:
            raise _Unsure
    elif schema.logical is None or kind != _MOMENTS.get(schema.logical):
        raise _Unsure
    storage = column if pa.types.is_integer(kind) else column.view(_storage(kind))
    _number(program, loop.NUMBER, storage.fill_null(0), group, loop.VARINT_BYTES)


def _storage(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _number(program: _Program, op: int, numbers: pa.Array, group: int, size: int) -> None:
    program.reserve(group, size)
    program.add(op, program.column(np.asarray(numbers)), group)


def _texts(column: pa.Array) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise EncodeError("a text is not UTF-8, which Avro's strings are") from None


def _span(program: _Program, op: int, column: pa.Array, group: int) -> None:
    """Append operations that write an array of `large_string`, `large_binary` or `binary`."""
    width = np.int64 if column.type in (pa.large_string(), pa.large_binary()) else np.int32
    _, offsets_buffer, data = column.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=width)[column.offset : column.offset + len(column) + 1]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(column) else (0, 0)
    piece = np.frombuffer(data or b"", dtype=np.uint8)[first:last]
    begin = program.text(piece)
    starts = offsets[:-1].astype(np.int64) - first + begin
    program.reserve(group, loop.VARINT_BYTES, last - first)
    program.add(op, program.column(starts, np.diff(offsets)), group)


def _record(
    program: _Program, column: pa.Array, schema: AvroRecord, group: int, alive: Mask, depth: int
) -> None:
    if not pa.types.is_struct(column.type):
        raise _Unsure
    names = [each.name for each in column.type]
    if len(set(names)) < len(names):
        raise _Unsure
    for each in schema.fields:
        if each.name in names:
            _value(program, column.field(names.index(each.name)), each.type, group, alive, depth)
        else:
            _absent(program, each, group)


def _absent(program: _Program, each: AvroField, group: int) -> None:
    """Append operations that write null for a field that has no column, if null is the field's default."""
    if each.default is not None or each.default is NO_DEFAULT:
        raise _Unsure
    if isinstance(each.type, Union):
        nulls = [number for number, branch in enumerate(each.type.branches) if branch.kind == "null"]
        if not nulls:
            raise _Unsure
        program.reserve(group, loop.VARINT_BYTES)
        program.add(loop.CONSTANT, c=nulls[0])
    elif each.type.kind != "null":
        raise _Unsure


def _list(
    program: _Program, column: pa.Array, parts: list[Type], group: int, alive: Mask, depth: int
) -> None:
    """Append operations that write a list, or a map, which is a list of keys and values."""
    kind = column.type
    is_map = len(parts) == 2
    if not (pa.types.is_map(kind) if is_map else pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise _Unsure
    if depth >= LISTS_MAX or (is_map and not pa.types.is_string(kind.key_type)):
        raise _Unsure
    offsets = np.asarray(column.offsets).astype(np.int64)
    sizes = np.diff(offsets)
    if not alive.all():
        sizes = np.where(alive, sizes, 0)
    children = [column.keys, column.items] if is_map else [column.values]
    count = int(sizes.sum())
    if len(column) and count == offsets[-1] - offsets[0]:
        children = [each.slice(int(offsets[0]), count) for each in children]
    else:
        # The items of lists that are not written lie between the others.
        firsts = np.cumsum(sizes) - sizes
        chosen = np.arange(count) - np.repeat(firsts - offsets[:-1], sizes)
        children = [each.take(pa.array(chosen)) for each in children]
    items = len(program.counts)
    program.counts.append(count)
    program.reserve(group, loop.VARINT_BYTES + 1)
    begin = program.add(loop.LIST, program.column(sizes), group)
    body = program.at
    everything = np.ones(count, dtype=np.bool_)
    for child, part in zip(children, parts, strict=True):
        _value(program, child, part, items, everything, depth + 1)
    program.add(loop.NEXT, 0, 0, items, body)
    program.ops[begin + 4] = program.at
