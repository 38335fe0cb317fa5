"""Reads JSON values as Arrow columns: with a compiled loop, and with Python's parser for unusual rows."""

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
from penstock.registry.json_schema.program import JsonProgram, is_readable
from penstock.registry.json_schema.shapes import (
    ANY,
    EMPTY,
    LIST,
    MAP,
    OBJECT,
    JsonShape,
    fitted,
    merged,
    shape_of_schema,
    shape_of_type,
    shape_of_value,
)
from penstock.registry.schemas import Schema

CHUNK_BYTES = 8 << 20
HALF_PAIR = "a string has half of a surrogate pair"
NEWLINE, BRACE, CLOSING_BRACE = 0x0A, 0x7B, 0x7D


class JsonFormat:
    """The JSON implementation of `ValueFormat`: with a reader's schema, or the shape inferred from values."""

    def __init__(self, schema: Schema | None, referenced: Mapping[str, Schema]) -> None:
        """Parse the reader's schema, if there is one, with the schemas that it refers to.

        Raises:
            DecodeError: the text is not a JSON Schema.
        """
        self.shape: JsonShape | None = None
        if schema is not None:
            self.shape = shape_of_schema(
                parse_json_schema(schema.text),
                {name: parse_json_schema(each.text) for name, each in referenced.items()},
            )

    @property
    def type(self) -> pa.DataType | None:
        """Return the Arrow type, or None if it is inferred and no values have been read."""
        return None if self.shape is None else self.shape.type

    def reading(self, writer: Schema, referenced: Mapping[str, Schema], path: tuple[int, ...]) -> JsonReading:
        """Return an object that reads JSON values. The writer's schema is ignored: JSON values need none."""
        return JsonReading(self)


class JsonReading:
    """Reads JSON values into columns; the `JsonShape` of a `JsonFormat` determines the columns."""

    def __init__(self, format: JsonFormat) -> None:
        self._format = format

    def read(self, data: Bytes, starts: Ints, ends: Ints) -> tuple[pa.Array, Ints, Mapping[int, str]]:
        """Return (decoded values as an array, indices of their rows, a reason for each undecodable row)."""
        if self._format.shape is None:
            self._format.shape = _inferred(data, starts, ends)
        shape = self._format.shape
        dead: dict[int, str] = {}
        if not len(starts):
            return pa.nulls(0, shape.type), np.zeros(0, dtype=np.int64), dead
        arrays, places = [], []
        left = [np.arange(len(starts))]
        if shape.kind in (OBJECT, LIST, MAP) and is_readable(shape):
            left = []
            for chunk in JsonProgram(shape).read(data, starts, ends):
                arrays.append(chunk.array)
                places.append(chunk.rows)
                left.append(chunk.odd)
        odd = np.concatenate(left)
        if len(odd):
            array, kept = _one_by_one(data, starts, ends, odd, shape, dead)
            arrays.append(array)
            places.append(kept)
        array = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return array, np.concatenate(places), dead


def parse_json_schema(text: str) -> Any:
    """Return the parsed JSON of a schema.

    Raises:
        DecodeError: the text is not JSON, or is neither an object nor a boolean.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the JSON Schema is no JSON: {error}") from None
    if not isinstance(found, (dict, bool)):
        raise DecodeError("a JSON Schema is an object, or true or false")
    return found


def _joined(data: Bytes, starts: Ints, ends: Ints) -> bytes | None:
    """Return the rows as lines of text for Arrow's parser, or None if a row is not an object on one line."""
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
    copy_spans(data, newline, places, lengths, len(places), np.zeros(len(places) + 1, dtype=np.int32), target)
    if int(np.count_nonzero(target == NEWLINE)) != len(sizes) or not is_utf8(target, 0, len(target)):
        return None
    return target.tobytes()


def _table(lines: bytes) -> pa.Table | None:
    """Parse lines of JSON with Arrow's parser; return a table, or None if the parser refuses a line."""
    try:
        return arrow_json.read_json(
            pa.BufferReader(lines),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        )
    except (pa.ArrowException, ValueError):
        return None


def _one_by_one(
    data: Bytes, starts: Ints, ends: Ints, rows: Ints, shape: JsonShape, dead: dict[int, str]
) -> tuple[pa.Array, Ints]:
    """Read rows with Python's parser; return (values, their rows); add reasons for other rows to `dead`."""
    values, kept = [], []
    for row in rows.tolist():
        try:
            values.append(fitted(loaded(data[starts[row] : ends[row]].tobytes()), shape))
        except DecodeError as error:
            dead[row] = str(error)
        except RecursionError:
            dead[row] = "the value is nested too deeply"
        else:
            kept.append(row)
    try:
        return pa.array(values, shape.type), np.array(kept, dtype=np.int64)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON may write and UTF-8 may not
        whole = [place for place, value in enumerate(values) if _is_text(value, shape)]
        dead.update((kept[place], HALF_PAIR) for place in set(range(len(kept))).difference(whole))
        found = pa.array([values[place] for place in whole], shape.type)
        return found, np.array(kept, dtype=np.int64)[whole]


def _is_text(value: Any, shape: JsonShape) -> bool:
    try:
        pa.array([value], shape.type)
    except UnicodeEncodeError:
        return False
    return True


def loaded(data: bytes) -> Any:
    """Return the value of a JSON text. NaN and infinities are accepted, since many writers write them.

    Raises:
        DecodeError: the text is not JSON.
    """
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise DecodeError("the value is not UTF-8") from None
    except RecursionError:
        raise DecodeError("the value is nested too deeply") from None
    except ValueError as error:
        raise DecodeError(f"the value is no JSON: {error}") from None


def _inferred(data: Bytes, starts: Ints, ends: Ints) -> JsonShape:
    """Return the common shape of the rows, or the shape of JSON text if they have no common shape."""
    lines = _joined(data, starts, ends) if int((ends - starts).sum()) < CHUNK_BYTES else None
    table = None if lines is None else _table(lines)
    if table is not None and table.num_rows == len(starts):
        return shape_of_type(pa.struct(list(table.schema)))
    shape = EMPTY
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        try:
            shape = merged(shape, shape_of_value(loaded(data[start:end].tobytes())))
        except (DecodeError, RecursionError):
            continue
    return shape if shape != EMPTY else ANY
