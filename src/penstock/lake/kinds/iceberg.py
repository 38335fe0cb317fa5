"""An Iceberg table in a catalog, with the library pyiceberg: topic offsets are in snapshot summaries.

Data files are written under their final names, with field ids, and become part of the table by the commit of
their snapshot. The catalog accepts a commit only on top of the snapshot for which it was made, which decides
between two writers.
"""

from __future__ import annotations

import itertools
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from penstock.common.extras import missing
from penstock.errors import ConfigError, DecodeError, StorageError
from penstock.lake.contract import (
    WRITE_S_MAX,
    HandedFile,
    OtherWriterError,
    OvertakenError,
    Positions,
    TableSettings,
    TableState,
    Tidied,
    Written,
    begun_ago,
    other_writer,
)
from penstock.lake.credentials import StoreOptions
from penstock.lake.keyed_rows import DELETED_COLUMN, kept_rows, last_of_each
from penstock.lake.kinds.iceberg_files import file_of, file_text
from penstock.lake.kinds.iceberg_sorting import has_order, in_order, note_order, set_order
from penstock.lake.kinds.iceberg_specs import transforms
from penstock.lake.kinds.refused import answer_of
from penstock.landing.files import with_whole_texts
from penstock.landing.table import checked_writer

ATTEMPTS_MAX = 10
"""The number of attempts to commit, when other writers of the table commit first."""

POSITIONS_PREFIX = "penstock.positions."
"""The beginning of the key under which a writer's positions are in snapshot summaries and table properties;
the writer's name follows.
"""

BUFFERED_BYTES_MAX = 64 << 20
"""Rows are buffered until they take four times this many bytes in Arrow memory, or four times the file size
if that is less. Then a file is written.
"""


class IcebergTable:
    """The table `name` (``namespace.table``) of a catalog.

    `catalog` is a name in the configuration of pyiceberg, or any name if `options` have all that
    `pyiceberg.catalog.load_catalog` needs.
    """

    def __init__(self, catalog: str, name: str, settings: TableSettings, options: StoreOptions) -> None:
        try:
            import pyiceberg.catalog
        except ImportError as error:
            raise missing(error, "a table of Iceberg") from None
        if "." not in name:
            raise ConfigError(f"iceberg://{catalog}/{name}: the table is named as namespace.table")
        self.title = f"iceberg://{catalog}/{name}"
        self._catalog_name, self._name = catalog, name
        self._settings = settings
        self._options = options
        self._key = POSITIONS_PREFIX + checked_writer(settings.writer)
        self._load = pyiceberg.catalog.load_catalog
        self._catalog: Any = None
        self._table: Any = None
        self._buffered: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._files: list[Any] = []
        self._gone: list[Any] = []
        """The keys of rows that the next commit deletes or replaces."""
        self._write_id = uuid.uuid4()
        self._count = itertools.count()
        self._begun = 0.0
        self._is_uncertain = False
        """True if the outcome of the last commit is unknown: `abandon` then removes no files."""
        self.pending_bytes = 0

    # -- positions

    def positions(self) -> Positions | None:
        """Return the topic offsets in the writer's last commit, or None.

        Raises DecodeError and StorageError.
        """
        table = self._refreshed()
        if table is None:
            return None
        text = _stored(table, self._key)
        return None if text is None else Positions.from_json(text)

    def begins(self) -> Mapping[int, int]:
        """Return the offset per partition at which the writer began. Raises DecodeError and StorageError."""
        positions = self.positions()
        return {} if positions is None else positions.begins

    def _refreshed(self) -> Any:
        from pyiceberg.exceptions import NoSuchTableError

        with self._refusals("read"):
            if self._catalog is None or self._options.renew():
                self._catalog = self._load(self._catalog_name, **self._options.values())
            try:
                self._table = self._catalog.load_table(self._name)
            except NoSuchTableError:
                self._table = None
        return self._table

    # -- columns

    def schema(self) -> pa.Schema | None:
        """Return the columns of the table, or None if it does not exist. Raises StorageError."""
        table = self._refreshed()
        if table is None:
            return None
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        found: pa.Schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        return pa.schema([_plain(each) for each in found])

    def prepare(self, schema: pa.Schema) -> None:
        """Create the table, or add and widen columns. Raises ConfigError and StorageError."""
        schema = pa.schema([each for each in schema if each.name != DELETED_COLUMN])
        if self._refreshed() is None:
            self._create(schema)
        else:
            self._evolve(schema)

    def _create(self, schema: pa.Schema) -> None:
        from pyiceberg.exceptions import TableAlreadyExistsError

        with self._refusals("create"):
            self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
            transaction = self._catalog.create_table_transaction(
                self._name,
                schema,
                properties={"write.parquet.compression-codec": _codec(self._settings.compression)},
            )
            with transaction.update_spec() as spec:
                for column, transform in transforms(self._settings.partition_by, schema):
                    spec.add_field(column, transform)
            if self._settings.sort_by:
                with transaction.update_sort_order() as order:
                    set_order(order, self._settings.sort_by, schema)
            with suppress(TableAlreadyExistsError):
                transaction.commit_transaction()
        if self._refreshed() is None:
            raise StorageError(f"cannot create {self.title}: the catalog does not have it afterwards")
        self._evolve(schema)

    def _evolve(self, schema: pa.Schema) -> None:
        """Rename, drop, add and widen columns, and set the sort order, if the table does not match yet."""
        for _ in range(ATTEMPTS_MAX):
            try:
                with (
                    self._refusals("change the columns of"),
                    self._table.update_schema(
                        allow_incompatible_changes=bool(self._settings.drops)
                    ) as update,
                ):
                    names = set(self._table.schema().column_names)
                    for old, new in self._settings.renames.items():
                        if old in names and new not in names:
                            update.rename_column(old, new)
                    for name in self._settings.drops:
                        if name in names and name not in schema.names:
                            update.delete_column(name)
                renamed = self._refreshed().schema()
                with self._refusals("change the columns of"), self._table.update_schema() as update:
                    update.union_by_name(_widest(schema, renamed))
                metadata = self._refreshed().metadata
                with self._refusals("sort"):
                    if self._settings.sort_by and not has_order(metadata, self._settings.sort_by):
                        with self._table.update_sort_order() as order:
                            set_order(order, self._settings.sort_by, schema)
                        self._refreshed()
                return
            except _Conflict:
                self._refreshed()
        raise StorageError(f"cannot change the columns of {self.title}: other writers were faster each time")

    # -- rows

    def write(self, rows: pa.RecordBatch) -> None:
        """Buffer rows; write a file when the buffer is full. Raises StorageError."""
        if not self._files and not self._buffered:
            self._begun = time.monotonic()
            self._write_id, self._count = uuid.uuid4(), itertools.count()
        self._buffered.append(rows)
        self._buffered_bytes += rows.nbytes
        self.pending_bytes += rows.nbytes
        is_enough = self._buffered_bytes >= min(self._settings.file_bytes * 4, BUFFERED_BYTES_MAX * 4)
        if is_enough and not self._settings.key:
            self._flush(pa.Table.from_batches(self._buffered))

    def _flush(self, rows: pa.Table) -> None:
        with self._refusals("write"):
            if rows.num_rows:
                self._files += self._data_files(rows)
        self._buffered, self._buffered_bytes = [], 0

    def _data_files(self, rows: pa.Table) -> list[Any]:
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        whole = pa.Table.from_batches([with_whole_texts(each) for each in rows.to_batches()], rows.schema)
        metadata = self._table.metadata
        ordered = in_order(whole, metadata)
        files = list(_dataframe_to_data_files(metadata, ordered, self._table.io, self._write_id, self._count))
        note_order(files, metadata)
        return files

    def join(self, schema: pa.Schema) -> None:
        """Prepare to write rows into the existing table. Raises StorageError."""
        if self._refreshed() is None:
            raise StorageError(f"{self.title} is gone: was it removed?")

    def hand_over(self) -> list[HandedFile]:
        """Complete the files; return texts with which another process can commit them.

        Raises StorageError.
        """
        if self._buffered:
            self._flush(pa.Table.from_batches(self._buffered))
        begun_s = time.time() - (time.monotonic() - self._begun)
        files, self._files, self.pending_bytes = self._files, [], 0
        return [
            HandedFile(
                each.file_path,
                each.record_count,
                each.file_size_in_bytes,
                file_text(each, self._table.metadata, begun_s),
            )
            for each in files
        ]

    def take_over(self, files: Sequence[str]) -> None:
        """Add files that other processes have written to the next snapshot.

        Raises DecodeError and StorageError.
        """
        if self._table is None and self._refreshed() is None:
            raise StorageError(f"{self.title} is gone: was it removed?")
        for text in files:
            file, begun_s = file_of(text, self._table.metadata)
            begun = begun_ago(begun_s)
            self._begun = min(self._begun, begun) if self._files else begun
            self._files.append(file)

    def commit(self, before: Positions, after: Positions) -> Written:
        """Commit the rows with a snapshot. Raises OtherWriterError and StorageError."""
        if self._settings.key and self._buffered:
            rows = last_of_each(pa.Table.from_batches(self._buffered), self._settings.key)
            self._gone = rows.select(list(self._settings.key)).to_pylist()
            self._flush(kept_rows(rows))
        elif self._buffered:
            self._flush(pa.Table.from_batches(self._buffered))
        if self._files and time.monotonic() - self._begun > WRITE_S_MAX:
            self.abandon()
            raise StorageError(
                f"the files of batch {after.batch} of {self.title} are older than {WRITE_S_MAX:,.0f} seconds "
                "and may be gone as orphans: start again, from the last commit"
            )
        for _ in range(ATTEMPTS_MAX):
            if self._attempt(before, after, self._gone):
                files, self._files, self._gone, self.pending_bytes = self._files, [], [], 0
                sizes = sum(file.file_size_in_bytes for file in files)
                return Written(sum(file.record_count for file in files), len(files), sizes, 1)
        self.abandon()
        raise StorageError(f"cannot commit to {self.title}: other writers were faster {ATTEMPTS_MAX} times")

    def _attempt(self, before: Positions, after: Positions, gone: list[Any]) -> bool:
        """Try to commit once; return False if the table has changed meanwhile, else True.

        Raises:
            OtherWriterError: another process has committed under this name.
            StorageError: the commit has failed, or its outcome stays unknown after another look at the table.
        """
        found = self.positions()
        if found is not None and found.token == after.token:
            return True
        if (-1 if found is None else found.batch) != before.batch:
            if self._settings.shares:
                raise OvertakenError(found)
            self.abandon()
            raise other_writer(self.title, self._settings.writer)
        table = self._table
        # The library would commit again on top of what another writer has committed, unseen. Only the copy in
        # memory changes.
        table.properties["commit.retry.num-retries"] = "0"
        summary = {self._key: after.to_json()}
        self._is_uncertain = True
        try:
            with self._refusals("commit to"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deletes that find nothing
                transaction = table.transaction()
                transaction.set_properties(summary)
                if gone:
                    transaction.delete(_any_of(gone), snapshot_properties=summary)
                with transaction.update_snapshot(snapshot_properties=summary).fast_append() as append:
                    for file in self._files:
                        append.append_data_file(file)
                transaction.commit_transaction()
        except _Conflict:
            # Also raised where an attempt before had taken effect: the next look at the positions says it,
            # unless another worker of a group has committed on top of it.
            self._is_uncertain = self._settings.shares
            return False
        except StorageError as error:
            landed = self._look_again()
            if landed is None or landed.token != after.token:
                raise error
        self._is_uncertain = False
        return True

    def _look_again(self) -> Positions | None:
        """Read the table's positions after a commit with unknown outcome, with retries.

        Raises StorageError.
        """
        wait_s = 0.2
        while True:
            try:
                return self.positions()
            except (StorageError, DecodeError):
                wait_s *= 2
                if wait_s > 5:
                    raise
                time.sleep(wait_s)

    def abandon(self) -> None:
        """Drop uncommitted rows; remove their files unless a commit may have added them."""
        files, self._files, self._gone = self._files, [], []
        self._buffered, self._buffered_bytes, self.pending_bytes = [], 0, 0
        is_uncertain, self._is_uncertain = self._is_uncertain, False
        if is_uncertain:
            return
        for file in files:
            with suppress(Exception):  # what stays is an orphan, which `tidy` removes
                self._table.io.delete(file.file_path)

    # -- state and upkeep

    def state(self) -> TableState:
        """Return the current state of the table. Raises DecodeError and StorageError."""
        positions = self.positions()
        if self._table is None:
            return TableState(None, 0, 0, 0, 0)
        with self._refusals("read"):
            files = [task.file for task in self._table.scan().plan_files()]
            snapshots = len(self._table.metadata.snapshots)
        size_bytes = sum(file.file_size_in_bytes for file in files)
        return TableState(
            positions, len(files), size_bytes, sum(file.record_count for file in files), snapshots
        )

    def tidy(self, *, small_bytes: int, keep_snapshots_s: float, orphan_s: float) -> Tidied:
        """Merge small files, expire snapshots, remove orphans. Raises StorageError."""
        from penstock.lake.kinds.iceberg_upkeep import compact, expire, remove_orphans

        if self._refreshed() is None:
            return Tidied()
        with self._refusals("tidy"):
            before, after = compact(self._table, small_bytes, self._settings.file_bytes)
            table = self._refreshed()
            expired = 0
            with suppress(_Conflict), self._refusals("expire snapshots of"):
                moment = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=keep_snapshots_s)
                expired = expire(table, moment)
            orphans = remove_orphans(self._refreshed(), orphan_s)
        return Tidied(before, after, expired, orphans)

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ConfigError, StorageError, DecodeError, OtherWriterError, OvertakenError, _Conflict):
            raise
        except Exception as error:  # catalogs and file systems raise what their libraries do
            from pyiceberg.exceptions import CommitFailedException, ValidationError

            if isinstance(error, CommitFailedException):
                raise _Conflict(str(error)) from error
            text = f"cannot {what} {self.title}: {type(error).__name__}: {answer_of(error)}"
            if isinstance(error, (ValidationError, ValueError)) and what != "commit to":
                raise ConfigError(text) from None
            raise StorageError(text) from None


class _Conflict(Exception):
    """The catalog has refused a commit because the table has changed."""


def _stored(table: Any, key: str) -> str | None:
    """Return the writer's positions in the newest snapshot that has them, else those in table properties.

    The properties are used once these snapshots have expired. A table that was rolled back has the positions
    of the snapshot to which it was rolled back.
    """
    snapshot = table.current_snapshot()
    while snapshot is not None:
        text = snapshot.summary.additional_properties.get(key) if snapshot.summary else None
        if text is not None:
            return str(text)
        is_first = snapshot.sequence_number == 1
        parent_id = snapshot.parent_snapshot_id
        snapshot = None if parent_id is None else table.snapshot_by_id(parent_id)
        if snapshot is None and not is_first:
            found: str | None = table.properties.get(key)
            return found
    return None


def _codec(name: str) -> str:
    return "uncompressed" if name == "none" else name


def _any_of(rows: list[Mapping[str, Any]]) -> Any:
    """Return a filter expression for the rows with any of the keys in `rows`."""
    from pyiceberg import expressions

    library: Any = expressions
    names = list(rows[0])
    if len(names) == 1:
        return library.In(names[0], [row[names[0]] for row in rows])
    found = [library.And(*(library.EqualTo(name, row[name]) for name in names)) for row in rows]
    return found[0] if len(found) == 1 else library.Or(*found)


def _plain(field: pa.Field) -> pa.Field:
    """Return an Arrow field without metadata, with 32-bit instead of 64-bit offsets for text and bytes."""
    small = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return pa.field(field.name, small.get(field.type, field.type))


def _widest(schema: pa.Schema, there: Any) -> pa.Schema:
    """Return `schema`, in which columns that are wider in the table (such as long for int) get its type."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    known = schema_to_pyarrow(there, include_field_ids=False)
    fields = []
    for field in schema:
        index = known.get_field_index(field.name)
        if index >= 0 and _is_narrower(field.type, known.field(index).type):
            field = field.with_type(known.field(index).type)
        fields.append(field)
    return pa.schema(fields)


def _is_narrower(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return bool(one.bit_width < other.bit_width)
    return bool(pa.types.is_float32(one) and pa.types.is_float64(other))
