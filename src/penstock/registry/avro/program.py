"""Avro schema resolution: compiles writer's and reader's schema to a program for the loop that reads values.

The rules are those of Avro's specification: fields are matched by name or alias, missing fields get defaults,
numbers are widened, bytes become text, symbols are matched by name. A schema that can never be resolved is an
error; if only some branches of the writer's unions cannot be resolved, rows with these branches are
unreadable.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.registry.avro import schema as avro
from penstock.registry.avro.schema import NO_DEFAULT, SchemaError, Type, Union, branch_name
from penstock.registry.columns import avro_kernel as op
from penstock.registry.columns import nodes
from penstock.registry.columns.nodes import ColumnLayout, ColumnNode

OPERATIONS_MAX = 100_000
COLUMNS_MAX = 20_000
DECIMAL_BYTES_MAX = 16

_STORED = {
    "boolean": (nodes.FLAGS, pa.bool_()),
    "int": (nodes.NUMBER, pa.int32()),
    "long": (nodes.NUMBER, pa.int64()),
    "float": (nodes.FLOATS, pa.float32()),
    "double": (nodes.DOUBLES, pa.float64()),
    "bytes": (nodes.SPAN, pa.binary()),
    "string": (nodes.SPAN, pa.string()),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
_DAYS = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
"""A dict from logical type to the length of a day in the type's unit. Times of day beyond it are refused,
since Arrow has none.
"""

# From a writer's number to a reader's: the operation, and whether it is checked to have 32 bits.
_NUMBERS = {
    ("int", "int"): (op.INT, 1),
    ("int", "long"): (op.LONG, 1),
    ("long", "long"): (op.LONG, 0),
    ("int", "float"): (op.INT_AS_FLOAT, 1),
    ("long", "float"): (op.INT_AS_FLOAT, 0),
    ("int", "double"): (op.INT_AS_DOUBLE, 1),
    ("long", "double"): (op.INT_AS_DOUBLE, 0),
    ("float", "float"): (op.FLOAT, 0),
    ("float", "double"): (op.FLOAT_AS_DOUBLE, 0),
    ("double", "double"): (op.DOUBLE, 0),
    ("boolean", "boolean"): (op.BOOLEAN, 0),
}


class UnresolvableError(SchemaError):
    """Raised if the reader's schema cannot read values of the writer's; the message names the difference."""


@dataclass(frozen=True)
class AvroProgram:
    """The operations that the compiled loop `read_avro` executes, and the tree of columns that it fills."""

    ops: Any
    tables: Any
    root: ColumnNode
    layout: ColumnLayout


def compile_program(writer: Type, reader: Type) -> AvroProgram:
    """Return the program that reads values of `writer` into the columns of `reader`.

    Raises:
        UnresolvableError: values of `writer` cannot be read with `reader`.
        SchemaError: one of the schemas is too large.
    """
    compiler = _Compiler()
    root = compiler.node(reader, 0, ())
    compiler.read(writer, reader, root, "the value")
    compiler.emit(op.END)
    compiler.write_skippers()
    return AvroProgram(
        np.array(compiler.ops, dtype=np.int64),
        np.array(compiler.tables or [0], dtype=np.int64),
        root,
        compiler.layout,
    )


def arrow_type(reader: Type) -> pa.DataType:
    """Return the Arrow type of a schema's values.

    Raises:
        SchemaError: the schema is too large.
    """
    return _Compiler().node(reader, 0, ()).type


def optional_branch(made: Type) -> Type | None:
    """Return the type T if a type is a union of null and T; return None for any other type."""
    if isinstance(made, Union) and len(made.branches) == 2:
        others = [branch for branch in made.branches if branch.kind != "null"]
        return others[0] if len(others) == 1 else None
    return None


def branch_labels(branches: tuple[Type, ...]) -> list[str]:
    """Return labels for the branches of a union: short names where they are unique, else full names."""
    short = [branch_name(branch).rpartition(".")[2] for branch in branches]
    return [
        name if short.count(name) == 1 else branch_name(branch)
        for name, branch in zip(short, branches, strict=True)
    ]


class _Compiler:
    """Compiles two schemas to the operations of an `AvroProgram`.

    Jumps and calls get their targets once these are known.
    """

    def __init__(self) -> None:
        self.ops: list[int] = []
        self.tables: list[int] = []
        self.layout = ColumnLayout()
        self._calls: list[tuple[int, Type]] = []
        self._skippers: dict[int, int] = {}
        self._recursive: dict[int, bool] = {}

    # --- the tree of columns ---

    def node(self, made: Type, group: int, above: tuple[Type, ...], *, optional: bool = False) -> ColumnNode:
        """Allocate output columns for a type of the reader's schema; return their `ColumnNode`.

        `group` is the group of rows that has the columns: the rows themselves, or the items of one list.
        """
        if len(self.layout.group_of) > COLUMNS_MAX:
            raise SchemaError(f"the schema has more than {COLUMNS_MAX:,} columns")
        if isinstance(made, Union):
            return self._union_node(made, group, above, optional)
        found = self._plain_node(made, group, above)
        if optional:
            found.valid = self.layout.add(group)
        return found

    def _union_node(self, made: Union, group: int, above: tuple[Type, ...], optional: bool) -> ColumnNode:
        others = tuple(branch for branch in made.branches if branch.kind != "null")
        has_null = optional or len(others) < len(made.branches)
        if len(others) == 1:
            return self.node(others[0], group, above, optional=has_null)
        if not others:
            return self.node(made.branches[0], group, above)
        children = [self.node(branch, group, above, optional=True) for branch in others]
        labels = branch_labels(others)
        fields = [pa.field(label, child.type) for label, child in zip(labels, children, strict=True)]
        found = ColumnNode(nodes.STRUCT, pa.struct(fields), group, children=children, names=tuple(labels))
        if has_null:
            found.valid = self.layout.add(group)
        return found

    def _plain_node(self, made: Type, group: int, above: tuple[Type, ...]) -> ColumnNode:
        add = self.layout.add
        if isinstance(made, avro.AvroRecord):
            if made in above:
                return ColumnNode(nodes.JSON_SPAN, pa.string(), group, add(group, 2))
            inner = (*above, made)
            children = [self.node(each.type, group, inner) for each in made.fields]
            fields = [
                pa.field(each.name, child.type, child.nullable)
                for each, child in zip(made.fields, children, strict=True)
            ]
            return ColumnNode(nodes.STRUCT, pa.struct(fields), group, children=children)
        if isinstance(made, (avro.AvroArray, avro.Map)):
            items = self.layout.add_group()
            value = made.items if isinstance(made, avro.AvroArray) else made.values
            child = self.node(value, items, above)
            if isinstance(made, avro.AvroArray):
                kind = pa.list_(pa.field("element", child.type, child.nullable))
                return ColumnNode(nodes.LIST, kind, group, add(group), items=items, children=[child])
            key = ColumnNode(nodes.SPAN, pa.string(), items, add(items, 2))
            kind = pa.map_(pa.string(), pa.field("value", child.type, child.nullable))
            return ColumnNode(nodes.MAP, kind, group, add(group), items=items, children=[key, child])
        if isinstance(made, avro.Enum):
            return ColumnNode(
                nodes.SYMBOLS, pa.string(), group, add(group), symbols=dict(enumerate(made.symbols))
            )
        if made.kind == "null":
            return ColumnNode(nodes.NULL, pa.null(), group)
        if made.logical == "decimal" and not (
            isinstance(made, avro.AvroFixed) and made.size > DECIMAL_BYTES_MAX
        ):
            kind = pa.decimal128(made.precision, made.scale)
            return ColumnNode(nodes.DECIMALS, kind, group, add(group, 2))
        if isinstance(made, avro.AvroFixed):
            kind = pa.binary(made.size) if made.size else pa.binary()
            return ColumnNode(nodes.SPAN, kind, group, add(group, 2))
        stored, kind = _STORED[made.kind]
        if made.kind in ("int", "long"):
            kind = _LOGICAL.get(made.logical or "", kind)
        return ColumnNode(stored, kind, group, add(group, 2 if stored == nodes.SPAN else 1))

    # --- reading ---

    def emit(self, *numbers: int) -> int:
        """Append an operation to the program, and return the operation's position."""
        if len(self.ops) > OPERATIONS_MAX * op.WIDTH:
            raise SchemaError("the schema is too large: its types are used in too many places")
        place = len(self.ops)
        self.ops += [*numbers, *([0] * (op.WIDTH - len(numbers)))]
        return place

    def read(self, writer: Type, reader: Type, node: ColumnNode, place: str) -> None:
        """Emit the operations that read a value of type `writer` into `node`, whose type is `reader`."""
        if isinstance(writer, Union):
            self._read_union(writer, reader, node, place)
        elif isinstance(reader, Union):
            self._read_into_branch(writer, reader, node, place)
        elif node.kind == nodes.JSON_SPAN:
            self.emit(op.MARK, node.column, node.group)
            self.skip(writer)
            self.emit(op.MARKED, node.column, node.group)
            node.as_text = _text_maker(writer)
        else:
            self._read_plain(writer, reader, node, place)

    def _attempt(self, step: Callable[[], None]) -> str | None:
        """Run `step`, which emits operations.

        On UnresolvableError, remove the operations and return the error's message; otherwise return None.
        """
        ops, tables, calls = len(self.ops), len(self.tables), len(self._calls)
        try:
            step()
        except UnresolvableError as error:
            del self.ops[ops:], self.tables[tables:], self._calls[calls:]
            return str(error)
        return None

    def _read_union(self, writer: Union, reader: Type, node: ColumnNode, place: str) -> None:
        written, wanted = optional_branch(writer), optional_branch(reader)
        if written is not None and wanted is not None:
            null_branch = next(i for i, branch in enumerate(writer.branches) if branch.kind == "null")
            at = len(self.ops)

            def step() -> None:
                self.emit(op.OPTION, node.valid, node.group, null_branch, 0, 2)
                self.read(written, wanted, node, place)
                self.ops[at + 4] = len(self.ops)

            if self._attempt(step) is None:
                return
        at = self.emit(op.UNION, 0, 0, len(self.tables), 0, len(writer.branches))
        first = len(self.tables)
        self.ops[at + 3] = first
        self.tables += [-1] * len(writer.branches)
        jumps, failures = [], []
        for number, branch in enumerate(writer.branches):
            begin = len(self.ops)
            failure = self._attempt(lambda branch=branch: self.read(branch, reader, node, place))  # type: ignore[misc]
            if failure is None:
                self.tables[first + number] = begin
                jumps.append(self.emit(op.JUMP))
            else:
                failures.append(failure)
        if not jumps:
            raise UnresolvableError(failures[0])
        for jump in jumps:
            self.ops[jump + 1] = len(self.ops)

    def _read_into_branch(self, writer: Type, reader: Union, node: ColumnNode, place: str) -> None:
        if writer.kind == "null":
            if not any(branch.kind == "null" for branch in reader.branches):
                raise UnresolvableError(f"{place}: null is written, and the reader has no null")
            return  # what is null stays zero
        failures = []
        for branch in _candidates(writer, reader):

            def step(branch: Type = branch) -> None:
                self.read(writer, branch, self._enter(reader, node, branch), place)

            failure = self._attempt(step)
            if failure is None:
                return
            failures.append(failure)
        raise UnresolvableError(
            failures[0] if failures else f"{place}: the reader's union has no {writer.kind}"
        )

    def _enter(self, reader: Union, node: ColumnNode, branch: Type) -> ColumnNode:
        """Emit operations that set `branch` as the branch of a reader's union; return the branch's node."""
        if node.valid != nodes.NO_COLUMN:
            self.emit(op.SET, node.valid, node.group, 1)
        others = [each for each in reader.branches if each.kind != "null"]
        if len(others) == 1:
            return node
        child = node.children[others.index(branch)]
        self.emit(op.SET, child.valid, child.group, 1)
        return child

    def _read_plain(self, writer: Type, reader: Type, node: ColumnNode, place: str) -> None:
        numbers = _NUMBERS.get((writer.kind, reader.kind))
        if numbers is not None:
            _same_units(writer, reader, place)
            operation, checked = numbers
            self.emit(operation, node.column, node.group, _DAYS.get(reader.logical or "", checked))
        elif isinstance(writer, avro.AvroRecord) and isinstance(reader, avro.AvroRecord):
            self._read_record(writer, reader, node, place)
        elif isinstance(writer, avro.AvroArray) and isinstance(reader, avro.AvroArray):
            self._read_list(writer.items, reader.items, node, place)
        elif isinstance(writer, avro.Map) and isinstance(reader, avro.Map):
            self._read_list(writer.values, reader.values, node, place)
        elif isinstance(writer, avro.Enum) and isinstance(reader, avro.Enum):
            self._read_enum(writer, reader, node)
        elif isinstance(writer, avro.AvroFixed) and isinstance(reader, avro.AvroFixed):
            if writer.size != reader.size:
                raise UnresolvableError(f"{place}: fixed has {writer.size} bytes, the reader's {reader.size}")
            _same_units(writer, reader, place)
            self.emit(op.FIXED, node.column, node.group, writer.size)
        elif writer.kind in ("bytes", "string") and reader.kind in ("bytes", "string"):
            _same_units(writer, reader, place)
            is_text = op.TEXT if reader.kind == "string" else op.BINARY
            self.emit(op.DECIMAL if node.kind == nodes.DECIMALS else is_text, node.column, node.group)
        elif not writer.kind == reader.kind == "null":
            raise UnresolvableError(f"{place}: {writer.kind} is written, and the reader has {reader.kind}")

    def _read_record(
        self, writer: avro.AvroRecord, reader: avro.AvroRecord, node: ColumnNode, place: str
    ) -> None:
        wanted = {each.name: number for number, each in enumerate(reader.fields)}
        for number, each in enumerate(reader.fields):
            for alias in each.aliases:
                wanted.setdefault(alias, number)
        found: dict[int, avro.AvroField] = {}
        for field in writer.fields:
            number = wanted.get(field.name, -1)
            if number >= 0 and number not in found:
                found[number] = field
                inner = f"{place}, field {field.name}"
                self.read(field.type, reader.fields[number].type, node.children[number], inner)
            else:
                self.skip(field.type)
        for number, each in enumerate(reader.fields):
            if number in found:
                continue
            if each.default is NO_DEFAULT:
                raise UnresolvableError(
                    f"{place}: the reader's field {each.name} is not written and has no default"
                )
            self.default(each.type, node.children[number], each.default)

    def _read_list(self, writer: Type, reader: Type, node: ColumnNode, place: str) -> None:
        self.emit(op.LIST, node.items)
        begin = self.emit(op.NEXT, node.items)
        if node.kind == nodes.MAP:
            self.emit(op.TEXT, node.children[0].column, node.items)
        self.read(writer, reader, node.children[-1], f"{place}, items")
        self.emit(op.STEP, node.items, begin)
        self.ops[begin + 2] = self.emit(op.CLOSE, node.column, node.group, node.items)

    def _read_enum(self, writer: avro.Enum, reader: avro.Enum, node: ColumnNode) -> None:
        first = len(self.tables)
        places = {symbol: number for number, symbol in enumerate(reader.symbols)}
        other = places[reader.default] if reader.default is not None else -1
        self.tables += [places.get(symbol, other) for symbol in writer.symbols]
        self.emit(op.ENUM, node.column, node.group, first, 0, len(writer.symbols))

    # --- what is not wanted ---

    def skip(self, writer: Type) -> None:
        """Emit the operations that skip a value of type `writer` without storing it."""
        if isinstance(writer, avro.AvroRecord):
            if self._is_recursive(writer):
                self._calls.append((self.emit(op.CALL), writer))
            else:
                for field in writer.fields:
                    self.skip(field.type)
        elif isinstance(writer, Union):
            first = len(self.tables)
            self.tables += [-1] * len(writer.branches)
            self.emit(op.UNION, 0, 0, first, 0, len(writer.branches))
            jumps = []
            for number, branch in enumerate(writer.branches):
                self.tables[first + number] = len(self.ops)
                self.skip(branch)
                jumps.append(self.emit(op.JUMP))
            for jump in jumps:
                self.ops[jump + 1] = len(self.ops)
        elif isinstance(writer, (avro.AvroArray, avro.Map)):
            self.emit(op.LIST, nodes.NO_COLUMN)
            begin = self.emit(op.NEXT, nodes.NO_COLUMN)
            if isinstance(writer, avro.Map):
                self.emit(op.TEXT, nodes.NO_COLUMN)
            self.skip(writer.items if isinstance(writer, avro.AvroArray) else writer.values)
            self.emit(op.STEP, nodes.NO_COLUMN, begin)
            self.ops[begin + 2] = self.emit(op.CLOSE, nodes.NO_COLUMN)
        elif isinstance(writer, avro.Enum):
            first = len(self.tables)
            self.tables += [0] * len(writer.symbols)
            self.emit(op.ENUM, nodes.NO_COLUMN, 0, first, 0, len(writer.symbols))
        elif isinstance(writer, avro.AvroFixed):
            self.emit(op.FIXED, nodes.NO_COLUMN, 0, writer.size)
        elif writer.kind in ("bytes", "string"):
            self.emit(op.TEXT if writer.kind == "string" else op.BINARY, nodes.NO_COLUMN)
        elif writer.kind != "null":
            operation, checked = _NUMBERS[writer.kind, writer.kind]
            self.emit(operation, nodes.NO_COLUMN, 0, checked)

    def _is_recursive(self, record: avro.AvroRecord) -> bool:
        """Return True if a record contains itself, directly or through other types."""
        known = self._recursive.get(id(record))
        if known is None:
            known = self._recursive[id(record)] = _reaches(record, record, set())
        return known

    def write_skippers(self) -> None:
        """Emit subroutines that skip recursive records, and set the targets of the calls to them."""
        while self._calls:
            at, record = self._calls.pop()
            if id(record) not in self._skippers:
                self._skippers[id(record)] = len(self.ops)
                assert isinstance(record, avro.AvroRecord)
                for field in record.fields:
                    self.skip(field.type)
                self.emit(op.RETURN)
            self.ops[at + 1] = self._skippers[id(record)]

    # --- defaults ---

    def default(self, reader: Type, node: ColumnNode, value: Any) -> None:
        """Emit operations that store a default value. Zero, an empty string and null need no operation."""
        if isinstance(reader, Union):
            branch = next(each for each in reader.branches if avro.fits_default(each, value))
            if branch.kind != "null":
                self.default(branch, self._enter(reader, node, branch), value)
        elif node.kind == nodes.JSON_SPAN:
            raise UnresolvableError("a record that holds itself has a default that is no null")
        elif isinstance(reader, avro.AvroRecord):
            for each, child in zip(reader.fields, node.children, strict=True):
                self.default(each.type, child, value.get(each.name, each.default))
        elif isinstance(reader, (avro.AvroArray, avro.Map)):
            inner = reader.items if isinstance(reader, avro.AvroArray) else reader.values
            for each in value:
                self.emit(op.SIZED, node.items)
                if isinstance(reader, avro.Map):
                    self._set_span(node.children[0], each.encode())
                self.default(inner, node.children[-1], value[each] if isinstance(reader, avro.Map) else each)
                self.emit(op.ADD, node.items)
            self._set(node, node.column, len(value))
        elif node.kind in (nodes.SPAN, nodes.DECIMALS):
            self._set_span(node, value.encode("utf-8" if reader.kind == "string" else "latin-1"))
        elif isinstance(reader, avro.Enum):
            self._set(node, node.column, reader.symbols.index(value))
        elif reader.kind == "float":
            self._set(node, node.column, struct.unpack("<I", struct.pack("<f", float(value)))[0])
        elif reader.kind == "double":
            self._set(node, node.column, struct.unpack("<q", struct.pack("<d", float(value)))[0])
        elif reader.kind != "null":
            self._set(node, node.column, int(value))

    def _set(self, node: ColumnNode, column: int, number: int) -> None:
        if number:
            self.emit(op.SET, column, node.group, number)

    def _set_span(self, node: ColumnNode, data: bytes) -> None:
        if data:
            self._set(node, node.column, self.layout.constant(data))
            self._set(node, node.column + 1, len(data))


def _reaches(made: Type, goal: Type, seen: set[int]) -> bool:
    """Return True if the type `goal` is contained in another type at any depth, as in a recursive record."""
    if id(made) in seen:
        return False
    seen.add(id(made))
    inner: list[Type] = []
    if isinstance(made, avro.AvroRecord):
        inner = [each.type for each in made.fields]
    elif isinstance(made, Union):
        inner = list(made.branches)
    elif isinstance(made, avro.AvroArray):
        inner = [made.items]
    elif isinstance(made, avro.Map):
        inner = [made.values]
    return any(each is goal or _reaches(each, goal, seen) for each in inner)


def _candidates(writer: Type, reader: Union) -> list[Type]:
    """Return the branches of a reader's union that may accept a writer's value, the best match first."""
    name = branch_name(writer)

    def distance(branch: Type) -> int:
        if branch_name(branch) == name:
            return 0
        if isinstance(branch, avro.NamedType) and isinstance(writer, avro.NamedType):
            is_same = branch.short_name == writer.short_name or writer.name in branch.aliases
            return 1 if is_same and branch.kind == writer.kind else 3
        return 2

    return sorted((branch for branch in reader.branches if branch.kind != "null"), key=distance)


def _same_units(writer: Type, reader: Type, place: str) -> None:
    """Raise `UnresolvableError` if two types have different logical types or decimal scales.

    Types of which only one has a logical type are accepted.
    """
    if writer.logical is None or reader.logical is None:
        return
    if writer.logical != reader.logical or writer.scale != reader.scale:
        raise UnresolvableError(f"{place}: {writer.logical} is written, and the reader has {reader.logical}")


def _text_maker(writer: Type) -> Callable[[bytes], str]:
    """Return a function that converts a value of a recursive record to JSON text."""
    import io

    from fastavro import parse_schema, schemaless_reader

    parsed = parse_schema(_without_logical(avro.as_json(writer)))

    def as_text(data: bytes) -> str:
        return json.dumps(schemaless_reader(io.BytesIO(data), parsed, None), default=_bytes_as_text)

    return as_text


def _bytes_as_text(value: object) -> str:
    """Return bytes as text with one character per byte, as in Avro's JSON encoding."""
    if not isinstance(value, bytes):
        raise TypeError(f"no JSON for {type(value).__name__}")
    return value.decode("latin-1")


def _without_logical(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_logical(each) for key, each in found.items() if key != "logicalType"}
    return [_without_logical(each) for each in found] if isinstance(found, list) else found
