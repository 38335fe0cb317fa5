"""Decode keys and values where records are fetched: the resulting columns, and the conversion of bytes.

Each field of a record is a column: the fields of a value have their own names, as in data sets; the fields of
a key have the prefix ``key_``. ``value_error`` and ``key_error`` have the reason why bytes cannot be decoded,
or null.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, StringType, StructField, StructType

from penstock.common.operating_system import after_fork_in_child
from penstock.errors import DecodeError
from penstock.model import COLUMN_NAMES
from penstock.queries.columns.values import column_names_of
from penstock.records.kernels.compiled import Ints
from penstock.registry.client import Finder
from penstock.registry.decoding import Decoded, Decoder, taken_with_nulls
from penstock.registry.schemas import Schema
from penstock.spark.registries import KnownVersions, PatientRegistry, Settings, client_for, reader_schema
from penstock.spark.value_options import FIELDS, FieldOptions, ValueOptions
from penstock.spark.value_types import as_spark, spark_type

VERSION = "penstock.version"
"""The metadata key, in the field of an error column, for the version of the subject from which the columns
were made."""


@dataclass(frozen=True)
class ReadField:
    """The decoding of a query's keys or values: the reader's schema, and the resulting columns.

    `names` is a dict from column to field; None as the field means the whole value. `version` is the schema's
    version in the subject, None if the schema was given as text.
    """

    options: FieldOptions
    registry: Settings | None
    schema: Schema
    version: int | None
    names: Mapping[str, str | None]
    types: Mapping[str, DataType]
    whole: DataType
    """The Spark type of the decoded key or value as a whole."""

    @property
    def error_column(self) -> str:
        """The name of the column with the reasons why bytes cannot be decoded."""
        return f"{self.options.field}_error"

    @property
    def identity(self) -> tuple[object, ...]:
        """The fields that determine a decoder, used as the key in the process's cache of decoders."""
        return (self.options, self.registry, self.schema, self.version)


class ValueColumns:
    """The columns of decoded keys and values. Tasks get a copy, so that they do not look up schemas."""

    def __init__(self, options: ValueOptions, versions: Mapping[str, int] = MappingProxyType({})) -> None:
        """Look up the reader's schemas; `versions` are those of an existing DataFrame or table.

        Raises:
            ConfigError: the registry has no such subject, or a schema in another format.
            DecodeError: a schema is not valid in its format.
            RegistryError, NetworkError: the request to the registry fails.
        """
        taken = {f"{each.field}_error" for each in options.fields}
        self.fields: list[ReadField] = []
        for each in options.fields:
            found = read_field(each, options.registry, versions.get(each.field), taken)
            self.fields.append(found)
            taken |= set(found.names)

    @property
    def columns(self) -> dict[str, DataType]:
        """A dict from column name to type; error columns are last."""
        found: dict[str, DataType] = {}
        for each in self.fields:
            found |= each.types
        return found | {each.error_column: StringType() for each in self.fields}

    @property
    def versions(self) -> dict[str, int]:
        """A dict from "key" and "value" to the schema version from which the columns were made."""
        return {each.options.field: each.version for each in self.fields if each.version is not None}

    def struct_fields(self) -> list[StructField]:
        """Return the columns as fields of a DataFrame; metadata of error columns has the schema version."""
        versions = {each.error_column: each.version for each in self.fields if each.version is not None}
        return [
            StructField(name, kind, True, {VERSION: versions[name]} if name in versions else None)
            for name, kind in self.columns.items()
        ]

    def fetched(self, wanted: Collection[str]) -> set[str]:
        """Return the columns of records that are needed to make the columns `wanted`."""
        found: set[str] = set()
        for each in self.fields:
            name = each.options.field
            if each.options.invalid != "keep" or each.error_column in wanted or name in wanted:
                found.add(name)
            if any(column in each.names for column in wanted):
                found.add(name)
            if name in found and each.registry is not None:
                found.add("headers")
            if each.options.invalid == "fail":
                found |= {"topic", "partition", "offset"}
        return found

    def made(self, batch: pa.RecordBatch, columns: Sequence[str], target: pa.Schema) -> dict[str, pa.Array]:
        """Return the decoded columns for a batch of records, in the order and with the types of `target`.

        Rows that cannot be decoded are left out if the option `invalid` is "drop".

        Raises:
            DecodeError: a row cannot be decoded, and the option `invalid` is "fail".
            RegistryError, NetworkError: the request to the registry fails.
        """
        found = {name: batch.column(name) for name in columns if name in COLUMN_NAMES}
        types = {name: target.field(at).type for at, name in enumerate(columns)}
        dropped: list[Ints] = []
        for each in self.fields:
            is_wanted = {*each.names, each.error_column, each.options.field} & types.keys()
            if not is_wanted and each.options.invalid == "keep":
                continue
            decoded, dead = _decoded(each, batch, types)
            found |= {name: array for name, array in decoded.items() if name in types}
            if dead and each.options.invalid == "drop":
                dropped.append(np.fromiter(dead, dtype=np.int64))
            raw = each.options.field
            if raw in found and each.options.raw == "invalid":
                found[raw] = _only_at(found[raw], dead)
        if dropped:
            keep = np.ones(batch.num_rows, dtype=np.bool_)
            keep[np.concatenate(dropped)] = False
            mask = pa.array(keep)
            found = {name: array.filter(mask) for name, array in found.items()}
        return found


def versions_in(schema: StructType) -> dict[str, int]:
    """Return the schema versions of a DataFrame's columns, from the metadata of its error columns."""
    found = {each.name: each.metadata.get(VERSION) for each in schema.fields}
    return {field: version for field in FIELDS if isinstance(version := found.get(f"{field}_error"), int)}


def read_field(
    options: FieldOptions,
    registry: Settings | None,
    version: int | None = None,
    taken: Collection[str] = (),
) -> ReadField:
    """Return the `ReadField` for keys or values; names in `taken` are not used for its columns.

    Raises:
        ConfigError: the registry has no such subject, or a schema in another format.
        DecodeError: the schema is not valid in its format.
        RegistryError, NetworkError: the request to the registry fails.
    """
    schema, found = reader_schema(options, registry, version)
    kind = _decoder((options, registry, schema, found)).type
    assert kind is not None  # the reader's schema is known
    prefix = "key_" if options.field == "key" else ""
    names: dict[str, str | None]
    if pa.types.is_struct(kind):
        fields = {f"{prefix}{each.name}": each for each in kind}
        columns = column_names_of(fields, taken)
        names = {column: fields[name].name for column, name in columns.items()}
        types = {column: spark_type(fields[name].type) for column, name in columns.items()}
    else:
        (whole,) = column_names_of([f"{options.field}_decoded"], taken)
        names, types = {whole: None}, {whole: spark_type(kind)}
    return ReadField(options, registry, schema, found, names, types, spark_type(kind))


def decoded_whole(
    field: ReadField, data: pa.Array, headers: pa.Array | None, wanted: pa.DataType, *, fails: bool
) -> tuple[pa.Array, pa.Array]:
    """Return (decoded values of a column of bytes, in the type `wanted`; errors of undecodable rows).

    Raises:
        DecodeError: a row cannot be decoded, and `fails` is True.
        RegistryError, NetworkError: the request to the registry fails.
    """
    found = _decoder(field.identity).decode(data, headers)
    dead = _reasons(found)
    values, bad = as_spark(found.values, wanted)
    dead |= dict.fromkeys(found.rows[bad].tolist(), f"Spark's {wanted} cannot hold the value")
    if not dead:
        return values, pa.nulls(len(data), pa.string())
    if fails:
        raise DecodeError(
            f"{len(dead):,} of {len(data):,} rows do not decode, one of them because {dead[min(dead)]}; say "
            "invalid='keep' to go on"
        )
    return taken_with_nulls(values, _places(found.rows, dead, len(data))), _as_column(dead, len(data))


def _reasons(found: Decoded) -> dict[int, str]:
    return dict(zip(found.dead["row"].to_pylist(), found.dead["reason"].to_pylist(), strict=True))


def _places(rows: Ints, dead: Collection[int], count: int) -> Ints:
    """Return an array with the index of each row among the decoded rows, or -1 for rows in `dead`."""
    places = np.full(count, -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    places[np.fromiter(dead, dtype=np.int64)] = -1
    return places


def _as_column(dead: Mapping[int, str], count: int) -> pa.Array:
    if not dead:
        return pa.nulls(count, pa.string())
    return pa.array([dead.get(row) for row in range(count)], pa.string())


UNKNOWN_AGE_MAX_S = 60.0
"""Seconds for which a schema id that the registry did not have is not requested again. Records may arrive
before their schema is at every registry, so a missing id is not cached permanently.
"""

_decoders: dict[tuple[object, ...], tuple[float, Decoder]] = {}
after_fork_in_child(_decoders.clear)

DECODERS_MAX = 100
"""The most decoders that a process caches: one for each combination of options for reading keys or values."""


def _decoder(identity: tuple[Any, ...]) -> Decoder:
    """Return this process's cached decoder for these options, which has the schemas of earlier tasks."""
    now = time.monotonic()
    since, known = _decoders.get(identity, (now, None))
    if known is not None and not (known.unknown_ids and now - since > UNKNOWN_AGE_MAX_S):
        return known
    options, registry, schema, version = identity
    finder: Finder | None = None if registry is None else client_for(registry)
    if options.new_version == "fail" and registry is not None and version is not None:
        finder = KnownVersions(client_for(registry), options.subject, version)
    if finder is not None and options.max_outage_ms:
        finder = PatientRegistry(finder, options.max_outage_ms / 1000)
    found = Decoder(
        options.format, finder, schema=schema, is_key=options.field == "key", message=options.message
    )
    if identity not in _decoders and len(_decoders) >= DECODERS_MAX:
        del _decoders[next(iter(_decoders))]
    _decoders[identity] = now, found
    return found


def _decoded(
    field: ReadField, batch: pa.RecordBatch, types: Mapping[str, pa.DataType]
) -> tuple[dict[str, pa.Array], dict[int, str]]:
    """Return (columns of a field and its error column, errors of the rows that cannot be decoded)."""
    raw = batch.column(field.options.field)
    headers = batch.column("headers") if field.registry is not None else None
    found = _decoder(field.identity).decode(raw, headers)
    dead = _reasons(found)
    # Unlike `field`, `flatten` minds rows that are null as a whole.
    parts = found.values.flatten() if pa.types.is_struct(found.values.type) else []
    made: dict[str, pa.Array] = {}
    for column, name in field.names.items():
        if column in types:
            array = found.values if name is None else parts[found.values.type.get_field_index(name)]
            made[column], bad = as_spark(array, types[column])
            for row in found.rows[bad].tolist():
                dead[row] = f"the field {name or column} has a value that Spark's {types[column]} cannot hold"
    if dead:
        if field.options.invalid == "fail":
            raise DecodeError(_first_error(field.options.field, batch, dead))
        places = _places(found.rows, dead, batch.num_rows)
        made = {name: taken_with_nulls(array, places) for name, array in made.items()}
    if field.error_column in types:
        made[field.error_column] = _as_column(dead, batch.num_rows)
    return made, dead


def _only_at(column: pa.Array, rows: Collection[int]) -> pa.Array:
    """Return a copy of a column with null in all rows that are not in `rows`."""
    if not rows:
        return pa.nulls(len(column), column.type)
    keep = np.zeros(len(column), dtype=np.bool_)
    keep[np.fromiter(rows, dtype=np.int64)] = True
    return pc.if_else(pa.array(keep), column, pa.scalar(None, column.type))


def _first_error(field: str, batch: pa.RecordBatch, dead: Mapping[int, str]) -> str:
    row = min(dead)
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return (
        f"{topic}-{partition} at offset {offset}: the {field} does not decode: {dead[row]}; "
        f"set {field}.invalid to 'keep' or 'drop' to go on"
    )
