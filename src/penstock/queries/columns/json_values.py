"""Columns from JSON objects in values, by a given schema or one inferred from a sample.

A column is null in a row whose value is no JSON object, or whose field has another type than the column. A
query never fails because of one record, and the column `value` still has the text.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

SAMPLE_ROWS = 200
FIELDS_MAX = 500
"""Most columns that are inferred from a sample; further fields are only in the column `value`."""

DEPTH_MAX = 8
"""Depth of nesting down to which objects become struct columns; deeper ones become text."""

INT64 = range(-(1 << 63), 1 << 63)


class JsonColumns:
    """Decodes JSON objects into the columns of a schema."""

    def __init__(self, fields: pa.Schema) -> None:
        self._fields = fields
        self._kind = pa.struct(list(fields))

    def of(self, values: pa.Array) -> Mapping[str, pa.Array]:
        """Decode binary values; return the columns, which are null where a value is null or does not fit."""
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        rows = self._at_once(values)
        if rows is None:
            rows = self._halved(values)
        return {name: pc.struct_field(rows, name) for name in self._fields.names}

    def judged(self, values: pa.Array) -> tuple[Mapping[str, pa.Array], Mapping[int, str]]:
        """Return (the columns that `of` returns, a dict from each row that does not fit to its error).

        A row does not fit if it is no JSON object, or if a field has another type than its
        column. A value that is null fits.
        """
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        rows = self._at_once(values)
        reasons: dict[int, str] = {}
        if rows is None:
            rows = self._halved(values, reasons)
        return {name: pc.struct_field(rows, name) for name in self._fields.names}, reasons

    def _halved(self, values: pa.Array, reasons: dict[int, str] | None = None, first: int = 0) -> pa.Array:
        """Decode rows by bisection, to isolate those that do not fit, in parts of down to 64 rows."""
        if len(values) <= 64:
            made = [_row(one, self._kind) for one in values.to_pylist()]
            if reasons is not None:
                for row, (value, fitted) in enumerate(zip(values.to_pylist(), made, strict=True)):
                    if value is not None and (reason := _misfit(_parsed(value), fitted, self._kind)):
                        reasons[first + row] = reason
            return pa.array(made, self._kind)
        middle = len(values) // 2
        parts = []
        for begin, part in ((0, values[:middle]), (middle, values[middle:])):
            rows = self._at_once(part)
            parts.append(self._halved(part, reasons, first + begin) if rows is None else rows)
        return pa.concat_arrays(parts)

    def _at_once(self, values: pa.Array) -> pa.Array | None:
        """Decode all rows with one call of pyarrow; return None if any row is no JSON or does not fit."""
        if not len(values):
            return pa.array([], self._kind)
        flat = pc.fill_null(values, b"null")
        if pc.any(pc.match_substring(flat, "\n")).as_py():
            flat = pc.replace_substring(flat, "\n", " ")  # white space, or what JSON forbids in strings
        # In a member of its own a value that is several, or half of one, is an error and moves no row.
        lines = pc.binary_join_element_wise(b'{"v":', flat, b"}\n", b"")
        try:
            table = pyarrow.json.read_json(
                io.BytesIO(b"".join(lines.to_pylist())),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=_room(lines)),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=pa.schema([("v", self._kind)]), unexpected_field_behavior="ignore"
                ),
            )
        except (pa.ArrowException, ValueError):
            return None
        if table.num_rows != len(values):
            return None
        return table.column("v").combine_chunks()


def _room(lines: pa.Array) -> int:
    return min(max(1 << 16, int(lines.nbytes) + 1), (1 << 31) - 1)


def inferred(values: Iterable[bytes | None]) -> pa.Schema:
    """Return a schema inferred from sample values: the fields of their objects in order of appearance.

    Whole numbers are int64, other numbers double, texts string; a field with several types is string.
    """
    kinds: dict[str, pa.DataType | None] = {}
    for value in values:
        row = _parsed(value)
        if isinstance(row, dict):
            for name, one in _named(row):
                if name in kinds or len(kinds) < FIELDS_MAX:
                    kinds[name] = _joined(kinds.get(name), _kind(one, 0))
    return pa.schema([(name, pa.string() if kind is None else kind) for name, kind in kinds.items()])


def _named(row: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the members of a JSON object, without those whose name has a lone surrogate."""
    return [(name, value) for name, value in row.items() if _is_text(name)]


def _is_text(value: str) -> bool:
    r"""Return True if a text has no lone surrogate (as ``"\ud800"``), which no column can contain."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_object(value: bytes | None) -> bool:
    """Return True if a value is a JSON object."""
    return isinstance(_parsed(value), dict)


def _parsed(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _kind(value: object, depth: int) -> pa.DataType | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if value in INT64 else pa.float64()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, dict) and value and depth < DEPTH_MAX:
        kinds = [(name, _kind(one, depth + 1)) for name, one in _named(value)]
        if not kinds:
            return pa.string()
        return pa.struct([(name, pa.string() if kind is None else kind) for name, kind in kinds])
    if isinstance(value, list) and value and depth < DEPTH_MAX:
        kind: pa.DataType | None = None
        for one in value:
            kind = _joined(kind, _kind(one, depth + 1))
        if kind is not None and not pa.types.is_nested(kind):
            return pa.list_(kind)
    return pa.string()


def _joined(one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
    if one is None or other is None or one == other:
        return other if one is None else one
    numbers = {pa.int64(), pa.float64()}
    if one in numbers and other in numbers:
        return pa.float64()
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_joined(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields: dict[str, pa.DataType | None] = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _joined(fields.get(field.name), field.type)
        return pa.struct(list(fields.items()))
    return pa.string()


def _row(value: bytes | None, kind: pa.DataType) -> object:
    try:
        return _fitted(_parsed(value), kind)
    except RecursionError:  # of a text of objects in objects
        return None


def _misfit(value: object, fitted: object, kind: pa.DataType, path: str = "") -> str | None:
    """Return the reason why `value` does not fit the type `kind`, or None if it fits.

    `fitted` is the value as `_fitted` has converted it; `path` is the name of the field.
    """
    if not path and not isinstance(value, dict):
        return "the value is no JSON object"
    if value is not None and fitted is None:
        return f"field {path} is no {kind}"
    if isinstance(value, dict) and isinstance(fitted, dict):
        for field in kind:
            name = f"{path}.{field.name}" if path else field.name
            if reason := _misfit(value.get(field.name), fitted[field.name], field.type, name):
                return reason
    if isinstance(value, list) and isinstance(fitted, list):
        for one, made in zip(value, fitted, strict=True):
            if reason := _misfit(one, made, kind.value_type, f"{path}[]"):
                return reason
    return None


def _fitted(value: object, kind: pa.DataType) -> Any:
    """Convert a parsed JSON value for a column of type `kind`; return None if it does not fit the type."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {field.name: _fitted(value.get(field.name), field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_fitted(one, kind.value_type) for one in value] if isinstance(value, list) else None
    if pa.types.is_string(kind):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return text if _is_text(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if pa.types.is_floating(kind):
        return float(value) if isinstance(value, (int, float)) and abs(value) < 1e308 else None
    if pa.types.is_timestamp(kind) and isinstance(value, str):
        return _moment(value)
    if pa.types.is_integer(kind) and isinstance(value, float) and not value.is_integer():
        return None  # Arrow would cut what is behind the point
    try:
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
