"""A Parquet table that holds every micro-batch of a query exactly once.

Spark repeats a micro-batch, with the same batch id and input, if it was killed before the batch was marked as
done. Each batch becomes one file named after its id, so that a repetition replaces the file. A complete file
is renamed to its final name, so that programs that read the directory (pyarrow, DuckDB, Spark, pandas) never
get half a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.common.atomic_files import make_directory, remove_unfinished, write_whole
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class ParquetTable:
    """The Parquet table in directory `path`, written by one query; `prefix` distinguishes queries' files.

    The batches reach the table through the driver: use it for small results, not for copies of whole topics.

        table = ParquetTable("delays")
        query = frame.writeStream.foreachBatch(table.write).option("checkpointLocation", "state").start()

    The batch ids count within one checkpoint. Delete the table together with its checkpoint; otherwise new
    batches replace old ones of the same number.
    """

    def __init__(
        self, path: str | PathLike[str], *, prefix: str = "batch", compression: str = "zstd"
    ) -> None:
        if not prefix or prefix[0] in "._" or "/" in prefix:
            raise ConfigError(
                f"prefix {prefix!r}: file names that start with '.' or '_' are hidden from readers"
            )
        self.path = Path(path)
        self._prefix = prefix
        self._compression = compression
        make_directory(self.path)
        remove_unfinished(self.path)

    def commit(self, batch_id: int, table: pa.Table) -> None:
        """Write `table` as the file of batch `batch_id`, replacing an earlier one; return when it is on disk.

        An empty table makes no file, except for the first batch, whose file has the columns for readers.

        Raises:
            StorageError: the disk is full, the directory is not writable, or another operation fails.
        """
        import pyarrow.parquet

        target = self.file_of(batch_id)
        if table.num_rows == 0 and any(file != target for file in self.files()):
            target.unlink(missing_ok=True)
            return
        write_whole(
            target, lambda hidden: pyarrow.parquet.write_table(table, hidden, compression=self._compression)
        )

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Commit a whole micro-batch: pass this method to `foreachBatch`."""
        self.commit(batch_id, frame.toArrow())

    def file_of(self, batch_id: int) -> Path:
        """Return the path of the file for batch `batch_id`, which may not exist.

        Raises:
            ConfigError: `batch_id` is negative.
        """
        if batch_id < 0:
            raise ConfigError(f"a batch id counts from 0, not {batch_id}")
        return self.path / f"{self._prefix}-{batch_id:012d}.parquet"

    def files(self) -> Iterator[Path]:
        """Return the files of this query's batches, in their order."""
        return iter(sorted(self.path.glob(f"{self._prefix}-{'[0-9]' * 12}.parquet")))

    def read(self) -> pa.Table:
        """Return all rows of this query's batches as one table, in the order of batches."""
        import pyarrow as pa
        import pyarrow.parquet

        tables = [pyarrow.parquet.read_table(file, partitioning=None) for file in self.files()]
        if not tables:
            raise ConfigError(f"no batch has been written to {self.path} yet")
        return pa.concat_tables(tables)
