"""Derive the records that an Arrow filter (`pyarrow.compute.Expression`) may select.

pyarrow has no interface to the parts of an expression. The serialized form has them: a batch of literals,
whose schema metadata lists calls, fields and literals in order. A part of an unknown form is ignored.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from penstock.queries.pushdown.wanted import EVERYTHING, NOTHING, Wanted, comparison, is_null, one_of

OPERATORS = {"equal": "==", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
MIRRORED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
DEPTH_MAX = 200
"""The greatest depth of a filter expression that is analysed. For deeper ones, all records are read."""


class ColumnField(NamedTuple):
    """A reference in a filter to a column of the data set."""

    name: str


class Nested(NamedTuple):
    """A reference in a filter to a field inside a struct column. Only the name of the column is stored."""

    column: str


class Literal(NamedTuple):
    """A literal value in a filter."""

    value: object


class FunctionCall(NamedTuple):
    """A function call in a filter, with its arguments and options."""

    function: str
    arguments: tuple[object, ...]
    options: dict[str, Any] | None


def wanted_by(filter: pc.Expression | None) -> Wanted:
    """Return a set with all records that a filter may select; `EVERYTHING` if its form is unknown."""
    if filter is None:
        return EVERYTHING
    try:
        tree = parsed(filter)
    except (pa.ArrowException, ValueError, KeyError, IndexError, RecursionError):
        return EVERYTHING
    return _wanted(tree)


def columns_of(filter: pc.Expression) -> set[str] | None:
    """Return the columns that a filter uses, or None if they cannot be determined."""
    try:
        return set(_columns(parsed(filter)))
    except (pa.ArrowException, ValueError, KeyError, IndexError, RecursionError):
        return None


def _columns(node: object) -> Iterator[str]:
    if isinstance(node, ColumnField):
        yield node.name
    elif isinstance(node, Nested):
        yield node.column
    elif isinstance(node, FunctionCall):
        for argument in node.arguments:
            yield from _columns(argument)


def parsed(expression: pc.Expression) -> object:
    """Return the tree of an expression: `FunctionCall`, `ColumnField`, `Nested` and `Literal`.

    Raises:
        ValueError: the serialized form is unknown, or too deep.
        pyarrow.ArrowException: the expression cannot be serialized.
    """
    (buffer,) = expression.__reduce__()[1]
    reader = pyarrow.ipc.open_file(buffer)
    batch = reader.get_batch(0)
    return _node(deque(_entries(batch.schema)), batch, 0)


def _node(entries: deque[tuple[str, str]], batch: pa.RecordBatch, depth: int) -> object:
    kind, text = entries.popleft()
    if depth > DEPTH_MAX:
        raise ValueError("the expression is too deep")
    if kind == "literal":
        return Literal(_value(batch.column(int(text))[0]))
    if kind == "field_ref":
        return ColumnField(text)
    if kind == "nested_field_ref":
        path = [_node(entries, batch, depth + 1) for _ in range(int(text))]
        if not isinstance(path[0], ColumnField):
            raise ValueError("a nested field without a name")
        return Nested(path[0].name)
    if kind != "call":
        raise ValueError(f"an expression of kind {kind!r}")
    arguments: list[object] = []
    options: dict[str, Any] | None = None
    while True:
        if entries[0][0] == "end":
            entries.popleft()
            return FunctionCall(text, tuple(arguments), options)
        if entries[0][0] == "options":
            options = _value(batch.column(int(entries.popleft()[1]))[0])
        else:
            arguments.append(_node(entries, batch, depth + 1))


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except Exception:
        return scalar  # beyond what Python's own type holds: nothing follows from it


def _entries(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return all entries of a schema's metadata in order, with duplicates (`Schema.metadata` drops these).

    They are read from Arrow's C data interface: counts and lengths of 32 bits, then bytes.
    """
    capsule = schema.__arrow_c_schema__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer_of(capsule, b"arrow_schema")
    at: int | None = (ctypes.c_void_p * 3).from_address(address)[2]
    if at is None:
        return []
    place = at

    def number() -> int:
        nonlocal place
        found = ctypes.c_int32.from_address(place).value
        place += 4
        return found

    def text() -> str:
        nonlocal place
        size = number()
        found = ctypes.string_at(place, size)
        place += size
        return found.decode()

    return [(text(), text()) for _ in range(number())]


def _wanted(node: object) -> Wanted:
    if isinstance(node, Literal):
        return NOTHING if node.value is None or node.value is False else EVERYTHING
    if not isinstance(node, FunctionCall):
        return EVERYTHING
    function, arguments = node.function.removesuffix("_kleene"), node.arguments
    if function == "and":
        return _wanted(arguments[0]).both(_wanted(arguments[1]))
    if function == "or":
        return _wanted(arguments[0]).either(_wanted(arguments[1]))
    if function in OPERATORS and len(arguments) == 2:
        return _comparison(OPERATORS[function], *arguments)
    if function == "is_in" and isinstance(arguments[0], ColumnField):
        return _is_in(arguments[0].name, node.options)
    if function == "is_null" and isinstance(arguments[0], ColumnField):
        return is_null(arguments[0].name)
    if function == "if_else" and isinstance(arguments[2], Literal) and not arguments[2].value:
        # DuckDB's form of IN: where the first holds, the second counts; else nothing is let through.
        return _wanted(arguments[0]).both(_wanted(arguments[1]))
    return EVERYTHING


def _comparison(operator: str, left: object, right: object) -> Wanted:
    if isinstance(left, Literal) and isinstance(right, ColumnField):
        left, right, operator = right, left, MIRRORED[operator]
    if isinstance(left, ColumnField) and isinstance(right, Literal):
        return comparison(left.name, operator, right.value)
    return EVERYTHING


def _is_in(column: str, options: dict[str, Any] | None) -> Wanted:
    values = None if options is None else options.get("value_set")
    if not isinstance(values, list) or (None in values and column in ("key",)):
        return EVERYTHING
    return one_of(column, values)
