"""JSON values as Arrow columns: Arrow's parser for most, one by one where a row is unusual."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from penstock.errors import DecodeError
from penstock.records.kernels.compiled import Bytes, Ints
from penstock.registry.columns.span_kernels import copy_spans, is_utf8
from penstock.registry.json_schema.shapes import (
    ANY,
    EMPTY,
    OBJECT,
    Shape,
    fitted,
    merged,
    shape_of_schema,
    shape_of_type,
    shape_of_value,
)
from penstock.registry.schemas import Schema

CHUNK_BYTES = 8 << 20
NEWLINE, BRACE, CLOSING_BRACE = 0x0A, 0x7B, 0x7D


class JsonFormat:
    """JSON with the reader's schema, or with the shape that the first values have."""

    def __init__(self, schema: Schema | None, referenced: Mapping[str, Schema]) -> None:
        """Take the reader's schema, and those that it refers to.

        Raises:
            DecodeError: it is no JSON Schema.
        """
        self.shape: Shape | None = None
        if schema is not None:
            self.shape = shape_of_schema(
                parse_json_schema(schema.text),
                {name: parse_json_schema(each.text) for name, each in referenced.items()},
            )

    @property
    def type(self) -> pa.DataType | None:
        """The Arrow type; None before values have shown it."""
        return None if self.shape is None else self.shape.type

    def reading(self, writer: Schema, referenced: Mapping[str, Schema], path: tuple[int, ...]) -> JsonReading:
        """Return how values are read: JSON itself says what it holds, without the writer's schema."""
        return JsonReading(self)


class JsonReading:
    """Reads JSON values into the shape of a format."""

    def __init__(self, format: JsonFormat) -> None:
        self._format = format

    def read(self, data: Bytes, starts: Ints, ends: Ints) -> tuple[pa.Array, Ints, Mapping[int, str]]:
        """Return an array, the rows that are in it, and the reason of each other row."""
        if self._format.shape is None:
            self._format.shape = _inferred(data, starts, ends)
        shape = self._format.shape
        dead: dict[int, str] = {}
        arrays, places = [], []
        for begin, stop in _chunks(starts, ends):
            array = None
            if shape.kind == OBJECT and shape.is_parsed_by_arrow:
                array = _parsed(data, starts[begin:stop], ends[begin:stop], shape)
            rows = np.arange(begin, stop)
            if array is None:
                array, kept = _one_by_one(data, starts, ends, begin, stop, shape, dead)
                rows = np.array(kept, dtype=np.int64)
            arrays.append(array)
            places.append(rows)
        if not arrays:
            return pa.nulls(0, shape.type), np.zeros(0, dtype=np.int64), dead
        return pa.concat_arrays(arrays), np.concatenate(places), dead


def parse_json_schema(text: str) -> Any:
    """Return the JSON of a schema.

    Raises:
        DecodeError: it is no JSON, or neither an object nor a truth value.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the JSON Schema is no JSON: {error}") from None
    if not isinstance(found, (dict, bool)):
        raise DecodeError("a JSON Schema is an object, or true or false")
    return found


def _chunks(starts: Ints, ends: Ints) -> list[tuple[int, int]]:
    """Rows whose bytes are parsed together."""
    found, begin = [], 0
    sizes = np.cumsum(ends - starts + 1)
    while begin < len(starts):
        before = int(sizes[begin - 1]) if begin else 0
        stop = max(begin + 1, int(np.searchsorted(sizes, before + CHUNK_BYTES)))
        found.append((begin, min(stop, len(starts))))
        begin = stop
    return found


def _joined(data: Bytes, starts: Ints, ends: Ints) -> bytes | None:
    """Rows as lines, or None where a row is not one object on one line."""
    sizes = ends - starts
    if not len(sizes) or int(sizes.min()) < 2:
        return None
    if (data[starts] != BRACE).any() or (data[ends - 1] != CLOSING_BRACE).any():
        return None
    total = int(sizes.sum())
    # Every second span is a newline, which is the only constant.
    places = np.full(2 * len(sizes), -1, dtype=np.int64)
    places[::2] = starts
    lengths = np.ones(2 * len(sizes), dtype=np.int64)
    lengths[::2] = sizes
    target = np.empty(total + len(sizes), dtype=np.uint8)
    newline = np.array([NEWLINE], dtype=np.uint8)
    copy_spans(data, newline, places, lengths, len(places), np.empty(len(places) + 1, dtype=np.int32), target)
    if int(np.count_nonzero(target == NEWLINE)) != len(sizes) or not is_utf8(target, 0, len(target)):
        return None
    return target.tobytes()


def _table(lines: bytes, schema: pa.Schema | None) -> pa.Table | None:
    """What Arrow's parser makes of lines, or None where it refuses one."""
    behavior = "infer" if schema is None else "ignore"
    try:
        return arrow_json.read_json(
            pa.BufferReader(lines),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=behavior),
        )
    except (pa.ArrowException, ValueError):
        return None


def _parsed(data: Bytes, starts: Ints, ends: Ints, shape: Shape) -> pa.Array | None:
    """The rows as an array, or None where one of them has to be looked at by itself."""
    lines = _joined(data, starts, ends)
    if lines is None:
        return None
    table = _table(lines, pa.schema(list(shape.type)))
    # Each line has one object at least: as many rows as lines means that each has exactly one.
    if table is None or table.num_rows != len(starts):
        return None
    found = table.to_struct_array()
    array = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    return array if array.type == shape.type else array.cast(shape.type)


def _one_by_one(
    data: Bytes, starts: Ints, ends: Ints, begin: int, stop: int, shape: Shape, dead: dict[int, str]
) -> tuple[pa.Array, list[int]]:
    values, kept = [], []
    for row in range(begin, stop):
        try:
            values.append(fitted(loaded(data[starts[row] : ends[row]].tobytes()), shape))
        except DecodeError as error:
            dead[row] = str(error)
        else:
            kept.append(row)
    return pa.array(values, shape.type), kept


def loaded(data: bytes) -> Any:
    """Return the value that JSON text holds.

    Raises:
        DecodeError: it is no JSON. NaN and infinities are taken, since many writers write them.
    """
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise DecodeError("the value is not UTF-8") from None
    except RecursionError:
        raise DecodeError("the value is nested too deeply") from None
    except ValueError as error:
        raise DecodeError(f"the value is no JSON: {error}") from None


def _inferred(data: Bytes, starts: Ints, ends: Ints) -> Shape:
    """The shape that rows show; JSON text where they have none together."""
    lines = _joined(data, starts, ends) if int((ends - starts).sum()) < CHUNK_BYTES else None
    table = None if lines is None else _table(lines, None)
    if table is not None and table.num_rows == len(starts):
        return shape_of_type(pa.struct(list(table.schema)))
    shape = EMPTY
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        try:
            shape = merged(shape, shape_of_value(loaded(data[start:end].tobytes())))
        except (DecodeError, RecursionError):
            continue
    return shape if shape != EMPTY else ANY
