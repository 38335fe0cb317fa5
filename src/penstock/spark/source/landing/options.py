"""The options of landing, shared by source and sink: the table, its columns, and the size of files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from penstock.common.suggestions import nearest
from penstock.errors import ConfigError
from penstock.landing.layout import FORMATS, TableLayout
from penstock.security.secrets import Secret
from penstock.spark.option_values import choice, count
from penstock.spark.source.schema import (
    EVENT_COLUMNS,
    EXTENSION_PREFIX,
    KAFKA_COLUMNS,
    TEXT_OR_BYTES,
    schema_for,
)

if TYPE_CHECKING:
    from penstock.spark.source.landing.lake_tables import LakeTarget
    from penstock.spark.source.options import CloudEventsOptions
    from penstock.spark.value_columns import ValueColumns

NAMES = (
    "landing",
    "landing.format",
    "landing.columns",
    "landing.partitionBy",
    "landing.time",
    "landing.compression",
    "landing.fileBytes",
    "landing.maxPartitions",
    "landing.table",
    "landing.catalog",
    "landing.name",
    "landing.storeFile",
)
CATALOG_PREFIX = "landing.catalog."
STORE_PREFIX = "landing.store."
OF_DIRECTORIES = (
    "landing.format",
    "landing.time",
    "landing.maxPartitions",
    "landing.table",
    "landing.catalog",
)
"""Options for tables in directories only: the URL of a lake table determines its format and catalog."""
COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "none")

FILE_BYTES = 128 << 20
FILE_BYTES_LEAST = 1 << 16
PARTITIONS_MAX = 256
"""The default limit of table partitions per task: each task writes one file per partition and batch."""

_CANONICAL = {name.lower(): name for name in NAMES}


@dataclass(frozen=True, slots=True)
class LandingOptions:
    """The checked options that begin with ``landing``. `columns` is None to land all columns."""

    path: str
    format: str
    columns: tuple[tuple[str, str | None], ...] | None
    partition_by: tuple[str, ...]
    time_column: str
    compression: str
    file_bytes: int
    partitions_max: int
    table: str | None = None
    catalog: str | None = None
    catalog_properties: Mapping[str, Secret] = field(default_factory=dict)
    lake: LakeTarget | None = None
    """The lake table to land into, or None for a directory."""


def lands(options: Mapping[str, str]) -> bool:
    """Return True if the query stores its records as files: an option begins with ``landing``."""
    return any(map(_is_ours, options))


def split_options(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return (options of landing, other options)."""
    landing = {key: value for key, value in options.items() if _is_ours(key)}
    return landing, {key: value for key, value in options.items() if key not in landing}


def _is_ours(key: str) -> bool:
    return key.lower() == "landing" or key.lower().startswith("landing.")


def landing_options(options: Mapping[str, str]) -> LandingOptions:
    """Return the checked options of landing.

    Raises:
        ConfigError: an option is unknown, malformed, missing, or contradicts another one.
    """
    given: dict[str, str] = {}
    properties: dict[str, Secret] = {}
    store: dict[str, Secret] = {}
    for key, value in options.items():
        lowered = key.lower()
        if lowered.startswith(CATALOG_PREFIX):
            properties[lowered.removeprefix(CATALOG_PREFIX)] = Secret(str(value))
        elif lowered.startswith(STORE_PREFIX):
            # Names of Delta's options are in capitals, which Spark may have lost on the way.
            store[key[len(STORE_PREFIX) :]] = Secret(str(value))
        elif lowered not in _CANONICAL:
            near = nearest(lowered, _CANONICAL)
            advice = f"; did you mean {_CANONICAL[near[0]]!r}?" if near else f"; there are {', '.join(NAMES)}"
            raise ConfigError(f"unknown option {key!r}{advice}")
        else:
            given[_CANONICAL[lowered]] = str(value).strip()
    where = given.get("landing", "")
    if _is_lake(where):
        return _lake_options(where, given, store, has_catalog=bool(properties))
    if store or "landing.name" in given or "landing.storeFile" in given:
        raise ConfigError(
            "landing.name, landing.store.* and landing.storeFile are for tables of the lake, such as "
            "landing = s3://bucket/orders/ or iceberg://catalog/db.orders; this is a directory"
        )
    kind = choice(given, "landing.format", FORMATS)
    for name in ("landing.table", "landing.catalog"):
        if name in given and kind != "iceberg":
            raise ConfigError(f"{name} means something only with landing.format = iceberg")
    if properties and kind != "iceberg":
        raise ConfigError("landing.catalog.* mean something only with landing.format = iceberg")
    if kind == "iceberg" and not given.get("landing.table"):
        raise ConfigError("landing.format = iceberg needs the option landing.table, such as 'db.orders'")
    file_bytes = count(given, "landing.fileBytes", least=FILE_BYTES_LEAST) or FILE_BYTES
    return LandingOptions(
        path=_directory(where),
        format=kind,
        columns=_columns(given.get("landing.columns")),
        partition_by=tuple(_names(given.get("landing.partitionBy", ""))),
        time_column=choice(given, "landing.time", ("timestamp", "time")),
        compression=choice(given, "landing.compression", COMPRESSIONS),
        file_bytes=file_bytes,
        partitions_max=count(given, "landing.maxPartitions") or PARTITIONS_MAX,
        table=given.get("landing.table"),
        catalog=given.get("landing.catalog"),
        catalog_properties=properties,
    )


def _is_lake(where: str) -> bool:
    """Return True if `where` is the URL of a lake table rather than a directory."""
    scheme, separator, _ = where.partition("://")
    return bool(separator) and scheme.lower() != "file"


def _lake_options(
    where: str, given: Mapping[str, str], store: Mapping[str, Secret], *, has_catalog: bool
) -> LandingOptions:
    """Return the options of a table of the lake. Raises ConfigError."""
    from penstock.spark.source.landing.lake_tables import SCHEMES, LakeTarget

    scheme = where.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise ConfigError(
            f"landing {where!r}: {scheme}:// is no place of tables: there are directories, "
            "iceberg://CATALOG/NAMESPACE.TABLE, delta://PATH, s3://, gs:// and az://"
        )
    useless = [name for name in OF_DIRECTORIES if name in given]
    if useless or has_catalog:
        names = useless or ["landing.catalog.*"]
        raise ConfigError(
            f"{', '.join(names)}: the URL of a table says its format and its catalog; properties of the "
            "catalog or the store are landing.store.*"
        )
    compression = choice(given, "landing.compression", COMPRESSIONS)
    file_bytes = count(given, "landing.fileBytes", least=FILE_BYTES_LEAST) or FILE_BYTES
    partition_by = tuple(_names(given.get("landing.partitionBy", "")))
    target = LakeTarget(
        where,
        given.get("landing.name"),
        partition_by,
        compression,
        file_bytes,
        store,
        given.get("landing.storeFile"),
    )
    return LandingOptions(
        path=target.title,
        format="parquet",
        columns=_columns(given.get("landing.columns")),
        partition_by=partition_by,
        time_column="timestamp",
        compression=compression,
        file_bytes=file_bytes,
        partitions_max=PARTITIONS_MAX,
        lake=target,
    )


def record_schema(
    landing: LandingOptions,
    include_headers: bool,
    cloudevents: CloudEventsOptions | None,
    values: ValueColumns | None = None,
) -> StructType:
    """Return the columns to land, with their types. Raises ConfigError."""
    natural = schema_for(include_headers, cloudevents, values)
    if landing.columns is None:
        return natural
    types = {
        **KAFKA_COLUMNS,
        **(EVENT_COLUMNS if cloudevents else {}),
        **({} if values is None else values.columns),
    }
    spellings = {name.lower(): name for name in types}
    fields = []
    for given, kind in landing.columns:
        name = spellings.get(given.lower(), given)
        if kind is not None and name not in TEXT_OR_BYTES:
            raise ConfigError(
                f"landing.columns: {name!r} takes no type; {', '.join(TEXT_OR_BYTES)} may be 'string'"
            )
        is_extension = cloudevents is not None and name.lower().startswith(EXTENSION_PREFIX)
        found = StringType() if kind is not None or is_extension else types.get(name)
        if found is None:
            raise ConfigError(f"landing.columns: no column {name!r}; there are {', '.join(types)}")
        fields.append(StructField(name, found))
    if len({each.name.lower() for each in fields}) < len(fields):
        raise ConfigError("landing.columns names a column twice")
    return StructType(fields)


def layout_of(
    landing: LandingOptions, records: StructType, versions: Mapping[str, int] = MappingProxyType({})
) -> TableLayout:
    """Return the layout of all files of the table: its columns and partition columns.

    Raises:
        ConfigError: a partition column does not fit the columns, or Parquet cannot hold a column.
    """
    spellings = {each.name.lower(): each.name for each in records.fields}
    for each in records.fields:
        if _is_empty(each.dataType):
            raise ConfigError(
                f"column {each.name!r} has a record without fields, which Parquet cannot hold: name the "
                "others with landing.columns"
            )
    layout = TableLayout(
        columns=tuple((each.name, each.dataType.simpleString()) for each in records.fields),
        partition_by=tuple(spellings.get(name.lower(), name) for name in landing.partition_by),
        time_column=landing.time_column,
        format=landing.format,
        versions=tuple(versions.items()),
    )
    if landing.lake is None:  # tables of the lake have other partitions, and check them
        layout.check()
    return layout


def _is_empty(kind: DataType) -> bool:
    """Return True if a type is a struct without fields, or contains such a struct."""
    if isinstance(kind, StructType):
        return not kind.fields or any(_is_empty(each.dataType) for each in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_empty(kind.elementType)
    return isinstance(kind, MapType) and _is_empty(kind.valueType)


def _directory(text: str) -> str:
    _, separator, rest = text.partition("://")
    path = rest if separator else text.removeprefix("file:")
    if not path:
        raise ConfigError("landing names no directory")
    if not os.path.isabs(path):
        raise ConfigError(f"landing takes a path from the root, not {text!r}: executors work elsewhere")
    return os.path.normpath(path)


def _names(text: str) -> list[str]:
    """Split a comma-separated list into names, except at commas in parentheses, as in ``bucket(4, key)``."""
    return [name.strip() for name in re.split(r",(?![^()]*\))", text) if name.strip()]


def _columns(text: str | None) -> tuple[tuple[str, str | None], ...] | None:
    if text is None:
        return None
    found: list[tuple[str, str | None]] = []
    for part in _names(text):
        name, *kinds = part.split()
        kind = " ".join(kinds).lower()
        if kind not in ("", "string", "binary"):
            raise ConfigError(f"landing.columns: {part!r} is neither a name nor a name with 'string'")
        found.append((name, kind if kind == "string" else None))
    if not found:
        raise ConfigError("landing.columns names no column")
    return tuple(found)
