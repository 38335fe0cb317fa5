"""Divide the rows of a batch into partitions, and name their directories. Needs numpy and pyarrow."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import EncodeError
from penstock.landing.layout import TableLayout

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
"""Hive's directory name for null; also used for an empty text, which cannot name a directory."""

DIRECTORY_BYTES_MAX = 255
"""The longest name in bytes that common file systems allow."""

_DAY_US = 86_400_000_000
_HOUR_US = 3_600_000_000
_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()

Values = tuple[str | None, ...]


def split(batch: pa.RecordBatch, layout: TableLayout) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """Divide rows by partition; yield (values of the partition columns as texts, rows in their order)."""
    if not layout.partition_by:
        yield (), batch
        return
    texts: list[list[str | None]] = []
    keys: list[tuple[int, ...]] = [()]
    codes = np.zeros(batch.num_rows, np.int64)
    for name in layout.partition_by:
        column_codes, column_texts = _encoded(batch, name, layout.time_column)
        texts.append(column_texts)
        width = len(column_texts)
        combined, codes = np.unique(codes * width + column_codes, return_inverse=True)
        keys = [(*keys[value // width], value % width) for value in combined.tolist()]
    values = [tuple(texts[i][part] for i, part in enumerate(key)) for key in keys]
    if len(values) == 1:
        yield values[0], batch
        return
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(values))).tolist()
    ordered = batch.take(pa.array(order))
    start = 0
    for key, end in zip(values, ends, strict=True):
        yield key, ordered.slice(start, end - start)
        start = end


def _encoded(batch: pa.RecordBatch, name: str, time_column: str) -> tuple[np.ndarray, list[str | None]]:
    """Dictionary-encode a partition column; return (each row's index, the list of distinct texts)."""
    if name in batch.schema.names:
        encoded = batch.column(name).dictionary_encode()
        texts = [str(value) for value in encoded.dictionary.to_pylist()]
        codes = pc.fill_null(encoded.indices, len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, [*texts, None]
    times = batch.column(time_column).cast(pa.int64())
    units = times.fill_null(0).to_numpy() // (_DAY_US if name == "date" else _HOUR_US)
    if name == "hour":
        units %= 24
    found, codes = np.unique(units, return_inverse=True)
    texts = [_date(value) if name == "date" else str(value) for value in found.tolist()]
    if times.null_count:
        codes = np.where(times.is_null().to_numpy(zero_copy_only=False), len(texts), codes)
    return codes, [*texts, None]


def _date(day: int) -> str:
    """Return the ISO date of a day, given in days since 1970, limited to the years that a `date` can hold."""
    ordinal = min(max(day + _FIRST_DAY, 1), datetime.date.max.toordinal())
    return datetime.date.fromordinal(ordinal).isoformat()


def directory(partition: Mapping[str, str | None]) -> str:
    """Return the directory of a partition in Hive's style: ``date=2026-01-31/type=order%2Fnew``, or "".

    Raises:
        EncodeError: a value is too long for the name of a directory.
    """
    parts = []
    for name, value in partition.items():
        part = f"{escaped(name)}={NULL_DIRECTORY if not value else escaped(value)}"
        if len(part.encode()) > DIRECTORY_BYTES_MAX:
            raise EncodeError(
                f"a value of partition column {name!r} has {len(value or '')} characters, too many for the "
                f"name of a directory ({DIRECTORY_BYTES_MAX} bytes): {value[:40] if value else ''}...; "
                "leave the column out of landing.partitionBy"
            )
        parts.append(part)
    return "/".join(parts)


def escaped(text: str) -> str:
    """Return `text` as a file name: ASCII except letters, digits, ``-``, ``_`` and ``.`` becomes %XX.

    Spark decodes %XX one character at a time, so that characters beyond ASCII have to stay.
    """
    name = "".join(
        char if char.isalnum() or char in "-_." or ord(char) > 127 else f"%{ord(char):02X}" for char in text
    )
    return f"%5F{name[1:]}" if name == NULL_DIRECTORY else name
