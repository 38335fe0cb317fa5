"""Adds landed Parquet files to a Delta table, with the library `deltalake`; adds each batch only once.

The same commit adds the files and stores the writer's name and the number of its last batch (a ``txn``
action) in the table's log. This number shows that the table has a batch already.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from penstock.common.extras import missing
from penstock.errors import ConfigError, StorageError
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import Manifest

ATTEMPTS_MAX = 10
"""The number of attempts to commit, when other writers of the table commit first."""


class DeltaRegister:
    """Adds the files of batches to the Delta table in directory `root`; the first batch creates it."""

    def __init__(self, root: Path, layout: TableLayout) -> None:
        try:
            import deltalake  # noqa: F401 - said at once, not after the files are written
        except ImportError as error:
            raise missing(error, "landing.format = delta") from None
        self._root = root
        self._layout = layout

    def __call__(self, manifest: Manifest) -> None:
        """Add the files of a batch, unless the table has that batch already.

        Raises:
            ConfigError: the table has other columns or partitions.
            StorageError: the table cannot be written.
        """
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.transaction import AddAction, CommitProperties, Transaction

        try:
            for _ in range(ATTEMPTS_MAX):
                table = self._table(manifest)
                done = table.transaction_version(manifest.writer)
                if done is not None and done >= manifest.batch:
                    return
                actions = [
                    AddAction(
                        file.path,
                        file.size_bytes,
                        {name: value or None for name, value in file.partition.items()},
                        int(time.time() * 1000),
                        True,
                        json.dumps({"numRecords": file.rows}),
                    )
                    for file in manifest.files
                ]
                own = Transaction(manifest.writer, manifest.batch)
                try:
                    table.create_write_transaction(
                        actions,
                        mode="append",
                        schema=table.schema(),
                        partition_by=list(self._layout.partition_by),
                        commit_properties=CommitProperties(app_transactions=[own]),
                    )
                except CommitFailedError:
                    continue  # another writer, or another driver with this very batch
                return
        except (DeltaError, OSError) as error:
            raise StorageError(f"cannot add batch {manifest.batch} to {self._root}: {error}") from error
        raise StorageError(
            f"cannot add batch {manifest.batch} to {self._root}: other writers were faster "
            f"{ATTEMPTS_MAX} times"
        )

    def _table(self, manifest: Manifest) -> Any:
        from deltalake import DeltaTable

        from penstock.landing.arrow_schema import table_schema

        table = DeltaTable.create(
            str(self._root),
            table_schema(self._root / manifest.files[0].path, self._layout),
            mode="ignore",
            partition_by=list(self._layout.partition_by),
        )
        names = [field.name for field in table.schema().fields]
        partitions = table.metadata().partition_columns
        wanted = [*self._layout.file_columns(), *self._layout.partition_by]
        if sorted(names) != sorted(wanted) or partitions != list(self._layout.partition_by):
            raise ConfigError(
                f"the Delta table {self._root} has columns {', '.join(names)} by "
                f"{', '.join(partitions) or 'none'}, this query lands {', '.join(wanted)} by "
                f"{', '.join(self._layout.partition_by) or 'none'}"
            )
        return table
