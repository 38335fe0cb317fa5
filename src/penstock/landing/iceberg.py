"""Adds landed Parquet files to an Iceberg table, with the library `pyiceberg`; adds each batch only once.

The number of a writer's last batch is a property of the table, set in the same commit that adds the files;
their snapshot has the number as well. This number shows that the table has a batch already.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.common.extras import missing
from penstock.errors import ConfigError, StorageError
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import Manifest

ATTEMPTS_MAX = 10
"""The number of attempts to commit, when other writers of the table commit first."""

PROPERTY_PREFIX = "penstock.landed."
"""The beginning of the name of a table property; the writer's name follows. The value is the number of the
writer's last batch.
"""


class IcebergRegister:
    """Adds the files of batches to the Iceberg table `name` of a catalog; the first batch creates it.

    `catalog` and `properties` are the arguments of `pyiceberg.catalog.load_catalog`.
    """

    def __init__(
        self, root: Path, layout: TableLayout, name: str, catalog: str | None, properties: Mapping[str, str]
    ) -> None:
        try:
            import pyiceberg.catalog  # noqa: F401 - said at once, not after the files are written
        except ImportError as error:
            raise missing(error, "landing.format = iceberg") from None
        self._root = root
        self._layout = layout
        self._name = name
        self._catalog = catalog
        self._properties = dict(properties)

    def __call__(self, manifest: Manifest) -> None:
        """Add the files of a batch, unless the table has that batch already.

        Raises:
            ConfigError: the catalog cannot be opened, or the table has other columns or partitions.
            StorageError: the table cannot be written.
        """
        from pyiceberg.exceptions import CommitFailedException

        key = PROPERTY_PREFIX + manifest.writer
        paths = [str(self._root / file.path) for file in manifest.files]
        labels = {"penstock.writer": manifest.writer, "penstock.batch": str(manifest.batch)}
        try:
            for _ in range(ATTEMPTS_MAX):
                table = self._table(manifest)
                if int(table.properties.get(key, -1)) >= manifest.batch:
                    return
                # The library would commit again on top of another driver's commit of this very batch. Only
                # the copy in memory changes.
                table.properties["commit.retry.num-retries"] = "0"
                try:
                    with table.transaction() as transaction:
                        transaction.set_properties({key: str(manifest.batch)})
                        transaction.add_files(paths, snapshot_properties=labels, check_duplicate_files=False)
                except CommitFailedException:
                    continue
                return
        except (ConfigError, StorageError):
            raise
        except Exception as error:  # catalogs raise what their libraries do
            raise StorageError(f"cannot add batch {manifest.batch} to table {self._name}: {error}") from error
        raise StorageError(
            f"cannot add batch {manifest.batch} to table {self._name}: other writers were faster "
            f"{ATTEMPTS_MAX} times"
        )

    def _table(self, manifest: Manifest) -> Any:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

        try:
            catalog = load_catalog(self._catalog, **self._properties)
        except Exception as error:
            named = f" {self._catalog!r}" if self._catalog else ""
            raise ConfigError(f"cannot open the Iceberg catalog{named}: {error}") from error
        try:
            table = catalog.load_table(self._name)
        except NoSuchTableError:
            try:
                table = self._create(catalog, manifest)
            except TableAlreadyExistsError:
                table = catalog.load_table(self._name)
        names = [field.name for field in table.schema().fields]
        partitions = [
            (str(table.schema().find_column_name(f.source_id)), str(f.transform)) for f in table.spec().fields
        ]
        wanted = list(self._layout.file_columns())
        if sorted(names) != sorted(wanted) or partitions != self._transforms():
            raise ConfigError(
                f"the Iceberg table {self._name} has columns {', '.join(names)} by {_listed(partitions)}, "
                f"this query lands {', '.join(wanted)} by {_listed(self._transforms())}"
            )
        return table

    def _create(self, catalog: Any, manifest: Manifest) -> Any:
        from penstock.landing.arrow_schema import table_schema

        namespace = self._name.rpartition(".")[0]
        if namespace:
            catalog.create_namespace_if_not_exists(namespace)
        of_files = TableLayout(self._layout.columns, format="iceberg")
        schema = table_schema(self._root / manifest.files[0].path, of_files)
        transaction = catalog.create_table_transaction(self._name, schema)
        with transaction.update_spec() as spec:
            for column, transform in self._transforms():
                spec.add_field(column, transform)
        return transaction.commit_transaction()

    def _transforms(self) -> list[tuple[str, str]]:
        """Return (column, transform) of each partition column.

        With ``hour``, ``date`` is left out: Iceberg allows one time transform per column.
        """
        names = self._layout.partition_by
        return [
            (self._layout.time_column, {"date": "day", "hour": "hour"}[name])
            if name not in dict(self._layout.columns)
            else (name, "identity")
            for name in names
            if not (name == "date" and "hour" in names)
        ]


def _listed(partitions: list[tuple[str, str]]) -> str:
    return ", ".join(f"{transform}({column})" for column, transform in partitions) or "none"
