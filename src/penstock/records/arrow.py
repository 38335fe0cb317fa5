"""Convert record columns to Arrow and back, without copying their bytes.

The schema is that of Spark's Kafka source. Each column has the type that Spark reads without a cast:
32-bit partitions and timestamp types, timestamps in microseconds, UTC, the list item called ``element``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import DecodeError, EncodeError
from penstock.model import COLUMN_NAMES, NO_TIMESTAMP
from penstock.records.columns import (
    COLUMN_BYTES_MAX,
    NO_BYTES,
    BytesColumn,
    HeadersColumn,
    RecordColumns,
    empty,
)
from penstock.records.kernels.compiled import Bytes, Int32s, Ints
from penstock.records.kernels.decode_kernels import scale

HEADER_TYPE: pa.DataType = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE: pa.DataType = pa.list_(pa.field("element", HEADER_TYPE))
TIMESTAMP_TYPE: pa.DataType = pa.timestamp("us", tz="UTC")

SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP_TYPE),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", HEADERS_TYPE),
    ]
)
"""The Arrow schema with every column that a record can have."""

_MICROSECOND_MS_MAX = (1 << 63) // 1000 - 1
_CONSTANT_ROWS_MAX = 1 << 16


def schema_for(columns: Iterable[str]) -> pa.Schema:
    """Return the Arrow schema of the columns with these names, in the order given.

    Raises:
        ValueError: a name is not one of `COLUMN_NAMES`.
    """
    try:
        return pa.schema([SCHEMA.field(name) for name in columns])
    except KeyError as error:
        raise ValueError(f"no such column: {error}; known: {', '.join(COLUMN_NAMES)}") from None


# --- to Arrow -----------------------------------------------------------------------------------------


def to_arrow(
    columns: RecordColumns, topic: str, partition: int, names: Sequence[str] = COLUMN_NAMES
) -> pa.RecordBatch:
    """Return `columns` as a record batch with the columns `names`, in that order.

    The columns share memory. A timestamp too large for microseconds (after the year 294,246) becomes the
    maximum.

    Raises:
        ValueError: a name is unknown, or its column was not decoded.
    """
    schema = schema_for(names)
    return pa.RecordBatch.from_arrays(
        [_array(columns, topic, partition, name) for name in names], schema=schema
    )


def _array(columns: RecordColumns, topic: str, partition: int, name: str) -> pa.Array:
    rows = columns.row_count
    if name == "topic":
        return _constant(topic, rows)
    if name == "partition":
        if columns.partitions is not None:
            return _numbers(pa.int32(), columns.partitions)
        return _constant(partition, rows)
    held = {
        "key": columns.key,
        "value": columns.value,
        "offset": columns.offsets,
        "timestamp": columns.timestamps,
        "timestampType": columns.timestamp_types,
        "headers": columns.headers,
    }[name]
    if held is None:
        raise ValueError(f"column {name!r} was not decoded")
    if isinstance(held, BytesColumn):
        return _byte_strings(pa.binary(), held)
    if isinstance(held, HeadersColumn):
        return _headers(held)
    if name == "timestamp":
        return _numbers(TIMESTAMP_TYPE, _microseconds(held))
    return _numbers(pa.int64() if name == "offset" else pa.int32(), held)


def _microseconds(milliseconds: NDArray[Any]) -> NDArray[Any]:
    limit = _MICROSECOND_MS_MAX
    microseconds = empty(len(milliseconds), np.int64)
    scale(np.ascontiguousarray(milliseconds), 1000, limit, microseconds)
    return microseconds


def _numbers(kind: pa.DataType, numbers: Ints | Int32s) -> pa.Array:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def _byte_strings(kind: pa.DataType, column: BytesColumn) -> pa.Array:
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, len(column), buffers, null_count=column.null_count)


def _headers(column: HeadersColumn) -> pa.Array:
    children = [_byte_strings(pa.string(), column.names), _byte_strings(pa.binary(), column.values)]
    pairs = pa.Array.from_buffers(HEADER_TYPE, len(column.names), [None], null_count=0, children=children)
    offsets = [None, pa.py_buffer(column.offsets)]
    return pa.Array.from_buffers(HEADERS_TYPE, len(column), offsets, null_count=0, children=[pairs])


def _constant(value: str | int, rows: int) -> pa.Array:
    """Return an Arrow array with `value` in each of `rows` rows; a short one is a slice of a cached array."""
    if rows > _CONSTANT_ROWS_MAX:
        return _repeat(value, rows)
    return _constants(value).slice(0, rows)


@lru_cache(maxsize=64)
def _constants(value: str | int) -> pa.Array:
    return _repeat(value, _CONSTANT_ROWS_MAX)


def _repeat(value: str | int, rows: int) -> pa.Array:
    if isinstance(value, int):
        numbers = empty(rows, np.int32)
        numbers.fill(value)
        return _numbers(pa.int32(), numbers)
    text = value.encode()
    if rows * len(text) > COLUMN_BYTES_MAX:
        raise DecodeError(f"{rows} rows of topic {value!r} are more than a column holds: decode in pieces")
    ends = empty(rows + 1, np.int32)
    ends.fill(len(text))
    ends[0] = 0
    np.cumsum(ends, out=ends)
    return pa.Array.from_buffers(
        pa.string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(_repeated(text, rows))]
    )


def _repeated(text: bytes, rows: int) -> Bytes:
    """Return bytes that contain `text` `rows` times in a row, as the data buffer of a constant column."""
    target = empty(rows * len(text), np.uint8)
    done = len(text) if rows else 0
    target[:done] = np.frombuffer(text, dtype=np.uint8)[:done]
    while done < len(target):
        step = min(done, len(target) - done)
        target[done : done + step] = target[:step]
        done += step
    return target


# --- from Arrow ---------------------------------------------------------------------------------------


def from_arrow(batch: pa.RecordBatch, *, timestamp_ms: int = NO_TIMESTAMP) -> RecordColumns:
    """Return the columns ``key``, ``value``, ``headers`` and ``timestamp`` of `batch` as record columns.

    A column that `batch` does not have is None in the result; further columns of `batch` are ignored. Keys
    and values may be binary or strings of any width, or null; headers a list of (name, value) structs or a
    map; timestamps of any unit, or integers in milliseconds. Rows without a timestamp get `timestamp_ms`.
    Columns of type `binary` are not copied.

    Raises:
        EncodeError: a column has a type that does not fit its record field, or has more than 2 GiB.
    """
    rows = batch.num_rows
    present = set(batch.schema.names)
    columns = RecordColumns(rows)
    if "key" in present:
        columns.key = _bytes_from(batch.column("key"), "key")
    if "value" in present:
        columns.value = _bytes_from(batch.column("value"), "value")
    if "headers" in present:
        columns.headers = _headers_from(batch.column("headers"))
    if "timestamp" in present:
        columns.timestamps = _milliseconds_from(batch.column("timestamp"), timestamp_ms)
    else:
        columns.timestamps = np.full(rows, timestamp_ms, dtype=np.int64)
    return columns


def _cast(array: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    try:
        return array.cast(kind)
    except pa.ArrowException as error:
        raise EncodeError(
            f"column {name!r} of type {array.type} cannot be written as {kind}: {error}"
        ) from None


def _bytes_from(array: pa.Array, name: str) -> BytesColumn:
    if not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        if pa.types.is_dictionary(array.type):
            array = _decoded(array)
        if (
            pa.types.is_integer(array.type)
            or pa.types.is_floating(array.type)
            or pa.types.is_boolean(array.type)
        ):
            raise EncodeError(
                f"column {name!r} is {array.type}: records hold bytes; convert it to binary or string"
            )
        array = _cast(array, pa.binary(), name)
    validity, offsets, data = array.buffers()
    column_offsets: Int32s = (
        np.frombuffer(offsets, dtype=np.int32) if offsets and offsets.size else np.zeros(1, np.int32)
    )
    return BytesColumn(
        np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else NO_BYTES,
        column_offsets[array.offset : array.offset + len(array) + 1],
        np.frombuffer(validity, dtype=np.uint8) if validity is not None and array.null_count else None,
        array.null_count,
        array.offset,
    )


def _decoded(array: pa.Array) -> pa.Array:
    """Return the values of a dictionary-encoded array, one for each row."""
    if array.type.value_type in (pa.string_view(), pa.binary_view()):
        # As Polars has them; pyarrow cannot take elements out of them.
        values = array.dictionary.cast(pa.large_binary())
        array = pa.DictionaryArray.from_arrays(array.indices, values)
    return array.dictionary_decode()


def _headers_from(array: pa.Array) -> HeadersColumn:
    kind = array.type
    if pa.types.is_null(kind):
        array = array.cast(HEADERS_TYPE)
    elif pa.types.is_map(kind):
        array = array.cast(pa.map_(pa.string(), pa.binary())) if kind.key_type != pa.string() else array
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(
        kind.value_type
    ):
        raise EncodeError(f"column 'headers' is {kind}: a list of structs (name, value) or a map is needed")
    elif pa.types.is_large_list(kind):
        array = _cast(array, pa.list_(kind.value_field), "headers")
    if array.null_count:
        array = _without_null_lists(array)
    pairs: Any = array.values
    if pairs.type.num_fields != 2:
        raise EncodeError(f"a header has a name and a value, not {pairs.type.num_fields} fields")
    if pairs.null_count:
        raise EncodeError("a header that is null: leave it out instead")
    names, values = pairs.field(0), pairs.field(1)
    if names.null_count:
        raise EncodeError("a header without a name")
    offsets: Int32s = np.asarray(array.offsets)
    return HeadersColumn(offsets, _bytes_from(names, "headers.key"), _bytes_from(values, "headers.value"))


def _without_null_lists(array: pa.Array) -> pa.Array:
    """Return `array` with an empty list for each null list, because a null list may have hidden entries."""
    return pa.concat_arrays([array.fill_null(pa.scalar([], array.type))])


def _milliseconds_from(array: pa.Array, default_ms: int) -> Ints:
    kind = array.type
    if pa.types.is_timestamp(kind):
        if kind.unit != "ms":
            array = array.cast(pa.timestamp("ms", tz=kind.tz), safe=False)
        array = array.cast(pa.int64())
    elif pa.types.is_null(kind):
        return np.full(len(array), default_ms, dtype=np.int64)
    elif pa.types.is_integer(kind):
        array = _cast(array, pa.int64(), "timestamp")
    else:
        raise EncodeError(
            f"column 'timestamp' is {kind}: a timestamp, or milliseconds as integers, is needed"
        )
    if array.null_count:
        array = array.fill_null(default_ms)
    milliseconds: Ints = np.asarray(array)
    return milliseconds
