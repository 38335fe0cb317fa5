"""`topic_dataset`, `log_dataset`, `capture_dataset`: records as Arrow data sets with push-down.

DuckDB, pyarrow and libraries on top of them pass the columns and the filter of a query to a data set.
Partitions, offsets and times are derived from the filter and looked up at the brokers. The whole filter is
then applied to the rows, so that answers are right even if nothing can be derived.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from penstock.client.produce.partitioner import PARTITIONERS
from penstock.errors import ConfigError, PenstockError
from penstock.moments import duration_ms
from penstock.queries.columns.json_values import SAMPLE_ROWS
from penstock.queries.columns.values import SCHEMA_FORMATS, Shape, shape_of
from penstock.queries.pushdown.arrow_filters import columns_of, wanted_by
from penstock.queries.pushdown.wanted import EVERYTHING, Wanted
from penstock.queries.sources import Ask, LogSource, Source, checked_source
from penstock.queries.watching import Watch

if TYPE_CHECKING:
    from penstock.client.config import Partitioner
    from penstock.client.options import ConsumerOptions, PartitionerName
    from penstock.registry.client import Finder
    from penstock.registry.schemas import Schema


class RecordDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """The records of a topic, log directory or capture as an Arrow data set; each scan reads them anew.

    `sort_by` reads all records. The data set has no fragments (Arrow's word for its files).
    """

    def __init__(self, source: Source, shape: Shape, watch: Watch | None = None) -> None:
        # The class in C++ is never made: all of its methods are replaced here.
        self._source = source
        self._shape = shape
        self._watch = watch

    @property
    def schema(self) -> pa.Schema:
        """The columns of the data set and their types."""
        return self._shape.schema

    @property
    def source(self) -> Source:
        """The source that yields the records."""
        return self._source

    @property
    def shape(self) -> Shape:
        """The shape that converts records to columns."""
        return self._shape

    @property
    def watch(self) -> Watch | None:
        """The `Watch` to which scans report their progress, or None."""
        return self._watch

    def with_json(self, value_schema: pa.Schema | None, sample: Sequence[bytes | None]) -> RecordDataset:
        """Return this data set with the fields of JSON objects as columns, and keys and values as text."""
        return RecordDataset(self._source, shape_of("json", value_schema, sample, is_text=True), self._watch)

    def watched(self, watch: Watch) -> RecordDataset:
        """Return this data set with scans that report to `watch`, and that end when `watch` is stopped."""
        return RecordDataset(self._source, self._shape, watch)

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,
        *,
        limit: int | None = None,
        newest: int | None = None,
        **_: object,
    ) -> RecordScanner:
        """Return a scan of some columns of the rows that a filter selects.

        `limit` asks for the first rows by partition and offset, `newest` for at least as many of the newest
        rows of each partition; neither can be combined with a filter. Other options of Arrow's scanners
        concern files, and have no effect.

        Raises:
            ConfigError: a column is unknown, or a limit is combined with a filter.
        """
        if filter is not None and (limit is not None or newest is not None):
            raise ConfigError("limit and newest count records before a filter: leave out one of them")
        return RecordScanner(self, columns, filter, limit, newest)

    def to_reader(self, **options: Any) -> pa.RecordBatchReader:
        """Return a scan as a `pyarrow.RecordBatchReader`, in bounded memory; options as for `scanner`."""
        return self.scanner(**options).to_reader()

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield a scan batch by batch. Options are those of `scanner`; raises as `penstock.read_topic`."""
        return self.scanner(**options).to_batches()

    def to_table(self, **options: Any) -> pa.Table:
        """Return a scan as a table. The options are those of `scanner`; raises as `penstock.read_topic`."""
        return self.scanner(**options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Return the first rows, by partition and offset. Raises as `penstock.read_topic`."""
        return self.scanner(**options).head(num_rows)

    def take(self, indices: Any, **options: Any) -> pa.Table:
        """Return the rows with the given numbers; reads all records. Raises as `penstock.read_topic`."""
        return self.to_table(**options).take(indices)

    def count_rows(self, filter: pc.Expression | None = None, **_: object) -> int:
        """Return the number of rows that a filter selects.

        If offsets suffice for the answer, no records are read.
        """
        return self.scanner(columns=["partition"], filter=filter).count_rows()

    def filter(self, expression: pc.Expression) -> FilteredDataset:
        """Return this data set with a filter that every scan applies."""
        return FilteredDataset(self._source, self._shape, self._watch, expression)

    def replace_schema(self, schema: pa.Schema) -> RecordDataset:
        """Raise ConfigError: the argument `value_schema` of `topic_dataset` sets the columns."""
        raise ConfigError("the schema of records is fixed; value_schema says how values are read")

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[Any]:
        """Raise ConfigError, because records have no files."""
        raise ConfigError("a topic has no fragments: use scanner, to_reader or to_table")

    @property
    def partition_expression(self) -> pc.Expression:
        """The condition that holds for all rows of the data set: ``true``, since nothing more is known."""
        return pc.scalar(True)

    def join(self, *_: Any, **__: Any) -> ds.InMemoryDataset:
        """Raise ConfigError: Arrow's join needs all rows in memory, and cannot have the column `headers`."""
        raise ConfigError(
            "Arrow joins tables: to_table(columns=[...]).join(...), or join in SQL: penstock.sql"
        )

    def join_asof(self, *_: Any, **__: Any) -> ds.InMemoryDataset:
        """Raise ConfigError: Arrow's join by nearest times needs all rows in memory."""
        raise ConfigError("Arrow joins tables: to_table(columns=[...]).join_asof(...)")

    def sort_by(self, sorting: Any, **options: Any) -> ds.InMemoryDataset:
        """Return a table of all rows sorted, with the arguments of `pyarrow.Table.sort_by`."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def __reduce__(self) -> Any:
        return type(self), (self._source, self._shape)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._source.title}: {', '.join(self.schema.names)}>"

    def batches(
        self,
        columns: Sequence[str],
        filter: pc.Expression | None,
        limit: int | None = None,
        newest: int | None = None,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the columns `columns` of the rows that a filter selects. Raises as `penstock.read_topic`."""
        decoded = self.decoded(columns, filter)
        for rows in self._made(self.ask(columns, filter, limit, newest), decoded):
            for part in _let_through(rows, filter):
                if part.num_rows:
                    yield part.select(list(columns))

    def batches_of(
        self, columns: Sequence[str], wanted: Wanted, limit: int | None = None
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the columns `columns` of all records in the set `wanted`, and perhaps of others.

        Raises as `penstock.read_topic`.
        """
        needed = dict.fromkeys(self._shape.needs(columns))
        return self._made(Ask(wanted, tuple(needed), limit), columns)

    def _made(self, ask: Ask, columns: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        watch = Watch() if self._watch is None else self._watch
        try:
            for batch in self._source.batches(ask, watch):
                yield self._shape.made(batch, columns)
        except PenstockError as error:
            watch.failed(error)
            raise

    def ask(
        self,
        columns: Sequence[str],
        filter: pc.Expression | None,
        limit: int | None = None,
        newest: int | None = None,
    ) -> Ask:
        """Return the request to the source: the records that the filter may select, and the record columns.

        Conditions on columns that are decoded from values do not narrow the ranges.
        """
        needed = self._shape.needs(self.decoded(columns, filter))
        return Ask(wanted_by(filter), tuple(dict.fromkeys(needed)), limit, newest)

    def decoded(self, columns: Sequence[str], filter: pc.Expression | None) -> list[str]:
        """Return the columns that must be decoded: the requested ones, and those that the filter uses."""
        if filter is None:
            return list(columns)
        looked_at = columns_of(filter)
        names = self.schema.names
        if looked_at is None or not looked_at.issubset(names):
            return list(names)
        return [*columns, *sorted(looked_at.difference(columns))]


class FilteredDataset(RecordDataset):
    """A data set with a filter that every scan applies."""

    def __init__(self, source: Source, shape: Shape, watch: Watch | None, expression: pc.Expression) -> None:
        super().__init__(source, shape, watch)
        self._filter = expression

    def watched(self, watch: Watch) -> FilteredDataset:
        """Return this data set with scans that report to `watch`, and that end when `watch` is stopped."""
        return FilteredDataset(self._source, self._shape, watch, self._filter)

    def filter(self, expression: pc.Expression) -> FilteredDataset:
        """Return this data set with its own filter and `expression`: rows must fulfil both."""
        return FilteredDataset(self._source, self._shape, self._watch, self._filter & expression)

    def scanner(self, columns: Any = None, filter: pc.Expression | None = None, **options: Any) -> Any:
        """Return a scan of the rows that its own filter and `filter` select; see `RecordDataset.scanner`."""
        return super().scanner(columns, self._filter if filter is None else self._filter & filter, **options)

    def __reduce__(self) -> Any:
        return type(self), (self._source, self._shape, None, self._filter)


class RecordScanner:
    """One scan of a data set, with the methods of `pyarrow.dataset.Scanner`."""

    def __init__(
        self,
        dataset: RecordDataset,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None,
        filter: pc.Expression | None,
        limit: int | None,
        newest: int | None,
    ) -> None:
        self._dataset = dataset
        self._filter = filter
        self._limit, self._newest = limit, newest
        self._computed = columns if isinstance(columns, Mapping) else None
        names = dataset.schema.names
        chosen = names if columns is None or self._computed is not None else list(columns)
        for name in chosen:
            if name not in names:
                raise ConfigError(f"there is no column {name!r}; there are {', '.join(names)}")
        self._columns = chosen

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns of the data set."""
        return self._dataset.schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the rows that this scan returns."""
        if self._computed is not None:
            return self.to_reader().schema
        return pa.schema([self._dataset.schema.field(name) for name in self._columns])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the scan as batches. Raises as `penstock.read_topic`."""
        if self._computed is None:
            return self._dataset.batches(self._columns, self._filter, self._limit, self._newest)
        return iter(self.to_reader())

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a `pyarrow.RecordBatchReader` of the scan's rows, which raises errors of Arrow."""
        rows = self._dataset.batches(self._columns, self._filter, self._limit, self._newest)
        schema = pa.schema([self._dataset.schema.field(name) for name in self._columns])
        reader = pa.RecordBatchReader.from_batches(schema, rows)
        if self._computed is None:
            return reader
        return ds.Scanner.from_batches(reader, columns=dict(self._computed)).to_reader()

    def to_table(self) -> pa.Table:
        """Return all rows of the scan as a table. Raises as `penstock.read_topic`."""
        if self._computed is not None:
            return self.to_reader().read_all()
        return pa.Table.from_batches(list(self.to_batches()), self.projected_schema)

    def scan_batches(self) -> Iterator[Any]:
        """Raise ConfigError, because batches of topics have no fragments."""
        raise ConfigError("a topic has no fragments: use to_batches or to_reader")

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows, reading no more than needed. Raises as `penstock.read_topic`."""
        if self._filter is None and self._computed is None and self._newest is None:
            limit = num_rows if self._limit is None else min(num_rows, self._limit)
            return RecordScanner(self._dataset, self._columns, None, limit, None).to_table()
        found: list[pa.RecordBatch] = []
        left = num_rows
        for batch in self.to_batches():
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
            if not left:
                break
        return pa.Table.from_batches(found, self.projected_schema)

    def take(self, indices: Any) -> pa.Table:
        """Return the rows with the given numbers; reads all rows."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """Return the number of rows of the scan. Raises as `penstock.read_topic`."""
        return sum(batch.num_rows for batch in self.to_batches())


def _let_through(rows: pa.RecordBatch, filter: pc.Expression | None) -> list[pa.RecordBatch]:
    if filter is None:
        return [rows]
    found: list[pa.RecordBatch] = pa.Table.from_batches([rows]).filter(filter).to_batches()
    return found


def topic_dataset(
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    value_format: str = "bytes",
    value_schema: pa.Schema | None = None,
    text: bool = False,
    isolation: str = "read_uncommitted",
    max_lateness: str | timedelta | None = None,
    key_partitioner: PartitionerName | Partitioner | None = None,
    dense: bool = False,
    config: ConsumerOptions | Mapping[str, object] | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
) -> RecordDataset:
    """Return a topic as an Arrow data set for DuckDB, pyarrow and Polars: it reads only what a query needs.

    Columns that a query does not use are not decoded. A filter's conditions on ``partition``, ``offset`` and
    ``timestamp`` decide which offsets are fetched; the whole filter is then applied to the rows.

    Args:
        topic: the name of the topic.
        bootstrap_servers: ``host:port``, or several.
        value_format: ``"bytes"``; ``"text"``, keys and values as text; ``"json"``, fields of JSON objects as
            further columns; ``"cloudevents"``, attributes of events as further columns; ``"avro"``,
            ``"protobuf"``, and ``"json"`` with a registry: fields of the reader's schema as further columns,
            null where a value does not decode, and ``value_error`` with the reason.
        value_schema: the fields of JSON objects and their types; by default those of a sample of the newest
            records. A field that does not fit is null.
        text: True makes keys and values text with any format; U+FFFD replaces invalid UTF-8.
        isolation: ``"read_committed"`` leaves out the records of aborted and of open transactions.
        max_lateness: how much older a record may be than an earlier one of its partition: a duration
            such as ``"10m"``. With it, a read up to an end time stops at the first record that is newer than
            the end time plus this duration; records that come later are left out. Without it,
            reading continues to the end of the partition, since a late record may be there.
        key_partitioner: how producers chose partitions by keys, as `partitioner` of `penstock.read_topic`: a
            filter for keys then reads only their partitions.
        dense: True promises that each offset has a record (never any compaction or transactions), so that
            queries for counts and offsets read no records. No broker can confirm that.
        config: more options of a consumer, by their dotted names.
        registry: the URL of a schema registry, its settings, or a `penstock.registry.RegistryClient`.
        schema: the reader's schema of values; by default the newest that the registry has for the topic.
            Without a registry, values have no schema id, and this is the writer's schema as well.

    Raises:
        ConfigError: an argument is wrong; the message names it.
        RegistryError: the schema registry refuses a request.
        KafkaError: the topic does not exist (only with JSON, of which the call reads a sample).
        NetworkError, RequestTimeoutError: no broker answers (only with JSON).
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    partitioner = key_partitioner
    if isinstance(partitioner, str):
        if partitioner not in PARTITIONERS:
            raise ConfigError(
                f"key_partitioner is {partitioner!r}: it is one of {', '.join(PARTITIONERS)}, or a function"
            )
        partitioner = PARTITIONERS[partitioner]
    source = checked_source(
        topic,
        bootstrap_servers,
        config,
        isolation=isolation,
        max_lateness_ms=None if max_lateness is None else _duration(max_lateness),
        key_partitioner=partitioner,
        is_dense=dense,
    )
    return RecordDataset(source, _shape(source, value_format, value_schema, text, registry, schema))


def log_dataset(
    directory: str | os.PathLike[str],
    topic: str | None = None,
    *,
    value_format: str = "bytes",
    value_schema: pa.Schema | None = None,
    text: bool = False,
    isolation: str = "read_uncommitted",
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
) -> RecordDataset:
    """Return a topic in a data directory as an Arrow data set; no broker is needed.

    Arguments are those of `topic_dataset` and `penstock.scan_log`.

    Raises:
        ConfigError: an argument is wrong, or there is no such topic.
        StorageError: a file cannot be read.
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    from penstock.tables.logs import scan_log

    if topic is not None and not isinstance(topic, str):
        raise ConfigError(f"topic is {topic!r}: the name of one topic is needed")
    scan_log(directory, topic, isolation=isolation)  # its arguments are checked now
    source = LogSource(os.fspath(directory), topic, isolation)
    return RecordDataset(source, _shape(source, value_format, value_schema, text, registry, schema))


def capture_dataset(
    path: str | os.PathLike[str],
    topic: str | None = None,
    *,
    port: int | None = None,
    value_format: str = "bytes",
    value_schema: pa.Schema | None = None,
    text: bool = False,
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
) -> RecordDataset:
    """Return the records in a network capture (pcap or pcapng) as an Arrow data set.

    It has the records that producers wrote and brokers acknowledged, and those that consumers fetched, each
    once; each scan reads the capture. Records of transactions are included, whether committed or not.

    Args:
        path: a file of tcpdump, Wireshark or `penstock`.
        topic: the name of a topic; by default all topics.
        port: the broker's port, if the capture has other connections as well.
        value_format, value_schema, text, registry, schema: as in `topic_dataset`.

    Raises:
        ConfigError: an argument is wrong, or the capture is larger than 2 GiB.
        OSError: the file cannot be read (only with JSON, of which the call reads a sample).
        DecodeError: the file is no capture (only with JSON).
    """
    from penstock.queries.captures import CaptureSource

    if topic is not None and not isinstance(topic, str):
        raise ConfigError(f"topic is {topic!r}: the name of one topic is needed")
    source = CaptureSource(os.fspath(path), topic, port)
    return RecordDataset(source, _shape(source, value_format, value_schema, text, registry, schema))


def _shape(
    source: Source,
    value_format: str,
    value_schema: object,
    text: bool,
    registry: str | Mapping[str, object] | Finder | None,
    schema: str | Schema | None,
) -> Shape:
    if registry is not None or schema is not None:
        if value_format not in SCHEMA_FORMATS:
            raise ConfigError(f"registry and schema are for avro, protobuf and json, not {value_format!r}")
        if value_schema is not None:
            raise ConfigError("value_schema and registry or schema both say what values are: leave out one")
        from penstock.queries.columns.registered_values import registered_fields

        return registered_fields(source.topic, value_format, registry, schema, is_text=text)
    sample: list[bytes | None] = []
    if value_format == "json" and value_schema is None:
        sample = newest_values(source)
    return shape_of(value_format, value_schema, sample, is_text=text)


def newest_values(source: Source, count: int = SAMPLE_ROWS) -> list[bytes | None]:
    """Return the values of the newest records of each partition. Raises as `penstock.read_topic`."""
    found: list[bytes | None] = []
    for batch in source.batches(Ask(EVERYTHING, ("value",), newest=count), Watch()):
        found += batch.column("value").to_pylist()
    return found


def _duration(value: object) -> int:
    try:
        return duration_ms(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"max_lateness is {value!r}, which is no duration such as '10m' ({error})"
        ) from None
