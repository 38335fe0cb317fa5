"""`penstock.sql`: query topics in SQL with one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, overload

from penstock.client.arguments import flag, optional
from penstock.common.extras import need_arrow
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.config import Partitioner
    from penstock.client.options import ConsumerOptions, PartitionerName
    from penstock.queries.live import LiveQuery
    from penstock.queries.session import SqlSession, TopicOptions
    from penstock.registry.client import Finder


class Answer(Iterator["pa.RecordBatch"]):
    """The result of `penstock.sql` with ``stream=True``: a lazy iterator of batches, and an Arrow stream."""

    def __init__(self, session: SqlSession, reader: pa.RecordBatchReader) -> None:
        self._session = session
        self._batches = session.batches(reader)
        self.schema: pa.Schema = reader.schema
        """The columns and their types."""

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except BaseException:  # the end of the rows as well
            self.close()
            raise

    def read_all(self) -> pa.Table:
        """Return the rows that are not yet read, as one table."""
        import pyarrow

        return pyarrow.Table.from_batches(list(self), self.schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows that are not yet read, as a `pyarrow.RecordBatchReader`."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_batches(self.schema, self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows that are not yet read as a capsule (Arrow PyCapsule interface)."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """End the query, from any thread."""
        self._session.close()

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@overload
def sql(
    query: str,
    bootstrap_servers: str | Sequence[str] | None = None,
    *,
    stream: Literal[False] = False,
    follow: Literal[False] = False,
    tables: Mapping[str, object] | None = None,
    value_format: str = "auto",
    value_schema: pa.Schema | None = None,
    isolation: str = "read_uncommitted",
    max_lateness: str | timedelta | None = None,
    key_partitioner: PartitionerName | Partitioner | None = None,
    dense: bool = False,
    memory_limit: str | None = None,
    config: ConsumerOptions | Mapping[str, object] | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    progress: bool | None = None,
) -> pa.Table: ...


@overload
def sql(
    query: str,
    bootstrap_servers: str | Sequence[str] | None = None,
    *,
    stream: bool,
    follow: Literal[False] = False,
    tables: Mapping[str, object] | None = None,
    value_format: str = "auto",
    value_schema: pa.Schema | None = None,
    isolation: str = "read_uncommitted",
    max_lateness: str | timedelta | None = None,
    key_partitioner: PartitionerName | Partitioner | None = None,
    dense: bool = False,
    memory_limit: str | None = None,
    config: ConsumerOptions | Mapping[str, object] | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    progress: bool | None = None,
) -> Answer: ...


@overload
def sql(
    query: str,
    bootstrap_servers: str | Sequence[str] | None = None,
    *,
    follow: bool,
    tables: Mapping[str, object] | None = None,
    value_format: str = "auto",
    value_schema: pa.Schema | None = None,
    isolation: str = "read_uncommitted",
    max_lateness: str | timedelta | None = None,
    memory_limit: str | None = None,
    config: ConsumerOptions | Mapping[str, object] | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
) -> LiveQuery: ...


def sql(
    query: str,
    bootstrap_servers: str | Sequence[str] | None = None,
    *,
    stream: bool = False,
    follow: bool = False,
    tables: Mapping[str, object] | None = None,
    value_format: str = "auto",
    value_schema: pa.Schema | None = None,
    isolation: str = "read_uncommitted",
    max_lateness: str | timedelta | None = None,
    key_partitioner: PartitionerName | Partitioner | None = None,
    dense: bool = False,
    memory_limit: str | None = None,
    config: ConsumerOptions | Mapping[str, object] | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    progress: bool | None = None,
) -> pa.Table | Answer | LiveQuery:
    """Query topics in SQL, on DuckDB: ``penstock.sql("select count(*) from orders", servers)``.

    A topic is a table under its name, in double quotes if the name is no identifier of SQL. Its columns are
    those of records; ``"offset"`` is a keyword of SQL and needs quotes. Keys and values are text, and the
    fields of JSON objects are columns. The conditions on partitions, offsets and times, and the columns that
    the query uses, decide what is fetched: ``explain select …`` shows it. ``insert into topic select …``
    writes records from the columns key, value, headers, partition and timestamp.

    Args:
        query: one or more statements of DuckDB's SQL; the rows of the last one are returned.
        bootstrap_servers: ``host:port``, or several; None if the query reads no topics.
        stream: return an `Answer`, which reads in bounded memory while it is iterated over.
        follow: continue with new records, without end, and return an iterator of batches; see
            docs/how-to/sql.md.
        tables: more tables by their names: frames of pandas and Polars, tables and data sets of Arrow,
            `penstock.topic_dataset` of another cluster, `penstock.log_dataset`.
        value_format: ``"auto"`` decides by the newest values: the fields of JSON objects become columns,
            other values text; or a format as in `penstock.topic_dataset`.
        value_schema, isolation, max_lateness, key_partitioner, dense, config: as in `penstock.topic_dataset`,
            for all topics.
        registry: the URL of a schema registry, its settings, or a `penstock.registry.RegistryClient`: the
            fields of values with a schema in it are columns; the column ``value_error`` has the reason if a
            value does not decode.
        memory_limit: how much memory DuckDB may use, as ``"2GB"``, before it writes to temporary files; by
            default 80 % of the machine's.
        progress: True shows a progress line on stderr, False does not; by default terminals show it.

    Raises:
        ConfigError: DuckDB refuses the query, a table does not exist, or an argument is wrong.
        KafkaError: a topic was deleted meanwhile, or a record to write is refused.
        RegistryError: the schema registry refuses a request.
        EncodeError: a column that is inserted has no place in a record.
        NetworkError, RequestTimeoutError: no broker answers.
        MissingDependencyError: DuckDB or pyarrow is not installed.
    """
    need_arrow("penstock.sql")
    if not isinstance(query, str):
        raise ConfigError(f"query is {query!r}: the text of a query is needed")
    from penstock.queries.progress import QueryProgress
    from penstock.queries.session import SqlSession, TopicOptions

    optional(flag)(progress, "progress")
    options = TopicOptions(
        value_format,
        value_schema,
        isolation,
        max_lateness,
        key_partitioner,
        flag(dense, "dense"),
        config,
        registry,
    )
    if flag(follow, "follow"):
        return _followed(
            query, SqlSession(bootstrap_servers, options, tables=tables, memory_limit=memory_limit)
        )
    shown = QueryProgress(progress)
    session = SqlSession(
        bootstrap_servers, options, tables=tables, memory_limit=memory_limit, on_progress=shown.update
    )
    try:
        *before, last = session.statements(query)
        for statement in before:
            session.table(session.run(statement))
        reader = session.run(last)
        if stream:
            return Answer(session, reader)
        found = session.table(reader)
    except BaseException:
        session.close()
        raise
    finally:
        shown.end()
    session.close()
    return found


def followed(query: str, bootstrap_servers: str | Sequence[str] | None, options: TopicOptions) -> LiveQuery:
    """Return a query that continues with new records; `options` configure the columns of topics.

    Raises:
        ConfigError: the query cannot be followed.
    """
    from penstock.queries.session import SqlSession

    return _followed(query, SqlSession(bootstrap_servers, options))


def _followed(query: str, session: SqlSession) -> LiveQuery:
    from penstock.queries.live import LiveQuery

    try:
        statements = session.statements(query)
        if len(statements) != 1:
            raise ConfigError("one query is followed at a time")
        return session.translated(lambda: LiveQuery(session, statements[0]))
    except BaseException:
        session.close()
        raise
