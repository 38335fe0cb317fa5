"""A lake table in an object store: files under their final names, and manifests that name them.

    s3://bucket/orders/date=2026-01-31/00000000000000000012-00000-4f1c9a2b7d3e-0000.parquet
    s3://bucket/orders/_penstock/table.json                                     columns and partitions
    s3://bucket/orders/_penstock/manifests/WRITER/00000000000000000012.json     the files of batch 12

The names and texts are those of `penstock.landing.table`. A manifest is created by a request that the store
refuses if it exists already: this decides between two writers, and makes the commit of a batch atomic.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import ConfigError, DecodeError, StorageError
from penstock.lake.contract import (
    WRITE_S_MAX,
    HandedFile,
    OvertakenError,
    Positions,
    TableSettings,
    TableState,
    Tidied,
    Written,
    other_writer,
)
from penstock.lake.credentials import StoreOptions
from penstock.lake.kinds.handed_files import handed, taken
from penstock.lake.kinds.manifests import begins_of, layout_of, positions_of, ranges_between, topic_ids_of
from penstock.lake.kinds.objects import Objects
from penstock.lake.kinds.spool import Spool
from penstock.landing.files import FileSettings
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile, Manifest, manifests_from_json
from penstock.landing.table import HIDDEN, checked_writer

_MANIFEST = re.compile(rf"{HIDDEN}/manifests/([^/]+)/(\d{{20}})\.json")


class ObjectTable:
    """A table of Parquet files and manifests below a URL such as ``s3://bucket/orders/``."""

    def __init__(self, url: str, settings: TableSettings, options: StoreOptions) -> None:
        self._url = url
        self._options = options
        self._objects = Objects(url, options.values())
        self.title = self._objects.title
        self._settings = settings
        self._writer = checked_writer(settings.writer)
        self._layout: TableLayout | None = None
        self._spool: Spool | None = None
        self._taken: list[LandedFile] = []
        self._batch = -1
        self._is_uncertain = False
        """True if a group shares the table and the outcome of this worker's last commit is unknown."""
        self._begun = 0.0
        self.pending_bytes = 0

    # -- positions

    def positions(self) -> Positions | None:
        """Return the topic offsets in the writer's last batch, or None.

        Raises DecodeError and StorageError.
        """
        self._renew()
        newest = max(self._batches(self._writer), default=-1)
        self._batch = newest
        if newest < 0:
            return None
        return positions_of(self._manifest(self._writer, newest))

    def begins(self) -> Mapping[int, int]:
        """Return the offset per partition at which the writer began. Raises DecodeError and StorageError."""
        self._renew()
        first = min(self._batches(self._writer), default=-1)
        return begins_of([] if first < 0 else [self._manifest(self._writer, first)])

    def _batches(self, writer: str) -> Iterator[int]:
        for each in self._objects.found(f"{HIDDEN}/manifests/{writer}/"):
            if (match := _MANIFEST.fullmatch(each.path)) and match[1] == writer:
                yield int(match[2])

    def _manifest(self, writer: str, batch: int) -> Manifest:
        path = _manifest_path(writer, batch)
        text = self._objects.read(path)
        if text is None:
            raise StorageError(f"{path} is gone from {self.title}: was it removed?")
        return manifests_from_json(text, path)[0]

    def manifests(self) -> Iterator[Manifest]:
        """Yield the manifests of all writers. Raises DecodeError and StorageError."""
        for each in self._objects.found(f"{HIDDEN}/manifests/"):
            if match := _MANIFEST.fullmatch(each.path):
                yield self._manifest(match[1], int(match[2]))

    # -- columns

    def schema(self) -> pa.Schema | None:
        """Return the columns of one of the table's files, or None if there is none. Raises StorageError."""
        layout = self._stored_layout()
        if layout is None:
            return None
        for manifest in self.manifests():
            for file in manifest.files:
                data = self._objects.read(file.path)
                if data is None:
                    raise StorageError(f"{file.path} is gone from {self.title}: was it removed?")
                return pq.read_schema(pa.BufferReader(data)).remove_metadata()
        return None

    def prepare(self, schema: pa.Schema) -> None:
        """Create the table, or check its columns against `schema`. Raises ConfigError and StorageError."""
        layout = layout_of(schema, self._settings)
        self._objects.need_conditions(f"{HIDDEN}/conditions")
        self._objects.create(f"{HIDDEN}/table.json", layout.to_json().encode())
        there = self._stored_layout()
        found = [] if there is None else there.differences(layout)
        if found:
            raise ConfigError(
                f"{self.title} has other columns or partitions: {'; '.join(found)}. Land into another prefix"
            )
        self._layout = layout

    def _stored_layout(self) -> TableLayout | None:
        text = self._objects.read(f"{HIDDEN}/table.json")
        return None if text is None else TableLayout.from_json(text)

    # -- rows

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows to files; a file is sent when it is full. Raises StorageError."""
        assert self._layout is not None
        if self._spool is None:
            self._renew()
            self._begun = time.monotonic()
            settings = FileSettings(self._settings.compression, self._settings.file_bytes)
            self._spool = Spool(self._layout, self._batch + 1, settings, self._objects.send)
        self.pending_bytes += rows.nbytes
        self._spool.add(rows)

    def join(self, schema: pa.Schema) -> None:
        """Prepare to write rows of `schema` into the existing table. Raises ConfigError."""
        self._layout = layout_of(schema, self._settings)

    def hand_over(self) -> list[HandedFile]:
        """Complete the files; return texts with which another process can commit them.

        Raises StorageError.
        """
        files = [] if self._spool is None else self._spool.finish()
        self._forget()
        return handed(files, self._begun)

    def take_over(self, files: Sequence[str]) -> None:
        """Add files that other processes have written to the next manifest. Raises DecodeError."""
        self._taken, self._begun = taken(files)

    def commit(self, before: Positions, after: Positions) -> Written:
        """Commit the files with a manifest. Raises OtherWriterError and StorageError."""
        files = [*self._taken, *([] if self._spool is None else self._spool.finish())]
        if files and time.monotonic() - self._begun > WRITE_S_MAX:
            self.abandon()
            raise StorageError(
                f"the files of batch {after.batch} in {self.title} are older than {WRITE_S_MAX:,.0f} seconds "
                "and may be gone as orphans: start again, from the last commit"
            )
        ranges = tuple(ranges_between(before, after))
        manifest = Manifest(self._writer, after.batch, tuple(files), ranges, topic_ids_of(after))
        self._is_uncertain = self._settings.shares
        is_mine = self._objects.create(_manifest_path(self._writer, after.batch), manifest.to_json().encode())
        if not is_mine:
            if self._settings.shares:
                if self._spool is not None:
                    self._spool.close()
                self._spool, self._taken, self._is_uncertain = None, files, False
                raise OvertakenError(self.positions())
            self.abandon()
            raise other_writer(self.title, self._writer)
        self._forget()
        self._batch = after.batch
        return Written(sum(f.rows for f in files), len(files), sum(f.size_bytes for f in files), 1)

    def abandon(self) -> None:
        """Remove the files sent since the last commit, except those that a manifest contains."""
        sent = [] if self._spool is None else [file.path for file in self._spool.sent]
        if self._is_uncertain:  # workers of a group may have committed on top of it
            sent = []
        self._forget()
        try:
            if sent:
                # The commit may have had an uncertain end.
                named = {file.path for file in self._files_of(max(self._batches(self._writer), default=-1))}
                self._objects.remove([path for path in sent if path not in named])
        except (StorageError, DecodeError):
            return  # orphans are removed by `tidy`

    def _files_of(self, batch: int) -> tuple[LandedFile, ...]:
        return () if batch < 0 else self._manifest(self._writer, batch).files

    def _forget(self) -> None:
        if self._spool is not None:
            self._spool.close()
        self._spool, self._taken, self.pending_bytes, self._is_uncertain = None, [], 0, False

    # -- state and upkeep

    def state(self) -> TableState:
        """Return the current state of the table. Raises DecodeError and StorageError."""
        manifests = list(self.manifests())
        files = [file for manifest in manifests for file in manifest.files]
        rows, size_bytes = sum(file.rows for file in files), sum(file.size_bytes for file in files)
        return TableState(self.positions(), len(files), size_bytes, rows, len(manifests))

    def tidy(self, *, small_bytes: int, keep_snapshots_s: float, orphan_s: float) -> Tidied:
        """Remove files that no manifest names and that are older than `orphan_s` seconds.

        Files are not merged: manifests never change. Raises DecodeError and StorageError.
        """
        moment = time.time()
        # Listed before manifests are read: what a commit names meanwhile is seen as named.
        old = [
            each.path
            for each in self._objects.found("")
            if not each.path.startswith(f"{HIDDEN}/") and moment - each.modified_s >= orphan_s
        ]
        named = {file.path for manifest in self.manifests() for file in manifest.files}
        orphans = [path for path in old if path not in named]
        self._objects.remove(orphans)
        return Tidied(orphans=len(orphans))

    def _renew(self) -> None:
        if self._options.renew():
            self._objects = Objects(self._url, self._options.values())


def _manifest_path(writer: str, batch: int) -> str:
    return f"{HIDDEN}/manifests/{writer}/{batch:020d}.json"
