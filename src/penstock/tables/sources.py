"""Read the data to write to a topic, from any object with one of Arrow's interfaces.

These are pyarrow's tables, batches and readers; frames of pandas and Polars; relations of DuckDB; a scan of
another topic; and iterables of any of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any, Protocol

from penstock.common.suggestions import short_repr
from penstock.errors import EncodeError

if TYPE_CHECKING:
    import pyarrow as pa

WRITE_BATCH_BYTES = 8 << 20
"""Small batches of a stream are joined into one table of about this size before they are written."""

ADVICE = (
    "a table is needed: of pyarrow, pandas, Polars or DuckDB, anything with __arrow_c_stream__, or an "
    "iterable of such; pyarrow.table(columns) and pyarrow.Table.from_pylist(rows) make one of dictionaries"
)


class ArrowStream(Protocol):
    """A table of any library that exports a stream of batches through Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """A batch of any library that exports a single array through Arrow's PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class InterchangeFrame(Protocol):
    """A data frame of any library with the dataframe interchange protocol."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any: ...


Tabular = ArrowStream | ArrowArray | InterchangeFrame


def tables_in(data: Tabular | Iterable[Tabular]) -> Iterator[pa.Table | pa.RecordBatch]:
    """Yield the tables and batches in `data` one after another, with small ones joined.

    Small ones are joined because a producer groups the rows of each table by partition, which costs time per
    table.

    Raises:
        EncodeError: an element of `data` is no table.
    """
    import pyarrow as pa

    if isinstance(data, (pa.Table, pa.RecordBatch)):
        yield data
        return
    held: list[pa.Table] = []
    size = 0
    for item in _pieces(data):
        table = pa.Table.from_batches([item]) if isinstance(item, pa.RecordBatch) else item
        if held and (table.schema != held[0].schema or size >= WRITE_BATCH_BYTES):
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(table)
        size += table.nbytes
    if held:
        yield pa.concat_tables(held)


def _pieces(data: object) -> Iterator[pa.Table | pa.RecordBatch]:
    found = _arrow(data)
    if found is not None:
        yield from found
        return
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise EncodeError(f"{short_repr(data)} cannot be written to a topic: {ADVICE}")
    for item in data:
        pieces = _arrow(item)
        if pieces is None:
            raise EncodeError(f"{short_repr(item)} cannot be written to a topic: {ADVICE}")
        yield from pieces


def _arrow(data: object) -> Iterable[pa.Table | pa.RecordBatch] | None:
    """Return the batches of one table of any library, or None if `data` is no table."""
    import pyarrow as pa

    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return [data]
    try:
        if hasattr(data, "__arrow_c_stream__"):
            reader: Iterable[pa.RecordBatch] = pa.RecordBatchReader.from_stream(data)
            return reader
        if hasattr(data, "__arrow_c_array__"):
            return [pa.record_batch(data)]
        if hasattr(data, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            return [from_dataframe(data)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError) as error:
        raise EncodeError(f"{type(data).__name__} has no columns to write: {error}") from error
    return None


def row_count(data: object) -> int | None:
    """Return the number of rows, or None if `data` would have to be read to count them."""
    for name in ("num_rows", "height"):
        count = getattr(data, name, None)
        if isinstance(count, int):
            return count
    # A relation of DuckDB would run its query to say how long it is.
    return len(data) if type(data).__module__.startswith("pandas.") and isinstance(data, Sized) else None
