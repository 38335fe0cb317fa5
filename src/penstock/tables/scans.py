"""What `scan_topic` and `scan_log` return: record batches in turn, and at the same time an Arrow stream.

The stream is Arrow's PyCapsule interface, through which DuckDB, Polars, pandas and pyarrow read batch by
batch without a copy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Protocol

from penstock.tables.spec import RowLimit

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.model import TopicPartition
    from penstock.tables.spec import ReadSpec


class Batches(Protocol):
    """Batches that are read while they are taken, until `close`."""

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    def __next__(self) -> pa.RecordBatch: ...

    def close(self) -> None: ...


class PlacedBatches(Protocol):
    """Batches for asyncio, each with its partition, that are read while they are taken, until `aclose`."""

    def __aiter__(self) -> AsyncIterator[tuple[TopicPartition, pa.RecordBatch]]: ...

    async def __anext__(self) -> tuple[TopicPartition, pa.RecordBatch]: ...

    async def aclose(self) -> None: ...


class ArrowScan(Iterator["pa.RecordBatch"]):
    """Record batches of one schema, read while they are taken.

    As an iterator it is gone through once. As an Arrow stream (``duckdb.sql("FROM scan")``, `pyarrow.table`,
    ``polars.DataFrame(scan)``, ``pandas.DataFrame.from_arrow(scan)``) it reads anew each time, with the
    bounds as they are then, independent of the iteration.
    """

    def __init__(self, schema: pa.Schema, begin: Callable[[bool], Batches], name: str) -> None:
        """`begin` starts a read; its argument says whether what takes the batches is a library."""
        self._schema = schema
        self._begin = begin
        self._name = name
        self._batches: Batches | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types. Known without reading anything."""
        return self._schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._begun()

    def __next__(self) -> pa.RecordBatch:
        return next(self._begun())

    def _begun(self) -> Batches:
        if self._batches is None:
            self._batches = self._begin(False)
        return self._batches

    def close(self) -> None:
        """End the iteration, and with it the connections or files that it uses."""
        self._begun().close()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a new read, as a `pyarrow.RecordBatchReader`. Raises what reading raises, batch by batch."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_batches(self._schema, self._begin(True))

    def read_all(self) -> pa.Table:
        """Return a new read, as one table, whose batches are in the order in which they came."""
        import pyarrow

        with closing(self._begin(True)) as batches:
            return pyarrow.Table.from_batches(batches, self._schema)

    def __arrow_c_schema__(self) -> object:
        """Return the schema as a capsule (Arrow PyCapsule interface)."""
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a new read as a capsule (Arrow PyCapsule interface). Errors of reading are the stream's."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}: {', '.join(self._schema.names)}>"


class AsyncArrowScan(AsyncIterator["pa.RecordBatch"]):
    """Record batches of one schema for ``async for``, read while they are taken. Gone through once."""

    def __init__(self, schema: pa.Schema, placed: PlacedBatches, name: str) -> None:
        self._schema = schema
        self._placed = placed
        self._name = name

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types. Known without reading anything."""
        return self._schema

    async def __anext__(self) -> pa.RecordBatch:
        return (await self._placed.__anext__())[1]

    def placed(self) -> AsyncIterator[tuple[TopicPartition, pa.RecordBatch]]:
        """Return the batches with their partitions."""
        return aiter(self._placed)

    async def aclose(self) -> None:
        """End the iteration, and with it the connections that it uses."""
        await self._placed.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}: {', '.join(self._schema.names)}>"


def chosen(batches: Batches, spec: ReadSpec) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of decoded batches that a spec asks for."""
    limit = RowLimit(spec.bounds.limit)
    with closing(batches):
        while not limit.is_reached() and (decoded := next(batches, None)) is not None:
            batch = limit.cut(spec.chosen(decoded))
            if batch.num_rows:
                yield batch
