"""A DuckDB session in which topics are tables under their names.

Each statement runs in a thread of the session, so that Ctrl-C ends it at once in any wait.
Results are streamed; rows that exceed DuckDB's memory limit are written to temporary files.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from penstock.common.extras import missing
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError, PenstockError
from penstock.model import COLUMN_NAMES
from penstock.queries.columns.values import SCHEMA_FORMATS, looks_like_json
from penstock.queries.dataset import RecordDataset, newest_values, topic_dataset
from penstock.queries.plans import ROWS_MAX, NotingDataset, Rows, fetch_table, partition_sizes, rows_taken
from penstock.queries.sources import topic_names
from penstock.queries.statements import (
    advice_for,
    explained,
    insert_of,
    is_show_tables,
    missing_table,
    names_only,
    newest_rows,
    one_line,
    quoted,
    table_names,
)
from penstock.queries.watching import DaemonWorker, StoppedError, Watch

if TYPE_CHECKING:
    from penstock.client.config import Partitioner
    from penstock.client.options import ConsumerOptions
    from penstock.registry.client import Finder

T = TypeVar("T")
SHOWN: pa.Schema = pa.schema([("name", pa.string()), ("kind", pa.string())])
RESULT_ROWS = 1 << 16
RECORD_COLUMNS = frozenset(name.lower() for name in COLUMN_NAMES)
TABLES_MAX = 200
"""The maximum number of tables that one statement may name."""


@dataclass(frozen=True)
class TopicOptions:
    """The options for topics as tables; the fields are arguments of `penstock.sql`."""

    value_format: str = "auto"
    value_schema: pa.Schema | None = None
    isolation: str = "read_uncommitted"
    max_lateness: Any = None
    key_partitioner: str | Partitioner | None = None
    dense: bool = False
    config: ConsumerOptions | Mapping[str, object] | None = None
    registry: str | Mapping[str, object] | Finder | None = None


class SqlSession:
    """Runs statements one after another, over the topics of a cluster and the caller's tables."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None,
        options: TopicOptions = TopicOptions(),
        *,
        tables: Mapping[str, object] | None = None,
        memory_limit: str | None = None,
        on_progress: Callable[[Watch], None] | None = None,
    ) -> None:
        """Open a session of DuckDB.

        `tables` are the caller's tables by their names: frames, Arrow tables and data sets, scans.

        Raises:
            ConfigError: a table has no form that DuckDB reads, or the memory limit is invalid.
            MissingDependencyError: DuckDB is not installed.
        """
        try:
            import duckdb
        except ImportError as error:
            raise missing(error, "penstock.sql") from None
        self._duckdb = duckdb
        self.servers = bootstrap_servers
        self._options = options
        self._on_progress = on_progress
        self._topics: dict[str, RecordDataset] = {}
        """A cache: a dict from a table's name in statements to the topic's data set, with columns for
        fields of values.
        """
        self._registered: set[str] = set()
        """Names of the topics that are currently registered as tables in DuckDB."""
        self._names: list[str] | None = None
        self._watch = Watch()
        self._worker = DaemonWorker()
        self._connection = duckdb.connect()
        self._connection.execute("set timezone = 'UTC'")
        # Variables of this program are no tables.
        self._connection.execute("set python_enable_replacements = false")
        # Private: another user could have made a directory of a fixed name before.
        spilled = tempfile.mkdtemp(prefix="penstock-sql-")
        self._remove_spilled = weakref.finalize(self, shutil.rmtree, spilled, ignore_errors=True)
        self._connection.execute(f"set temp_directory = {_text(spilled)}")
        if memory_limit is not None:
            try:
                self._connection.execute(f"set memory_limit = {_text(str(memory_limit))}")
            except duckdb.Error as error:
                raise ConfigError(
                    f"memory_limit is {memory_limit!r}, not one such as '2GB': {error}"
                ) from None
        self._tables: dict[str, RecordDataset] = {}
        for name, table in (tables or {}).items():
            self._add(name, table)

    def _add(self, name: str, table: object) -> None:
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{name!r} is no name of a table")
        if isinstance(table, RecordDataset):
            self._tables[name] = table
            return
        try:
            self._connection.register(name, table)
        except (self._duckdb.Error, TypeError) as error:
            raise ConfigError(
                f"table {name!r} is a {type(table).__name__}, which DuckDB does not read: {error}"
            ) from None

    # -- statements

    def statements(self, text: str) -> list[str]:
        """Return the SQL statements in a text, one by one.

        Raises:
            ConfigError: the text is no SQL, or holds no statement.
        """
        try:
            found = [one.query.strip().rstrip(";").strip() for one in self._duckdb.extract_statements(text)]
        except self._duckdb.Error as error:
            raise self._refused(error) from None
        if not found:
            raise ConfigError("there is no statement to run")
        return found

    def run(self, statement: str) -> pa.RecordBatchReader:
        """Run one statement; return its rows as a stream.

        Raises:
            ConfigError: DuckDB refuses the statement, or a table does not exist.
            PenstockError: reading or writing a topic fails.
        """
        self._watch = Watch(self._on_progress)
        return self._interruptible(lambda: self._run(statement))

    def batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a statement's rows. Raises as `run`."""

        def step() -> pa.RecordBatch | None:
            try:
                return reader.read_next_batch()
            except StopIteration:
                return None

        while (batch := self._interruptible(step)) is not None:
            yield batch

    def table(self, reader: pa.RecordBatchReader) -> pa.Table:
        """Return all rows of a statement as one table. Raises as `run`."""
        return pa.Table.from_batches(list(self.batches(reader)), reader.schema)

    @property
    def watch(self) -> Watch:
        """The counts of records and bytes that the current statement has read."""
        return self._watch

    def interrupt(self) -> None:
        """End the running statement, from any thread."""
        self._watch.stop()
        with suppress(self._duckdb.Error):  # closed before
            self._connection.interrupt()

    def close(self) -> None:
        """End the running statement, and free memory and temporary files."""
        self.interrupt()
        self._worker.close()
        with suppress(self._duckdb.Error, RuntimeError):
            self._connection.close()
        self._remove_spilled()

    def __enter__(self) -> SqlSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _interruptible(self, work: Callable[[], T]) -> T:
        """Call `work` in the session's thread; on KeyboardInterrupt, end the statement and raise."""
        try:
            return self._worker.run(lambda: self.translated(work))
        except KeyboardInterrupt:
            self.interrupt()
            raise

    def translated(self, work: Callable[[], T]) -> T:
        """Call `work` and return its result; convert DuckDB's errors to errors of this package."""
        try:
            return work()
        except PenstockError:
            raise
        except (self._duckdb.Error, pa.ArrowException, OSError) as error:
            failure = self._watch.failure
            if failure is not None:
                raise failure from None
            if self._watch.is_stopped:
                raise StoppedError("the query was ended") from None
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> ConfigError:
        advice = advice_for(str(error))
        message = one_line(str(error))
        return ConfigError(f"{message}: {advice}" if advice else message)

    def _run(self, statement: str) -> pa.RecordBatchReader:
        if is_show_tables(statement):
            return _rows_of(self._shown())
        inner = explained(statement)
        if inner is not None:
            return self._explain(inner)
        insert = insert_of(statement)
        if insert is not None and not self._is_table(insert.target):
            return self._insert(insert.target, insert.columns, insert.rows)
        return self._relation(statement)

    def _relation(self, statement: str) -> pa.RecordBatchReader:
        tree = self._tree(statement)
        datasets = self._register(statement, tree)
        rows = self._rows_taken(statement, tree, datasets)
        if rows != Rows():
            ((name, dataset),) = datasets.items()
            self.put(name, _Cut(dataset.watched(self._watch), rows))
        relation: Any = self._retried(lambda: self._connection.sql(statement))
        if relation is None:  # a statement without rows
            return _rows_of(pa.table({"done": pa.array([], pa.bool_())}))
        reader: pa.RecordBatchReader = relation.to_arrow_reader(RESULT_ROWS)
        return reader

    def _rows_taken(self, statement: str, tree: Any, names: Collection[str]) -> Rows:
        if len(names) != 1 or "limit" not in statement.lower():
            return Rows()
        newest = newest_rows(tree)
        if newest is not None:
            return Rows(newest=newest) if newest <= ROWS_MAX else Rows()
        try:
            found = self._connection.execute(f"explain (format json) {statement}").fetchall()
        except self._duckdb.Error:
            return Rows()  # it is no query, or a wrong one: running it says so
        return rows_taken(found[0][1])

    # -- tables

    def _register(self, statement: str, tree: Any) -> dict[str, RecordDataset]:
        """Register the topics in a statement as tables; return the data sets by table name.

        `tree` is the statement in DuckDB's JSON form, from `_tree`.
        """
        for name, dataset in self._tables.items():
            self.put(name, dataset.watched(self._watch))
        for name in self._registered:
            with suppress(self._duckdb.Error):
                self._connection.unregister(name)
        self._registered.clear()
        try:
            found = self._connection.get_table_names(statement) | self._like_views(tree)
        except self._duckdb.Error:
            return {}  # what is missing comes to light when it runs
        if len(found) > TABLES_MAX:
            raise ConfigError(f"the statement names {len(found)} tables; {TABLES_MAX} are the most")
        names = [name for name in sorted(found) if not self._is_table(name) and self._topic_of(name)]
        looks_inside = not names_only(tree, RECORD_COLUMNS)
        datasets = {name: self._dataset(name, looks_inside=looks_inside) for name in names}
        for name, dataset in datasets.items():
            self._put_topic(name, dataset.watched(self._watch))
        return datasets

    def _like_views(self, tree: Any) -> set[str]:
        """Return the topics in a query that are named like an internal view of DuckDB, as ``pg_class``.

        DuckDB does not report these as missing tables.
        """
        named = table_names(tree)
        if not named:
            return set()
        asked = (
            "select distinct view_name from duckdb_views() where internal and view_name in (select unnest(?))"
        )
        views = {name for (name,) in self._connection.execute(asked, [list(named)]).fetchall()}
        return {name for name in views if self._topic_of(name) is not None}

    def _put_topic(self, name: str, dataset: RecordDataset) -> None:
        self._registered.add(name)
        self.put(name, dataset)

    def _tree(self, statement: str) -> Any:
        """Return a query in DuckDB's JSON form; for another statement, an object with ``error`` set."""
        try:
            return json.loads(
                self._connection.execute("select json_serialize_sql(?)", [statement]).fetchall()[0][0]
            )
        except self._duckdb.Error:
            return {"error": True}

    def _retried(self, work: Callable[[], T]) -> T:
        """Call `work`; if DuckDB does not find a topic, register the topic and call `work` again."""
        for _ in range(TABLES_MAX):
            try:
                return work()
            except self._duckdb.CatalogException as error:
                name = missing_table(str(error))
                if name is None:
                    raise
                if self._topic_of(name) is None:
                    raise self._no_table(name) from None
                if name in self._registered:  # DuckDB takes what stands before the dot for a schema
                    raise ConfigError(f"write topic {name!r} as {quoted(name)}, in double quotes") from None
                self._put_topic(name, self._dataset(name).watched(self._watch))
        raise ConfigError(f"the statement names more than {TABLES_MAX} tables")

    def _no_table(self, name: str) -> ConfigError:
        where = "" if self.servers is None else f", and no topic of {_where(self.servers)}"
        hint = did_you_mean(name, self.topic_names() if self.servers is not None else [], 3, quoted=True)
        return ConfigError(f"there is no table {name!r}{where}{hint}")

    def put(self, name: str, dataset: object) -> None:
        """Register a table in DuckDB under `name`; replace an earlier table of that name."""
        with suppress(self._duckdb.Error):
            self._connection.unregister(name)
        self._connection.register(name, dataset)

    def _is_table(self, name: str) -> bool:
        """Return True if DuckDB has a table or view of that name that is not a registered topic."""
        asked = "select 1 from duckdb_tables() where lower(table_name) = lower(?) union all "
        asked += "select 1 from duckdb_views() where lower(view_name) = lower(?) and not internal"
        is_there = bool(self._connection.execute(asked, [name, name]).fetchall())
        return is_there and name not in self._registered

    def topic_names(self) -> list[str]:
        """Return the topics of the cluster, looked up once and then cached.

        Raises:
            NetworkError, RequestTimeoutError: no broker answers.
        """
        if self.servers is None:
            return []
        if self._names is None:
            self._names = topic_names(self.servers, self._client_config())
        return self._names

    @property
    def connection(self) -> Any:
        """The DuckDB connection of this session."""
        return self._connection

    def followed(self, query: str) -> tuple[str, RecordDataset]:
        """Return (table name, data set) of the one topic in a query. Raises ConfigError for more or none."""
        try:
            datasets = self._register(query, self._tree(query))
            if not datasets:  # its tables come to light when it is bound
                self._retried(lambda: self._connection.execute(f"explain {query}"))
        except self._duckdb.Error as error:
            raise self._refused(error) from None
        if len(datasets) != 1:
            read = ", ".join(sorted(datasets or self._registered)) or "none"
            raise ConfigError(f"a query that is followed reads one topic, once; this one reads {read}")
        return next(iter(datasets.items()))

    def forget_topics(self) -> None:
        """Clear the cached topics and the cached fields of their values."""
        self._names = None
        self._topics.clear()

    def _topic_of(self, name: str) -> str | None:
        """Return the topic with a table's name, or else the only topic whose name differs only in case.

        Return None if no topic fits. Raises ConfigError if several topics differ only in case.
        """
        names = self.topic_names()
        if name in names:
            return name
        near = [one for one in names if one.lower() == name.lower()]
        if len(near) > 1:
            raise ConfigError(f"{name!r} may be any of the topics {', '.join(map(repr, near))}")
        return near[0] if near else None

    def columns_of(self, name: str) -> list[str]:
        """Return the columns of a topic. Raises as `penstock.topic_dataset`."""
        return list(self._dataset(name).schema.names)

    def _dataset(self, name: str, *, looks_inside: bool = True) -> RecordDataset:
        """Return the data set of a topic. With `looks_inside`, it has columns for fields of values."""
        found = self._topics.get(name)
        if found is None:
            topic = self._topic_of(name)
            assert topic is not None  # asked for by the caller
            if not looks_inside and self._options.value_format == "auto":
                return self._plain(topic)
            found = self._topics[name] = self._made(topic)
        return found

    def _made(self, topic: str) -> RecordDataset:
        options = self._options
        assert self.servers is not None  # there would be no topics
        value_format = self._format_of(topic)
        if value_format != "auto":
            is_registered = options.registry is not None and value_format in SCHEMA_FORMATS
            return topic_dataset(
                topic,
                self.servers,
                value_format=value_format,
                value_schema=options.value_schema,
                text=value_format != "bytes",
                registry=options.registry if is_registered else None,
                **self._reading(),
            )
        plain = self._plain(topic)
        sample = newest_values(plain.source)
        if options.value_schema is None and not looks_like_json(sample):
            return plain
        return plain.with_json(options.value_schema, sample)

    def _plain(self, topic: str) -> RecordDataset:
        assert self.servers is not None  # there would be no topics
        return topic_dataset(topic, self.servers, value_format="text", **self._reading())

    def _reading(self) -> dict[str, Any]:
        options = self._options
        return {
            "isolation": options.isolation,
            "max_lateness": options.max_lateness,
            "key_partitioner": options.key_partitioner,
            "dense": options.dense,
            "config": options.config,
        }

    def _format_of(self, topic: str) -> str:
        """Return the value format: the configured one, or that of the topic's schema in the registry."""
        options = self._options
        if options.value_format != "auto" or options.registry is None or options.value_schema is not None:
            return options.value_format
        from penstock.queries.columns.registered_values import registered_format

        return registered_format(topic, options.registry) or "auto"

    def _client_config(self) -> dict[str, Any]:
        """Return those of the caller's settings that every client accepts: security and connections."""
        from penstock.queries.settings import shared_settings

        return shared_settings(self._options.config)

    def _shown(self) -> pa.Table:
        made = "select table_name from duckdb_tables() union "
        made += "select view_name from duckdb_views() where not internal"
        known = set(self.topic_names())
        others = {name for (name,) in self._connection.execute(made).fetchall()} - known - set(self._topics)
        rows = [(name, "topic") for name in sorted(known)] + [(name, "table") for name in sorted(others)]
        return pa.table({"name": [name for name, _ in rows], "kind": [kind for _, kind in rows]}, SHOWN)

    # -- EXPLAIN and INSERT

    def _explain(self, statement: str) -> pa.RecordBatchReader:
        insert = insert_of(statement)
        if insert is not None and not self._is_table(insert.target):
            statement = insert.rows
        tree = self._tree(statement)
        datasets = self._register(statement, tree)
        rows = self._rows_taken(statement, tree, datasets)
        noted = {name: NotingDataset(dataset, rows) for name, dataset in datasets.items()}
        noted |= {name: NotingDataset(one) for name, one in self._tables.items() if name in statement}
        for name, dataset in noted.items():
            self.put(name, dataset)
        relation = self._connection.sql(statement)
        if relation is not None:
            relation.to_arrow_table()
        sizes = partition_sizes(self._client_config(), self.servers) if self.servers is not None else {}
        return _rows_of(fetch_table(noted, sizes))

    def _insert(self, target: str, columns: Sequence[str], rows: str) -> pa.RecordBatchReader:
        """Write the rows of a query to a topic; return the count of rows written."""
        topic = self._topic_of(target)
        if topic is None or self.servers is None:
            raise self._no_table(target)
        from penstock.queries.inserting import records_in
        from penstock.tables import write_topic

        self._register(rows, self._tree(rows))
        relation = self._retried(lambda: self._connection.sql(rows))
        if relation is None:
            raise ConfigError("what is inserted has to be a query: select, values or from")
        reader = relation.to_arrow_reader(RESULT_ROWS)
        written = write_topic(
            records_in(reader, columns), topic, self.servers, config=self._client_config(), progress=False
        )
        return _rows_of(pa.table({"rows": pa.array([written.rows], pa.int64())}))


class _Cut(RecordDataset):
    """A data set that yields only the first or only the newest rows, if the query needs no others."""

    def __init__(self, dataset: RecordDataset, rows: Rows) -> None:
        super().__init__(dataset.source, dataset.shape, dataset.watch)
        self._rows = rows

    def batches(self, columns: Any, filter: Any, limit: Any = None, newest: Any = None) -> Any:
        """Yield batches until the needed rows are read; yield all rows if DuckDB passes a filter."""
        rows = self._rows if filter is None else Rows()
        return super().batches(columns, filter, rows.limit, rows.newest)


def _rows_of(table: pa.Table) -> pa.RecordBatchReader:
    return table.to_reader()


def _text(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _where(servers: str | Sequence[str]) -> str:
    return servers if isinstance(servers, str) else ", ".join(servers)


def table_reference(name: str) -> str:
    """Return a topic's name as it has to be written in SQL: in double quotes if needed."""
    return name if name.isidentifier() and name.islower() and name.isascii() else quoted(name)
