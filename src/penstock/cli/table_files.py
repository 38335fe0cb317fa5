"""Reads and writes records as Parquet and CSV files, and converts rows of any table to JSON. Needs pyarrow.

An output file appears only when it is complete. A value that the format cannot hold, or a column that would
be lost, is an error.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from penstock.cli.decoded_values import json_text
from penstock.cli.interrupts import before_the_end
from penstock.common.atomic_files import renamed
from penstock.errors import ConfigError

FORMATS = ("parquet", "csv")
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
DEVICES = ("/dev", "/dev/fd")
"""Directories of devices: output to a device is written directly, without a temporary file."""

READ_ROWS = 1 << 16
CSV_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
BYTES_COLUMNS = ("key", "value", "headers")
ENCODED = "_base64"
"""The suffix of the names of CSV columns with bytes in base64."""

KNOWN = {"topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"}
KNOWN |= {name + ENCODED for name in BYTES_COLUMNS}
MILLISECONDS = pa.timestamp("ms", tz="UTC")


@contextlib.contextmanager
def output_file(path: str) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name only when the block ends without an error.

    ``-`` and /dev/stdout are stdout. A device or a pipe is written to directly. For a symbolic link, its
    target is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    if path in STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if target.parent.as_posix() in DEVICES or (target.exists() and not target.is_file()):
        with target.open("wb") as file:
            yield file
        return
    target = target.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    before_the_end(lambda: partial.unlink(missing_ok=True))
    try:
        opened = partial.open("wb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None  # not the name of the partial file
    with renamed(str(partial), str(target)), opened as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: IO[bytes]) -> int:
    """Write batches of records as Parquet; return the number of records."""
    rows = 0
    with pa.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def write_csv(batches: Iterable[pa.RecordBatch], file: IO[bytes], *, in_base64: bool) -> int:
    """Write batches of records as CSV; return the number of records.

    Text is quoted and null is not, so that empty text and null differ.

    Raises:
        ConfigError: a key, value or header is not UTF-8, and `in_base64` is not set.
    """
    rows = 0
    names = [name + ENCODED if in_base64 and name in BYTES_COLUMNS else name for name in CSV_COLUMNS]
    types = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": MILLISECONDS}
    schema = pa.schema([pa.field(name, types.get(name, pa.string())) for name in names])
    with pa.csv.CSVWriter(file, schema) as writer:
        for batch in batches:
            columns = [_csv_column(batch, name, in_base64=in_base64) for name in CSV_COLUMNS]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            rows += batch.num_rows
    return rows


def write_flat_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: IO[bytes]) -> int:
    """Write batches of decoded records as CSV; return the number of records.

    The fields of a struct become columns, such as ``value.id``; lists and nested values become JSON text.

    Raises:
        ConfigError: a key or value that is not decoded is not UTF-8.
    """
    rows = 0
    flat = pa.schema([_flat_field(field) for field in schema.empty_table().flatten().schema])
    with pa.csv.CSVWriter(file, flat) as writer:
        for batch in batches:
            table = pa.Table.from_batches([batch]).flatten()
            columns = [
                _flat_column(column.combine_chunks(), batch, field)
                for column, field in zip(table.columns, table.schema, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=flat))
            rows += batch.num_rows
    return rows


def _flat_field(field: pa.Field) -> pa.Field:
    kind = field.type
    if field.name == "timestamp":
        return pa.field(field.name, MILLISECONDS)
    is_plain = not pa.types.is_nested(kind) and not pa.types.is_binary(kind)
    return pa.field(field.name, kind if is_plain else pa.string())


def _flat_column(column: pa.Array, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name == "timestamp":
        return pc.cast(column, MILLISECONDS, safe=False)
    if pa.types.is_nested(field.type):
        texts = [None if each is None else json_text(each) for each in column.to_pylist()]
        return pa.array(texts, pa.string())
    if not pa.types.is_binary(field.type):
        return column
    if field.name in BYTES_COLUMNS:
        try:
            return pc.cast(column, pa.string())
        except pa.ArrowInvalid:
            raise _not_text(batch, field.name) from None
    encoded = [None if each is None else base64.b64encode(each).decode() for each in column.to_pylist()]
    return pa.array(encoded, pa.string())


def _csv_column(batch: pa.RecordBatch, name: str, *, in_base64: bool) -> pa.Array:
    column = batch.column(name)
    if name == "timestamp":
        return pc.cast(column, MILLISECONDS, safe=False)
    if name == "headers":
        texts = [_header_text(headers, batch, in_base64=in_base64) for headers in column.to_pylist()]
        return pa.array(texts, pa.string())
    if name not in BYTES_COLUMNS:
        return column
    if in_base64:
        encoded = [
            None if value is None else base64.b64encode(value).decode() for value in column.to_pylist()
        ]
        return pa.array(encoded, pa.string())
    try:
        return pc.cast(column, pa.string())
    except pa.ArrowInvalid:
        raise _not_text(batch, name) from None


def _header_text(
    headers: list[dict[str, Any]] | None, batch: pa.RecordBatch, *, in_base64: bool
) -> str | None:
    """Return headers as JSON text [[name, value], ...], or None if there are none."""
    if not headers:
        return None
    try:
        pairs = [
            [
                one["key"],
                _encoded(one["value"]) if in_base64 or one["value"] is None else one["value"].decode(),
            ]
            for one in headers
        ]
    except UnicodeDecodeError:
        raise _not_text(batch, "headers") from None
    return json.dumps(pairs, ensure_ascii=False)


def _encoded(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _not_text(batch: pa.RecordBatch, name: str) -> ConfigError:
    topic, partition = batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()
    first, last = (batch.column("offset")[row].as_py() for row in (0, -1))
    return ConfigError(
        f"a record of {topic} [{partition}] from offset {first} to {last} has a {name.removesuffix('s')} "
        "that is not UTF-8 text, which CSV cannot hold: --base64 writes base64, and Parquet holds any bytes"
    )


def tables(path: str, kind: str) -> Iterator[pa.Table]:
    """Yield the contents of a file as tables, in bounded memory; ``-`` is stdin, for CSV only.

    Raises:
        ConfigError: the file is not of this kind.
    """
    try:
        if kind == "parquet":
            if path == "-":
                raise ConfigError("Parquet is read from a file: its end has to be read first")
            with pa.parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=READ_ROWS):
                    yield pa.Table.from_batches([batch])
            return
        texts = dict.fromkeys(
            ("key", "value", "headers", "topic", *(n + ENCODED for n in BYTES_COLUMNS)), pa.string()
        )
        options = pa.csv.ConvertOptions(
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
            column_types={**texts, "partition": pa.int32(), "timestamp": MILLISECONDS},
        )
        source = sys.stdin.buffer if path == "-" else path
        parsing = pa.csv.ParseOptions(newlines_in_values=True)
        with pa.csv.open_csv(source, parse_options=parsing, convert_options=options) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, pa.ArrowInvalid) as error:
        raise ConfigError(f"{path}: {error}") from None


def records_of(table: pa.Table, path: str) -> pa.Table:
    """Return the columns of a file that form records (key, value ...), in the types that a producer accepts.

    Raises:
        ConfigError: a column would be lost, or there is neither key nor value.
    """
    names = set(table.schema.names)
    lost = [name for name in table.schema.names if name not in KNOWN]
    if lost or not names & {"key", "value", "key" + ENCODED, "value" + ENCODED}:
        why = f"column {lost[0]!r} would be lost" if lost else "there is neither a column 'key' nor 'value'"
        raise ConfigError(f"{path}: {why}; --rows makes each row a JSON object, with all of its columns")
    columns: dict[str, pa.ChunkedArray] = {}
    for name in ("key", "value", "headers"):
        if name + ENCODED in names:
            if name in names:
                raise ConfigError(f"{path} has both {name!r} and {name + ENCODED!r}: which one is meant?")
            columns[name] = _decoded(table.column(name + ENCODED), name, path)
        elif name in names:
            column = table.column(name)
            is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            columns[name] = _mapped(column, _headers, path) if name == "headers" and is_text else column
    for name in ("partition", "timestamp"):
        if name in names:
            columns[name] = table.column(name)
    return pa.table(columns)


def rows_as_json(table: pa.Table, key_column: str | None, path: str) -> pa.Table:
    """Return each row as a record with a JSON object as its value; the key is the text of `key_column`.

    Raises:
        ConfigError: there is no such column, or a value has no form in JSON.
    """
    if key_column is not None and key_column not in table.schema.names:
        raise ConfigError(f"{path} has no column {key_column!r}; there are {', '.join(table.schema.names)}")
    rows = table.to_pylist()
    try:
        values = [json.dumps(row, ensure_ascii=False, default=_plain, allow_nan=False) for row in rows]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path}: a value has no form in JSON: {error}") from None
    columns = {"value": pa.array(values, pa.string())}
    if key_column is not None:
        keys = [row[key_column] for row in rows]
        columns["key"] = pa.array([None if key is None else _key_text(key) for key in keys], pa.string())
    return pa.table(columns)


def _key_text(value: object) -> str:
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain).strip('"')
    )


def _plain(value: object) -> object:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError(f"{type(value).__name__} {value!r}")


def _decoded(column: pa.ChunkedArray, name: str, path: str) -> pa.ChunkedArray:
    if name == "headers":
        return _mapped(column, lambda text: _headers(text, in_base64=True), path)
    return _mapped(column, lambda text: base64.b64decode(text, validate=True), path, pa.binary())


def _mapped(
    column: pa.ChunkedArray, read: Callable[[str], Any], path: str, kind: pa.DataType | None = None
) -> pa.ChunkedArray:
    from penstock.records.arrow import HEADERS_TYPE

    values = []
    for row, text in enumerate(column.to_pylist()):
        try:
            values.append(None if text is None else read(text))
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path}: {text[:80]!r} cannot be read (row {row} of its block): {error}"
            ) from None
    return pa.chunked_array([pa.array(values, HEADERS_TYPE if kind is None else kind)])


def _headers(text: str, *, in_base64: bool = False) -> list[dict[str, object]]:
    """Parse headers from JSON text [[name, value], ...].

    Raises:
        ValueError: the text has another form.
    """
    pairs = json.loads(text)
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise ValueError('headers are JSON such as [["lang", "en"]]')
    read: Callable[[str], bytes] = (
        (lambda value: base64.b64decode(value, validate=True)) if in_base64 else str.encode
    )
    return [{"key": name, "value": None if value is None else read(value)} for name, value in pairs]
