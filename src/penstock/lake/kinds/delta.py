"""A Delta table, with the library deltalake: topic offsets are stored as application transactions.

Data files are written under their final names, and become part of the table by the log entry that adds them.
Each log entry is created once, which decides between two writers. Application transactions stay in
checkpoints; texts of commits would be lost when the log is shortened.

    penstock:WRITER             the number of the batch
    penstock:WRITER:id0 (1, 2)  the topic's id, in pieces of 62 bits
    penstock:WRITER:token       63 bits of the token of an attempt
    penstock:WRITER:3           the next offset of partition 3
    penstock:WRITER:begin3      the offset at which the writer began in partition 3
    penstock:WRITER:partitions  the number of partitions to look up: some may have no offset yet
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
    other_writer,
)
from penstock.lake.credentials import StoreOptions, without_secrets
from penstock.lake.keyed_rows import DELETED_COLUMN, last_of_each
from penstock.lake.kinds.handed_files import handed, taken
from penstock.lake.kinds.manifests import layout_of
from penstock.lake.kinds.objects import Files, files_at
from penstock.lake.kinds.refused import answer_of
from penstock.lake.kinds.spool import Spool
from penstock.landing.arrow_schema import partition_schema
from penstock.landing.files import FileSettings
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile
from penstock.landing.table import checked_writer

ATTEMPTS_MAX = 10
"""The number of attempts to commit, when other writers of the table commit first."""

PARTITIONS_MAX = 100_000
"""The most partitions whose offsets are looked up in a log without ``:partitions``. Older releases wrote
such logs.
"""

_MASK = (1 << 63) - 1
_PIECE_MASK = (1 << 62) - 1


class DeltaLakeTable:
    """The Delta table at a path or URL such as ``s3://bucket/orders``. `options` are those of deltalake."""

    def __init__(self, url: str, settings: TableSettings, options: StoreOptions, topic: str) -> None:
        try:
            import deltalake
        except ImportError as error:
            raise missing(error, "a table of Delta") from None
        if settings.renames or settings.drops:
            raise ConfigError("columns of Delta tables are neither renamed nor dropped: deltalake cannot")
        self._deltalake = deltalake
        self._url = url
        self.title = without_secrets(f"delta://{url}")
        self._topic = topic
        self._settings = settings
        self._options = options
        self._app = f"penstock:{checked_writer(settings.writer)}"
        self._table: Any = None
        self._layout: TableLayout | None = None
        self._spool: Spool | None = None
        self._files: Files
        self._rows: list[pa.RecordBatch] = []
        self._taken: list[LandedFile] = []
        self._begun = 0.0
        self._is_uncertain = False
        self.pending_bytes = 0

    # -- positions

    def positions(self) -> Positions | None:
        """Return the topic offsets in the writer's last commit, or None. Raises StorageError."""
        table = self._refreshed()
        batch = None if table is None else table.transaction_version(self._app)
        if batch is None:
            return None
        offsets = self._by_partition("")
        token = table.transaction_version(f"{self._app}:token")
        pieces = [table.transaction_version(f"{self._app}:id{piece}") for piece in range(3)]
        return Positions(self._topic, _id_text(pieces), offsets, batch, "" if token is None else str(token))

    def begins(self) -> Mapping[int, int]:
        """Return the offset of each partition at which the writer began. Raises StorageError."""
        return {} if self._refreshed() is None else self._by_partition("begin")

    def _by_partition(self, what: str) -> dict[int, int]:
        found: dict[int, int] = {}
        count = self._table.transaction_version(f"{self._app}:partitions")
        for partition in range(PARTITIONS_MAX if count is None else count):
            offset = self._table.transaction_version(f"{self._app}:{what}{partition}")
            if offset is not None:
                found[partition] = offset
            elif count is None:
                break  # releases before did not write the count
        return found

    def _refreshed(self) -> Any:
        from deltalake.exceptions import TableNotFoundError

        with self._refusals("read"):
            self._options.renew()
            try:
                self._table = self._deltalake.DeltaTable(self._url, storage_options=self._options.values())
            except TableNotFoundError:
                self._table = None
        return self._table

    # -- columns

    def schema(self) -> pa.Schema | None:
        """Return the columns of the table, or None if it does not exist. Raises StorageError."""
        table = self._refreshed()
        if table is None:
            return None
        derived = set(self._settings.partition_by)
        found = pa.schema(table.schema().to_arrow())
        kept = [each for each in found if each.name not in derived or each.name not in ("date", "hour")]
        return pa.schema([pa.field(each.name, _plain(each.type)) for each in kept])

    def prepare(self, schema: pa.Schema) -> None:
        """Create the table, or add columns. Raises ConfigError and StorageError."""
        schema = pa.schema([each for each in schema if each.name != DELETED_COLUMN])
        layout = self._layout = layout_of(schema, self._settings, "delta")
        whole = schema
        for field in partition_schema(layout):
            if field.name not in whole.names:
                whole = whole.append(field)
        with self._refusals("create"):
            self._options.renew()
            table = self._deltalake.DeltaTable.create(
                self._url,
                whole,
                mode="ignore",
                partition_by=list(layout.partition_by),
                storage_options=self._options.values(),
            )
            self._table = table
        there = {each.name: each for each in pa.schema(table.schema().to_arrow())}
        for field in whole:
            if field.name in there and _plain(there[field.name].type) != field.type:
                raise ConfigError(
                    f"column {field.name} of {self.title} is {_plain(there[field.name].type)}, the records "
                    f"have {field.type}: deltalake changes no types. Land into another table"
                )
        added = [field for field in whole if field.name not in there]
        if added:
            new = self._deltalake.Schema.from_arrow(pa.schema(added)).fields
            with self._refusals("add columns to"):
                table.alter.add_columns(new)
            self._refreshed()
        if list(layout.partition_by) != self._table.metadata().partition_columns:
            raise ConfigError(
                f"{self.title} has partitions by {self._table.metadata().partition_columns or 'none'}, which "
                "stay: say the same, or land into another table"
            )

    # -- rows

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows to files; a file is sent when it is full. Raises StorageError."""
        if not self.pending_bytes:
            self._begun = time.monotonic()
        self.pending_bytes += rows.nbytes
        if self._settings.key:
            self._rows.append(rows)
            return
        assert self._layout is not None
        if self._spool is None:
            settings = FileSettings(
                self._settings.compression, self._settings.file_bytes, all_statistics=True
            )
            self._files = files_at(self._url, self._options)
            self._spool = Spool(self._layout, 0, settings, self._files.send)
        self._spool.add(rows)

    def join(self, schema: pa.Schema) -> None:
        """Prepare to write rows of `schema` into the existing table. Raises ConfigError."""
        self._layout = layout_of(schema, self._settings, "delta")

    def hand_over(self) -> list[HandedFile]:
        """Complete the files; return texts with which another process can commit them.

        Raises StorageError.
        """
        files = [] if self._spool is None else self._spool.finish()
        self._forget()
        return handed(files, self._begun)

    def take_over(self, files: Sequence[str]) -> None:
        """Add files that other processes have written to the next commit. Raises DecodeError."""
        self._taken, self._begun = taken(files)

    def commit(self, before: Positions, after: Positions) -> Written:
        """Commit the rows with an entry of the log. Raises OtherWriterError and StorageError."""
        files = [*self._taken, *([] if self._spool is None else self._spool.finish())]
        if files and time.monotonic() - self._begun > WRITE_S_MAX:
            self.abandon()
            raise StorageError(
                f"the files of batch {after.batch} in {self.title} are older than {WRITE_S_MAX:,.0f} seconds "
                "and may be gone as orphans: start again, from the last commit"
            )
        rows = None
        if self._rows:
            rows = last_of_each(pa.Table.from_batches(self._rows), self._settings.key)
        token = str(int(after.token, 16) & _MASK)
        for _ in range(ATTEMPTS_MAX):
            found = self.positions()
            if found is not None and found.token == token:
                break
            if (-1 if found is None else found.batch) != before.batch:
                if self._settings.shares:
                    self._keep(files)
                    raise OvertakenError(found)
                self.abandon()
                raise other_writer(self.title, self._settings.writer)
            if self._attempt(files, rows, after, token):
                break
        else:
            self.abandon()
            raise StorageError(
                f"cannot commit to {self.title}: other writers were faster {ATTEMPTS_MAX} times"
            )
        self._is_uncertain = False
        self._forget()
        if rows is not None:
            return Written(rows.num_rows, 0, 0, 1)
        return Written(sum(f.rows for f in files), len(files), sum(f.size_bytes for f in files), 1)

    def _keep(self, files: list[LandedFile]) -> None:
        """Keep `files`, which are already in the store, so that the next attempt to commit adds them."""
        if self._spool is not None:
            self._spool.close()
        self._spool, self._taken = None, files

    def _attempt(self, files: list[Any], rows: pa.Table | None, after: Positions, token: str) -> bool:
        """Commit with one log entry; return False if another entry was first. Raises StorageError."""
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import CommitProperties, Transaction

        ids = [] if after.topic_id is None else _id_pieces(after.topic_id)
        own = [
            Transaction(self._app, after.batch),
            Transaction(f"{self._app}:token", int(token)),
            Transaction(f"{self._app}:partitions", max(after.offsets, default=-1) + 1),
            *(Transaction(f"{self._app}:id{piece}", bits) for piece, bits in enumerate(ids)),
            *(Transaction(f"{self._app}:{partition}", at) for partition, at in sorted(after.offsets.items())),
        ]
        if after.batch == 0:
            begins = sorted(after.begins.items())
            own += [Transaction(f"{self._app}:begin{partition}", at) for partition, at in begins]
        properties = CommitProperties(
            custom_metadata={"penstock": after.to_json()}, max_commit_retries=0, app_transactions=own
        )
        self._is_uncertain = True
        try:
            with self._refusals("commit to"):
                if rows is not None:
                    self._merge(rows, properties)
                else:
                    self._add(files, properties)
        except (StorageError, OtherWriterError) as error:
            if isinstance(error.__cause__, CommitFailedError):
                self._is_uncertain = self._settings.shares
                return False
            found = self._look_again()
            if found is None or found.token != token:
                raise
        return True

    def _add(self, files: list[Any], properties: Any) -> None:
        from deltalake.transaction import AddAction

        actions = [
            AddAction(
                file.path,
                file.size_bytes,
                {name: value or None for name, value in file.partition.items()},
                int(time.time() * 1000),
                True,
                json.dumps({"numRecords": file.rows}),
            )
            for file in files
        ]
        self._table.create_write_transaction(
            actions,
            mode="append",
            schema=self._table.schema(),
            partition_by=self._table.metadata().partition_columns,
            commit_properties=properties,
        )

    def _merge(self, rows: pa.Table, properties: Any) -> None:
        key = self._settings.key
        values = {name: f"s.`{name}`" for name in rows.column_names if name != DELETED_COLUMN}
        (
            self._table.merge(
                rows,
                " AND ".join(f"t.`{name}` = s.`{name}`" for name in key),
                source_alias="s",
                target_alias="t",
                commit_properties=properties,
            )
            .when_matched_delete(f"s.`{DELETED_COLUMN}` = true")
            .when_matched_update({f"`{name}`": value for name, value in values.items()})
            .when_not_matched_insert(
                {f"`{name}`": value for name, value in values.items()}, f"s.`{DELETED_COLUMN}` = false"
            )
            .execute()
        )

    def _look_again(self) -> Positions | None:
        """Read the table's positions after a commit with unknown outcome, with retries.

        Raises StorageError.
        """
        wait_s = 0.2
        while True:
            try:
                return self.positions()
            except StorageError:
                wait_s *= 2
                if wait_s > 5:
                    raise
                time.sleep(wait_s)

    def abandon(self) -> None:
        """Drop uncommitted rows; remove their files unless a commit may have added them."""
        sent = [] if self._spool is None else [file.path for file in self._spool.sent]
        self._forget()
        is_uncertain, self._is_uncertain = self._is_uncertain, False
        if is_uncertain or not sent:
            return
        with suppress(StorageError):  # what stays is an orphan, which `tidy` removes
            self._files.remove(sent)

    def _forget(self) -> None:
        if self._spool is not None:
            self._spool.close()
        self._spool, self._rows, self._taken, self.pending_bytes = None, [], [], 0

    # -- state and upkeep

    def state(self) -> TableState:
        """Return the current state of the table. Raises StorageError."""
        positions = self.positions()
        if self._table is None:
            return TableState(None, 0, 0, 0, 0)
        with self._refusals("read"):
            actions = pa.table(self._table.get_add_actions(flatten=True))
            sizes, rows = actions.column("size_bytes").to_pylist(), actions.column("num_records").to_pylist()
        return TableState(
            positions, len(sizes), sum(sizes), sum(each or 0 for each in rows), self._table.version() + 1
        )

    def tidy(self, *, small_bytes: int, keep_snapshots_s: float, orphan_s: float) -> Tidied:
        """Merge files, and remove files that the table does not name. Raises StorageError.

        The library deltalake takes one size: it merges files below the target size of new files, and
        `small_bytes` has no effect.

        Older versions of the table stay readable for `keep_snapshots_s` seconds, and files that no version
        names stay for `orphan_s`; the larger of both applies, in whole hours.
        """
        if self._refreshed() is None:
            return Tidied()
        hours = -(-int(max(keep_snapshots_s, orphan_s)) // 3600)
        with self._refusals("tidy"):
            metrics = self._table.optimize.compact(target_size=self._settings.file_bytes)
            self._refreshed()
            removed = self._table.vacuum(
                retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=True
            )
        return Tidied(metrics["numFilesRemoved"], metrics["numFilesAdded"], 0, len(removed))

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ConfigError, StorageError, DecodeError, OtherWriterError):
            raise
        except Exception as error:  # the library has errors of its own, as file systems do
            raise StorageError(f"cannot {what} {self.title}: {answer_of(error)}") from error


def _id_pieces(topic_id: str) -> list[int]:
    """Return a topic's 128-bit id as three integers, because the log stores numbers of at most 63 bits."""
    whole = int.from_bytes(base64.urlsafe_b64decode(topic_id + "=="), "big")
    return [whole >> 66, (whole >> 4) & _PIECE_MASK, whole & 15]


def _id_text(pieces: list[int | None]) -> str | None:
    high, middle, low = pieces
    if high is None or middle is None or low is None:
        return None
    whole = (high << 66 | middle << 4 | low).to_bytes(16, "big")
    return base64.urlsafe_b64encode(whole).decode().rstrip("=")


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type in which text and bytes have 32-bit offsets, as in rows of `lake.shapes`."""
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    for view, each in (("string_view", pa.string()), ("binary_view", pa.binary())):
        if hasattr(pa, view):
            plain[getattr(pa, view)()] = each
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return plain.get(kind, kind)
