"""A lake table in a directory: files get their final names after the manifest that names them is written."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from penstock.errors import ConfigError
from penstock.lake.contract import (
    HandedFile,
    Positions,
    TableSettings,
    TableState,
    Tidied,
    Written,
    other_writer,
)
from penstock.lake.kinds.handed_files import handed, taken
from penstock.lake.kinds.manifests import begins_of, layout_of, positions_of, ranges_between, topic_ids_of
from penstock.landing.arrow_schema import table_schema
from penstock.landing.files import FileSettings, TaskFiles
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile
from penstock.landing.table import HIDDEN, LandingTable


class DirectoryTable:
    """A table of Parquet files in the directory `root`, in the layout of `penstock.landing`."""

    def __init__(self, root: str | os.PathLike[str], settings: TableSettings) -> None:
        self.title = os.fspath(root)
        if settings.shares:
            raise ConfigError(
                f"{self.title}: a directory has one writer for each name. Workers of a group land into "
                "object stores, iceberg:// and delta://"
            )
        self._table = LandingTable(root)
        self._settings = settings
        self._layout: TableLayout | None = None
        self._files: TaskFiles | None = None
        self._done: list[LandedFile] = []
        self._batch = -1
        self._begun = 0.0
        self.pending_bytes = 0

    def positions(self) -> Positions | None:
        """Return the topic offsets in the writer's last batch, or None.

        Raises DecodeError and StorageError.
        """
        newest = self._table.newest(self._settings.writer)
        self._batch = -1 if newest is None else newest.batch
        return None if newest is None else positions_of(newest)

    def begins(self) -> Mapping[int, int]:
        """Return the offset per partition at which the writer began. Raises DecodeError and StorageError."""
        return begins_of(self._table.manifests(self._settings.writer))

    def schema(self) -> pa.Schema | None:
        """Return the columns of the table's first file, or None if there is no file.

        Raises StorageError.
        """
        layout = self._table.layout()
        if layout is None:
            return None
        for _, place in self._table.files():
            found = table_schema(place, TableLayout(layout.columns, format=layout.format))
            return pa.schema([found.field(name) for name, _ in layout.columns if name in found.names])
        return None

    def prepare(self, schema: pa.Schema) -> None:
        """Create the table, or check its columns against `schema`. Raises ConfigError and StorageError."""
        self._layout = layout_of(schema, self._settings)
        self._table.declare(self._layout)

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows to files with hidden names. Raises StorageError."""
        assert self._layout is not None
        if self._files is None:
            settings = FileSettings(self._settings.compression, self._settings.file_bytes)
            batch = self._batch + 1
            self._begun = time.monotonic()
            staging = self._table.staging(self._settings.writer, batch)
            prefix = f"{batch:020d}-00000"
            self._files = TaskFiles(self._table.root, staging, self._layout, prefix, settings)
        self.pending_bytes += rows.nbytes
        self._done += self._files.add(rows)

    def join(self, schema: pa.Schema) -> None:
        """Prepare to write rows of `schema` into the existing table. Raises ConfigError."""
        self._layout = layout_of(schema, self._settings)

    def hand_over(self) -> list[HandedFile]:
        """Complete the files; return texts with which another process can commit them.

        Raises StorageError.
        """
        if self._files is not None:
            self._done += self._files.finish()
        files, self._done, self._files, self.pending_bytes = self._done, [], None, 0
        return handed(files, self._begun)

    def take_over(self, files: Sequence[str]) -> None:
        """Add files that other processes have written to the next manifest. Raises DecodeError."""
        self._done, self._begun = taken(files)

    def commit(self, before: Positions, after: Positions) -> Written:
        """Commit the files with a manifest. Raises OtherWriterError, ConfigError and StorageError."""
        assert self._layout is not None
        if self._files is not None:
            self._done += self._files.finish()
        files, self._done, self._files, self.pending_bytes = self._done, [], None, 0
        writer, batch = self._settings.writer, after.batch
        newest = self._table.newest(writer)
        if (-1 if newest is None else newest.batch) != before.batch:
            self._table.discard(files)
            raise other_writer(self.title, writer)
        decided = self._table.commit(
            writer,
            batch,
            self._layout,
            files,
            ranges_between(before, after),
            topic_ids=topic_ids_of(after),
        )
        if decided.files != tuple(files):
            raise other_writer(self.title, writer)
        self._batch = batch
        return Written(sum(f.rows for f in files), len(files), sum(f.size_bytes for f in files), 1)

    def abandon(self) -> None:
        """Remove the files that are not committed."""
        if self._files is not None:
            self._files.abandon()
        self._table.discard(self._done)
        self._done, self._files, self.pending_bytes = [], None, 0

    def state(self) -> TableState:
        """Return the current state of the table. Raises DecodeError and StorageError."""
        files = [file for file, _ in self._table.files()]
        batches = sum(len(self._table.manifests(writer)) for writer in self._table.writers())
        sizes = sum(file.size_bytes for file in files)
        return TableState(self.positions(), len(files), sizes, sum(file.rows for file in files), batches)

    def tidy(self, *, small_bytes: int, keep_snapshots_s: float, orphan_s: float) -> Tidied:
        """Remove uncommitted files of the writer that are older than `orphan_s` seconds. Raises StorageError.

        Files are not merged: manifests of a directory never change.
        """
        moment = time.time()
        removed = 0
        staging = Path(self._table.root) / HIDDEN / "staging" / self._settings.writer
        for parent, _, names in os.walk(staging, topdown=False):
            for name in names:
                path = Path(parent, name)
                with suppress(OSError):
                    if moment - path.stat().st_mtime >= orphan_s:
                        path.unlink()
                        removed += 1
        return Tidied(orphans=removed)
