"""Choose encodings and compression for the columns of a Parquet file by its first row group. Needs pyarrow.

A sample of the rows avoids two steps that would cost as much as all other work of an encoder without making
files smaller: a dictionary of values that seldom repeat, and compression of bytes that are compressed or
encrypted already. Pages are PLAIN or have a dictionary, which every reader of Parquet supports; the delta
encodings would make files of offsets and times smaller, but not every reader supports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

NEVER_REPEATING = ("value", "headers", "offset", "timestamp", "time", "data", "error", "extensions")
"""Columns that never get a dictionary, because their values are large or increase from row to row."""

WITHOUT_STATISTICS = ("key", "value", "headers", "data", "extensions", "error")
"""The names of columns without minimum and maximum in the file, since readers could not skip files with
them.
"""

REPEATS_ROWS = 4096
"""The number of rows at the beginning of a column in which repetitions of values are counted."""
REPEATS_LEAST = 4
"""The least average number of occurrences of each value, in the first REPEATS_ROWS rows, for which a column
gets a dictionary.
"""

SAMPLED_BYTES_LEAST = 1 << 20
"""The size in bytes below which a column is compressed without trying a sample, which would cost as much as
it could save.
"""
SAMPLE_BYTES = 64 << 10
SAMPLES = 4
COMPRESSED_SHARE_MAX = 0.95
"""The highest ratio of compressed to original size of a column's sample with which the column is
compressed.
"""


def columns_with_dictionary(rows: Sequence[pa.RecordBatch]) -> list[str]:
    """Return the names of columns that get a dictionary, since values repeat in the first of `rows`."""
    first = rows[0].slice(0, REPEATS_ROWS)
    return [
        name
        for name, column in zip(first.schema.names, first.columns, strict=True)
        if name not in NEVER_REPEATING and _repeats(column)
    ]


def _repeats(column: pa.Array) -> bool:
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return True
    present = len(column) - column.null_count
    distinct = pc.count_distinct(column, mode="only_valid").as_py()
    # A short batch says little; its dictionary costs little as well.
    return len(column) < REPEATS_ROWS or distinct * REPEATS_LEAST <= present


def columns_with_statistics(names: Iterable[str]) -> list[str]:
    """Return the columns of `names` that get statistics, which readers use to skip files."""
    return [name for name in names if name not in WITHOUT_STATISTICS]


def compressions(rows: Sequence[pa.RecordBatch], codec: str) -> Mapping[str, str]:
    """Return a dict from a Parquet column's path to its codec: `codec`, or ``none`` for incompressible data.

    A sample of `rows` decides.

    Raises:
        pa.ArrowException: there is no such codec.
    """
    schema = rows[0].schema
    found = {path: codec for field in schema for path in _leaves(field.name, field.type)}
    if codec != "none":
        for i, field in enumerate(schema):
            is_text = pa.types.is_string(field.type) or pa.types.is_binary(field.type)
            if is_text and not _gets_smaller([batch.column(i) for batch in rows], codec):
                found[field.name] = "none"
    return found


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the paths of the Parquet columns in which one Arrow column, possibly nested, is stored."""
    if pa.types.is_map(kind):
        yield f"{path}.key_value.key"
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path


def _gets_smaller(pieces: Sequence[pa.Array], codec: str) -> bool:
    """Return True if samples from several parts of a column's bytes compress well enough."""
    sizes = [piece.nbytes for piece in pieces]
    if sum(sizes) < SAMPLED_BYTES_LEAST:
        return True
    step = max(1, len(pieces) // SAMPLES)
    taken = b"".join(_first_bytes(piece) for piece in pieces[::step][:SAMPLES])
    if not taken:
        return True
    # `lz4` is the block format in files, which this one is a frame around.
    compressed = pa.Codec(codec if codec != "lz4" else "lz4_raw").compress(taken, asbytes=True)
    return len(compressed) <= COMPRESSED_SHARE_MAX * len(taken)


def _first_bytes(column: pa.Array) -> bytes:
    """Return the first bytes of the values of a text or bytes column, at most SAMPLE_BYTES."""
    offsets, data = column.buffers()[1:]
    if data is None or not len(column):
        return b""
    bounds = pa.Array.from_buffers(pa.int32(), len(column) + 1, [None, offsets], offset=column.offset)
    begin, end = bounds[0].as_py(), bounds[len(column)].as_py()
    return bytes(data[begin : min(end, begin + SAMPLE_BYTES)])
