"""Convert the rows of a query to records to write: ``insert into topic select …``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.errors import EncodeError
from penstock.records.arrow import HEADERS_TYPE

COLUMNS = ("key", "value", "headers", "partition", "timestamp")


def records_in(reader: pa.RecordBatchReader, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Convert the batches of a query to tables of records that `penstock.write_topic` accepts.

    `columns` are the names of the columns in the statement; by default those of the query are used. A map of
    texts becomes headers.

    Raises:
        EncodeError: a column is not one of a record, or there are more or fewer columns than names.
    """
    names = list(columns) or list(reader.schema.names)
    if len(names) != len(reader.schema.names):
        raise EncodeError(f"{len(names)} columns are named, and the query yields {len(reader.schema.names)}")
    for name in names:
        if name not in COLUMNS:
            raise EncodeError(
                f"column {name!r} would be lost: a record has {', '.join(COLUMNS)}. to_json({{...}}) "
                "as value makes one value of several columns"
            )
    for number, batch in enumerate(reader):
        arrays = [
            _headers(array) if name == "headers" else array
            for name, array in zip(names, batch.columns, strict=True)
        ]
        if batch.num_rows or not number:
            yield pa.Table.from_arrays(arrays, names)


def _headers(array: pa.Array) -> pa.Array:
    if not pa.types.is_map(array.type):
        return array
    entries = pa.StructArray.from_arrays([array.keys.cast(pa.string()), array.items.cast(pa.binary())],
                                         fields=list(HEADERS_TYPE.value_type))  # fmt: skip
    made = pa.ListArray.from_arrays(
        array.offsets, entries, mask=array.is_null() if array.null_count else None
    )
    return made.cast(HEADERS_TYPE)
