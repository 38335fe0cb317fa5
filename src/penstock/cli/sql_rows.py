"""Writes the rows of queries as a table on a terminal, or as CSV, JSON or Parquet. Needs pyarrow."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import IO, Any
from uuid import UUID

import pyarrow as pa

from penstock.cli import waiting
from penstock.cli.outcome import is_terminal, put, readable
from penstock.queries.watching import Watch

WIDTH_ROWS = 500
"""The number of rows at the beginning of a result from which the widths of columns are computed."""

CELL_MAX = 60
"""The most characters of a cell on a terminal; longer texts are cut."""

NULL = "NULL"


def put_rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> int:
    """Print rows as a table as they arrive; return the number of rows."""
    cells = _cells(batches, schema)
    first = list(islice(cells, WIDTH_ROWS))
    names = [readable(name) for name in schema.names]
    widths = [len(name) for name in names]
    for row in first:
        widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
    is_number = [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in schema.types]
    if not names:
        return 0
    _put_line(names, widths, is_number, bold=True)
    put("  ".join("─" * width if _is_unicode() else "-" * width for width in widths))
    count = 0
    for row in _chained(first, cells):
        _put_line(row, widths, is_number)
        count += 1
    return count


def _put_line(
    cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool], *, bold: bool = False
) -> None:
    put(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, is_number, strict=True)
        ).rstrip(),
        bold=bold,
    )


def _chained(first: Iterable[list[str]], rest: Iterable[list[str]]) -> Iterator[list[str]]:
    yield from first
    yield from rest


def _cells(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[list[str]]:
    is_cut = is_terminal()
    for batch in batches:
        columns = [_texts(column, is_cut=is_cut) for column in batch.columns]
        yield from map(list, zip(*columns, strict=True))


def _texts(column: pa.Array, *, is_cut: bool) -> list[str]:
    found = []
    for value in _values(column):
        text = readable(_text(value).replace("\n", "\\n"))
        found.append(f"{text[: CELL_MAX - 1]}…" if is_cut and len(text) > CELL_MAX else text)
    return found


def _text(value: object) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, ensure_ascii=False, default=plain)
    return str(plain(value))


def _values(column: pa.Array) -> list[Any]:
    """Return a column's values as Python objects; times that `datetime` cannot hold become integers."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return list(column.cast(pa.int64()).to_pylist())


def plain(value: object) -> object:
    """Convert a value for JSON: times, bytes and other values without a JSON form become text."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" " if is_terminal() else "T").replace("+00:00", "Z")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, (timedelta, UUID)):
        return str(value)
    if isinstance(value, (int, float, str)):
        return value
    return str(value)


def summary(watch: Watch, rows: int, seconds: float) -> str:
    """Return one line about a finished statement: number of rows, duration, and amount of data fetched."""
    fetched = f"; {watch.wire_bytes:,} bytes fetched, {watch.records:,} records read" if watch.ranges else ""
    return f"% {rows:,} row{'' if rows == 1 else 's'} in {seconds:.2f} s{fetched}"


def write_rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema, layout: str, output: str) -> int:
    """Write rows to stdout or a file; return the number of rows."""
    if layout == "table" and output == "-":
        waiting.step_aside()
        return put_rows(batches, schema)
    from penstock.cli.table_files import output_file

    with output_file(output) as file:
        return write_table(batches, schema, layout, file)


def write_table(batches: Iterator[pa.RecordBatch], schema: pa.Schema, layout: str, file: IO[bytes]) -> int:
    """Write rows as CSV, JSON lines or Parquet to a file; return the number of rows."""
    if layout == "parquet":
        from penstock.cli.table_files import write_parquet

        return write_parquet(batches, schema, file)
    if layout == "table":
        raise_for_table()
    write = csv_writer(schema, file) if layout == "csv" else json_writer(schema, file)
    count = 0
    for batch in batches:
        write(batch)
        count += batch.num_rows
    return count


def raise_for_table() -> None:
    """Raise an error, because the format ``table`` is for terminals and pipes, not for output files.

    Raises:
        ConfigError: always.
    """
    from penstock.errors import ConfigError

    raise ConfigError("a table is for terminals and pipes: take --format csv, json or parquet for a file")


def json_writer(schema: pa.Schema, file: IO[bytes]) -> Callable[[pa.RecordBatch], None]:
    """Return a function that writes each row of a batch as a line of JSON."""
    names = _different(schema.names)

    def write(batch: pa.RecordBatch) -> None:
        columns = [_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            named = dict(zip(names, row, strict=True))
            file.write(json.dumps(_finite(named), ensure_ascii=False, default=plain).encode() + b"\n")
        file.flush()

    return write


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row in which NaN and infinities, which JSON does not have, are text."""
    return {
        name: str(value) if isinstance(value, float) and value - value != 0 else value
        for name, value in row.items()
    }


def csv_writer(schema: pa.Schema, file: IO[bytes]) -> Callable[[pa.RecordBatch], None]:
    """Return a function that writes batches as lines of CSV, after a first line with the column names."""
    import csv
    import io

    def write_lines(rows: Iterable[Sequence[str]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        file.write(text.getvalue().encode())
        file.flush()

    def write(batch: pa.RecordBatch) -> None:
        columns = [
            ["" if value is None else _csv_text(value) for value in _values(column)]
            for column in batch.columns
        ]
        write_lines(list(zip(*columns, strict=True)))

    write_lines([schema.names])
    return write


def _csv_text(value: object) -> str:
    if isinstance(value, bytes):
        return str(plain(value))
    return _text(value)


def _different(names: Sequence[str]) -> list[str]:
    """Return column names with numbers added to duplicates, because JSON objects must not have any."""
    found: list[str] = []
    for name in names:
        number, new = 2, name
        while new in found:
            new, number = f"{name}_{number}", number + 1
        found.append(new)
    return found


def put_followed(batches: Iterator[pa.RecordBatch], schema: pa.Schema, layout: str) -> None:
    """Print the rows of a continuous query, each as soon as it arrives."""
    if layout != "table":
        out = sys.stdout.buffer
        write = csv_writer(schema, out) if layout == "csv" else json_writer(schema, out)
        for batch in batches:
            waiting.step_aside()
            write(batch)
        return
    is_first = True
    for batch in batches:
        waiting.step_aside()
        if is_first:
            put("  ".join(readable(name) for name in schema.names), bold=True)
            is_first = False
        for row in _cells([batch], schema):
            put("  ".join(row))
        sys.stdout.flush()


def _is_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
