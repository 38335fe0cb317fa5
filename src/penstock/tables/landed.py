"""Read landed tables (topics stored as files) as lists of committed files or as Arrow datasets."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from penstock.common.extras import need_arrow
from penstock.errors import ConfigError
from penstock.landing.table import LandingTable

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def landed_files(path: str | PathLike[str]) -> list[str]:
    """Return the committed files of the landed table in directory `path`, in the order of their batches.

    For readers that take a list of files: ``spark.read``, ``duckdb.read_parquet``, ``polars.scan_parquet``. A
    batch is in the list whole or not at all.

    Raises:
        ConfigError: the directory has no landed table.
        DecodeError: a manifest is damaged, or of a newer release.
        StorageError: a manifest cannot be read, or a file is missing.
    """
    table = LandingTable(path)
    if table.layout() is None:
        raise ConfigError(f"nothing has been landed in {path}: it has no _penstock/table.json")
    return [str(place) for _, place in table.files()]


def landed_dataset(path: str | PathLike[str]) -> ds.Dataset:
    """Return the landed table in directory `path` as an Arrow dataset, with typed partition columns.

    Raises:
        MissingDependencyError: pyarrow is not installed.
        ConfigError: the directory has no landed table.
        DecodeError: a manifest is damaged, or of a newer release.
        StorageError: a manifest cannot be read, or a file is missing.
    """
    need_arrow("landed_dataset")
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    from penstock.landing.arrow_schema import partition_schema, table_schema

    table = LandingTable(path)
    layout = table.layout()
    if layout is None:
        raise ConfigError(f"nothing has been landed in {path}: it has no _penstock/table.json")
    types = {field.name: field.type for field in partition_schema(layout)}
    form = ds.ParquetFileFormat()
    files, parts, schema = LocalFileSystem(), [], None
    for file, place in table.files():
        expression = pc.scalar(True)
        for name, value in file.partition.items():
            if name in layout.file_columns():
                continue
            here = pc.field(name).is_null() if value is None else pc.field(name) == _typed(value, types[name])
            expression = expression & here
        parts.append(form.make_fragment(str(place), files, expression))
        if schema is None:
            schema = table_schema(place, layout)
    if schema is None:
        raise ConfigError(f"nothing has been landed in {path}: no batch has a file")
    return ds.FileSystemDataset(parts, schema, form, files)


def _typed(value: str, kind: object) -> object:
    import pyarrow as pa

    return pa.scalar(value).cast(kind)
