"""Write the Parquet files of one task under hidden names. Needs pyarrow.

A file is complete and on the disk before it is returned; an attempt that ends early removes its unfinished
files.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.common.atomic_files import TEMPORARY_SUFFIX, make_directory, storage_error, sync
from penstock.errors import ConfigError, StorageError
from penstock.landing.encodings import columns_with_dictionary, columns_with_statistics, compressions
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile
from penstock.landing.partitioning import Values, directory, split

ROW_GROUP_BYTES = 32 << 20
"""The size in bytes of Arrow data at which a row group is written: enough to compress well and to be read
in parallel.
"""

BUFFERED_BYTES_MAX = 64 << 20
"""The most bytes of Arrow data that a task buffers for all its files. Above this size, the file with the
largest buffer writes a row group.
"""

FILE_BYTES = 128 << 20
"""The approximate size in bytes at which a file is completed and the next one begins."""

PARTITIONS_MAX = 256
"""The most partitions that one task may write, because each one is a file in each batch."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The settings of Parquet files: compression and size."""

    compression: str = "zstd"
    file_bytes: int = FILE_BYTES
    partitions_max: int = PARTITIONS_MAX
    all_statistics: bool = False
    """True to store the minimum and maximum of every column, which Iceberg expects."""


class TaskFiles:
    """Writes the Parquet files of one attempt of a task.

    `root` is the directory of the table, `staging` a hidden directory in it. File names begin with `prefix`,
    which no other attempt uses.
    """

    def __init__(
        self,
        root: Path,
        staging: Path,
        layout: TableLayout,
        prefix: str,
        settings: FileSettings | None = None,
    ) -> None:
        self._root = root
        self._staging = staging
        self._layout = layout
        self._prefix = f"{prefix}-{uuid.uuid4().hex[:12]}"
        self._settings = settings or FileSettings()
        self._open: dict[Values, _OpenFile] = {}
        self._partitions: set[Values] = set()
        self._count = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[LandedFile]:
        """Write rows to the files of their partitions; yield the files that have reached their full size.

        Raises:
            StorageError: the disk is full, the directory is not writable, or another operation fails.
            ConfigError: the rows belong to more partitions than a task may write.
            EncodeError: a value cannot name a directory.
        """
        for values, rows in split(with_whole_texts(batch), self._layout):
            file = self._open.get(values)
            if file is None:
                file = self._open[values] = self._new(values)
            file.add(rows.select(list(self._layout.file_columns())))
            if file.buffered_bytes >= ROW_GROUP_BYTES:
                file.write()
            if file.written_bytes >= self._settings.file_bytes:
                yield self._open.pop(values).close()
        while sum(file.buffered_bytes for file in self._open.values()) > BUFFERED_BYTES_MAX:
            max(self._open.values(), key=lambda file: file.buffered_bytes).write()

    def finish(self) -> Iterator[LandedFile]:
        """Complete the files; yield them. Raises StorageError."""
        while self._open:
            values = next(iter(self._open))
            landed = self._open[values].close()
            del self._open[values]
            yield landed

    def abandon(self) -> None:
        """Remove the unfinished files. Finished ones stay, because a batch may contain them."""
        while self._open:
            self._open.popitem()[1].remove()

    def _new(self, values: Values) -> _OpenFile:
        self._partitions.add(values)
        most = self._settings.partitions_max
        if len(self._partitions) > most:
            raise ConfigError(
                f"the rows of one task belong to more than {most} partitions by "
                f"{', '.join(self._layout.partition_by)}: choose columns with fewer values, or raise "
                "landing.maxPartitions"
            )
        partition = dict(zip(self._layout.partition_by, values, strict=True))
        name = f"{self._prefix}-{self._count:04d}.parquet"
        self._count += 1
        path = "/".join(filter(None, (directory(partition), name)))
        return _OpenFile(
            self._root, self._staging / f"{name}{TEMPORARY_SUFFIX}", path, partition, self._settings
        )


class _OpenFile:
    """A Parquet file that is being written; it is created with its first row group."""

    def __init__(
        self,
        root: Path,
        staged: Path,
        path: str,
        partition: Mapping[str, str | None],
        settings: FileSettings,
    ) -> None:
        self._root = root
        self._staged = staged
        self._path = path
        self._partition = partition
        self._settings = settings
        self._buffered: list[pa.RecordBatch] = []
        self._sink: pa.NativeFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0
        self.buffered_bytes = 0
        self.written_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        self._buffered.append(rows)
        self._rows += rows.num_rows
        self.buffered_bytes += rows.nbytes

    def write(self) -> None:
        """Write the buffered rows as a row group."""
        rows, self._buffered, self.buffered_bytes = self._buffered, [], 0
        if not rows:
            return
        with self._refusals():
            if self._sink is None:
                make_directory(self._staged.parent)
                self._sink = pa.OSFile(str(self._staged), "wb")
                self._writer = pq.ParquetWriter(
                    self._sink,
                    rows[0].schema,
                    compression=compressions(rows, self._settings.compression),
                    use_dictionary=columns_with_dictionary(rows),
                    write_statistics=self._settings.all_statistics
                    or columns_with_statistics(rows[0].schema.names),
                    store_schema=True,
                )
            assert self._writer is not None
            self._writer.write_table(pa.Table.from_batches(rows), row_group_size=1 << 30)
            self.written_bytes = self._sink.tell()

    def close(self) -> LandedFile:
        """Complete the file and flush it to disk; return its description."""
        self.write()
        with self._refusals():
            assert self._writer is not None
            assert self._sink is not None
            self._writer.close()
            self._sink.close()
            sync(self._staged)
            size_bytes = self._staged.stat().st_size
        staged = self._staged.relative_to(self._root).as_posix()
        return LandedFile(self._path, staged, self._rows, size_bytes, self._partition)

    def remove(self) -> None:
        """Delete the unfinished file."""
        for each in (self._writer, self._sink):
            if each is not None:
                # A writer that could not write cannot write the end of its file either.
                with suppress(OSError, ValueError, pa.ArrowException):
                    each.close()
        with suppress(OSError):
            self._staged.unlink(missing_ok=True)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except OSError as error:
            raise storage_error(self._root / self._path, error) from error


def with_whole_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return `batch` with invalid UTF-8 in text columns replaced by U+FFFD.

    Readers of Parquet refuse a whole file with an invalid text.
    """
    columns = batch.columns
    for i, column in enumerate(columns):
        if pa.types.is_string(column.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                texts = column.view(pa.binary()).to_pylist()
                columns[i] = pa.array(
                    [None if text is None else text.decode("utf-8", "replace") for text in texts], pa.string()
                )
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
