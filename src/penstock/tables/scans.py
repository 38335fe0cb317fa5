"""The results of `scan_topic` and `scan_log`: iterators of record batches that are also Arrow streams.

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
    """The interface of an iterator that reads record batches lazily, until `close` is called."""

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    def __next__(self) -> pa.RecordBatch: ...

    def close(self) -> None: ...


class PlacedBatches(Protocol):
    """The interface of an async iterator that reads (partition, record batch) lazily, until `aclose`."""

    def __aiter__(self) -> AsyncIterator[tuple[TopicPartition, pa.RecordBatch]]: ...

    async def __anext__(self) -> tuple[TopicPartition, pa.RecordBatch]: ...

    async def aclose(self) -> None: ...


class ArrowScan(Iterator["pa.RecordBatch"]):
    """A lazy sequence of record batches with one schema: an iterator, and an Arrow stream.

    It can be iterated once. Each use as an Arrow stream (``duckdb.sql("FROM scan")``, `pyarrow.table`,
    ``polars.DataFrame(scan)``, ``pandas.DataFrame.from_arrow(scan)``) is a new read, independent of the
    iteration: it resolves bounds such as "latest" again.
    """

    def __init__(self, schema: pa.Schema, begin: Callable[[bool], Batches], name: str) -> None:
        """Prepare a scan with this schema; `name` is shown in its repr.

        `begin` starts a read; its argument is True if a library consumes the batches as an Arrow stream,
        False if a Python loop does.
        """
        self._schema = schema
        self._begin = begin
        self._name = name
        self._batches: Batches | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, available before anything is read."""
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
        """End the iteration and close the connections or files that it uses."""
        self._begun().close()

    def to_reader(self) -> pa.RecordBatchReader:
        """Start a new read; return a `pyarrow.RecordBatchReader`, which raises the errors of the read."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_batches(self._schema, self._begin(True))

    def read_all(self) -> pa.Table:
        """Read all batches anew, and return them as one table in the order in which they came."""
        import pyarrow

        with closing(self._begin(True)) as batches:
            return pyarrow.Table.from_batches(batches, self._schema)

    def __arrow_c_schema__(self) -> object:
        """Return the schema as a capsule (Arrow PyCapsule interface)."""
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Start a new read; return it as a capsule (Arrow PyCapsule interface). The stream raises errors."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}: {', '.join(self._schema.names)}>"


class AsyncArrowScan(AsyncIterator["pa.RecordBatch"]):
    """A lazy sequence of record batches with one schema, for one ``async for``."""

    def __init__(self, schema: pa.Schema, placed: PlacedBatches, name: str) -> None:
        self._schema = schema
        self._placed = placed
        self._name = name

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, available before anything is read."""
        return self._schema

    async def __anext__(self) -> pa.RecordBatch:
        return (await self._placed.__anext__())[1]

    def placed(self) -> AsyncIterator[tuple[TopicPartition, pa.RecordBatch]]:
        """Return an async iterator of the batches with their partitions."""
        return aiter(self._placed)

    async def aclose(self) -> None:
        """End the iteration and close the connections that it uses."""
        await self._placed.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}: {', '.join(self._schema.names)}>"


def chosen(batches: Batches, spec: ReadSpec) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of decoded batches that `spec` selects, up to its limit."""
    limit = RowLimit(spec.bounds.limit)
    with closing(batches):
        while not limit.is_reached() and (decoded := next(batches, None)) is not None:
            batch = limit.cut(spec.chosen(decoded))
            if batch.num_rows:
                yield batch
