"""Converts records to rows of a table, with columns from values and from Kafka, or else to dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ConfigError
from penstock.model import COLUMN_NAMES
from penstock.queries.columns.json_values import JsonColumns, inferred
from penstock.queries.columns.values import FORMATS, REGISTERED, Shape, column_names_of, shape_of

if TYPE_CHECKING:
    from penstock.registry.client import Finder

KAFKA_COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")
"""The columns of a table by default if values are not decoded: those of a Kafka record."""

BESIDE_FIELDS = ("partition", "offset", "timestamp", "key")
"""The columns from the Kafka record, such as the offset, that a table has by default beside the fields of
decoded values.
"""

DEAD_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("reason", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
"""The columns of a table of dead letters."""


class Split(NamedTuple):
    """The result of a conversion: the rows, and the dead letters with the columns of `DEAD_SCHEMA`."""

    rows: pa.RecordBatch
    dead: pa.RecordBatch | None


@dataclass(frozen=True, slots=True)
class ShapeSettings:
    """The settings of a conversion: the format of values, and the columns of the table.

    `fields` are the declared fields of JSON objects. `columns` are the names of all columns of the
    table, in their order; None means the default ones.
    """

    value_format: str = "bytes"
    fields: pa.Schema | None = None
    columns: tuple[str, ...] | None = None
    registry: str | Mapping[str, object] | Finder | None = None


class RowShape(Protocol):
    """A conversion from the records of a topic to the rows of a table."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""

    def split(self, records: pa.RecordBatch) -> Split:
        """Convert `records`, which have all columns of a Kafka record, to rows and dead letters."""

    def renewed(self, records: pa.RecordBatch) -> RowShape | None:
        """Return a new shape if records use a newer schema, or None if this shape fits them."""


class _Plain:
    """A conversion that keeps keys and values as bytes, or decodes them as text."""

    def __init__(self, shape: Shape, columns: Sequence[str]) -> None:
        self._shape = shape
        self._columns = list(columns)
        self.schema = pa.schema([shape.schema.field(name) for name in columns])

    def split(self, records: pa.RecordBatch) -> Split:
        """Return every record as a row, without dead letters."""
        return Split(self._shape.made(records, self._columns), None)

    def renewed(self, records: pa.RecordBatch) -> RowShape | None:
        """Return None, because this shape has no schema."""
        return None


class _Json:
    """A conversion of values that are JSON objects; each field becomes a column."""

    def __init__(self, fields: pa.Schema, columns: Sequence[str] | None) -> None:
        names = column_names_of(fields.names)
        self._fields = fields
        own = {column: fields.field(field) for column, field in names.items()}
        chosen = [*BESIDE_FIELDS, *own] if columns is None else list(columns)
        for name in chosen:
            if name not in own and name not in COLUMN_NAMES:
                raise ConfigError(f"no column {name!r}: there are {', '.join([*COLUMN_NAMES, *own])}")
        self._names = names
        records = shape_of("bytes", None, (), is_text=False).schema
        self.schema = pa.schema(
            [own[name].with_name(name) if name in own else records.field(name) for name in chosen]
        )
        self._decoder = JsonColumns(fields)

    def split(self, records: pa.RecordBatch) -> Split:
        """Return rows; a record is a dead letter if it is no JSON object or a field has another type.

        A tombstone (a record without a value) becomes a row.
        """
        decoded, reasons = self._decoder.judged(records.column("value"))
        arrays = [
            decoded[self._names[name]] if name in self._names else records.column(name)
            for name in self.schema.names
        ]
        return _parted(pa.RecordBatch.from_arrays(arrays, schema=self.schema), records, reasons)

    def renewed(self, records: pa.RecordBatch) -> RowShape | None:
        """Return None: the fields stay those that were declared or inferred from the first records."""
        return None


class _WithErrors:
    """A conversion with a decoder of `penstock.queries`, which returns the fields and a column of errors."""

    def __init__(
        self, shape: Shape, error: str, columns: Sequence[str] | None, hidden: Sequence[str]
    ) -> None:
        names = [name for name in shape.schema.names if name not in COLUMN_NAMES and name not in hidden]
        chosen = [*BESIDE_FIELDS, *names] if columns is None else list(columns)
        for name in chosen:
            if name not in shape.schema.names:
                raise ConfigError(f"no column {name!r}: there are {', '.join(shape.schema.names)}")
        self._shape = shape
        self._error = error
        self._columns = chosen
        self.schema = pa.schema([shape.schema.field(name) for name in chosen])

    def split(self, records: pa.RecordBatch) -> Split:
        """Return rows; a record is a dead letter if its error column is not null."""
        made = self._shape.made(records, list(dict.fromkeys([*self._columns, self._error])))
        errors = made.column(self._error)
        reasons: dict[int, str] = {}
        if errors.null_count < len(errors):
            found = enumerate(errors.to_pylist())
            reasons = {row: reason for row, reason in found if reason is not None}
            # A tombstone has no value that could be decoded.
            tombstones = records.column("value").is_null().to_pylist()
            reasons = {row: reason for row, reason in reasons.items() if not tombstones[row]}
        return _parted(made.select(self._columns), records, reasons)

    def renewed(self, records: pa.RecordBatch) -> RowShape | None:
        """Return None, because the schema does not change."""
        return None


class _Registered(_WithErrors):
    """A conversion with a schema of the registry. It is renewed when records use a newer schema."""

    def __init__(self, topic: str, settings: ShapeSettings) -> None:
        from penstock.queries.columns.registered_values import ERROR_COLUMN, RegisteredFields
        from penstock.registry.client import client_of
        from penstock.registry.decoding import reader_version
        from penstock.registry.subjects import topic_subject

        if settings.registry is None:
            raise ConfigError(f"values of format {settings.value_format!r} need a registry: --registry URL")
        self._topic, self._settings = topic, settings
        self._version = reader_version(client_of(settings.registry), topic_subject(topic))
        fields = RegisteredFields(
            settings.value_format, settings.registry, self._version.schema, is_text=False
        )
        super().__init__(fields, ERROR_COLUMN, settings.columns, (ERROR_COLUMN,))
        self._seen: set[Any] = set()

    def renewed(self, records: pa.RecordBatch) -> RowShape | None:
        """Return a conversion with the newest schema if records need it, else None."""
        named = set(pc.unique(pc.binary_slice(records.column("value"), 0, 5)).to_pylist()) - self._seen
        if not named:
            return None
        fresh = _Registered(self._topic, self._settings)
        self._seen |= named
        fresh._seen = self._seen
        return fresh if fresh._version.version != self._version.version else None


def shape_for(
    topic: str, settings: ShapeSettings, sample: Sequence[bytes | None], kept: pa.Schema | None
) -> RowShape:
    """Return the conversion from records to rows that the settings describe.

    `sample` are values from which JSON's fields are inferred; `kept` are the columns of an existing
    table, whose fields stay.

    Raises:
        ConfigError: there is no such format or column.
        RegistryError, NetworkError: the registry refuses a request, or does not answer.
    """
    kind = settings.value_format
    if kind not in FORMATS:
        raise ConfigError(f"the format of values is {kind!r}: it is one of {', '.join(FORMATS)}")
    if kind in REGISTERED or (kind == "json" and settings.registry is not None):
        return _Registered(topic, settings)
    if kind == "json":
        fields = settings.fields
        if fields is None and kept is not None:
            found = [field for field in kept if field.name not in COLUMN_NAMES]
            fields = pa.schema([field.remove_metadata().with_nullable(True) for field in found])
        return _Json(inferred(sample) if fields is None else fields, settings.columns)
    if settings.fields is not None:
        raise ConfigError(f"declared fields are for values of format 'json', which is {kind!r}")
    shape = shape_of(kind, None, (), is_text=kind == "text")
    if kind == "cloudevents":
        return _WithErrors(shape, "error", settings.columns, ("error", "time_text", "content_type"))
    columns = KAFKA_COLUMNS if settings.columns is None else settings.columns
    for name in columns:
        if name not in COLUMN_NAMES:
            raise ConfigError(f"no column {name!r}: there are {', '.join(COLUMN_NAMES)}")
    return _Plain(shape, columns)


def _parted(rows: pa.RecordBatch, records: pa.RecordBatch, reasons: Mapping[int, str]) -> Split:
    if not reasons:
        return Split(rows, None)
    fits = pa.array([row not in reasons for row in range(records.num_rows)], pa.bool_())
    lost = records.filter(pc.invert(fits))
    texts = pa.array([reasons[row] for row in sorted(reasons)], pa.string())
    arrays = [texts if name == "reason" else lost.column(name) for name in DEAD_SCHEMA.names]
    return Split(rows.filter(fits), pa.RecordBatch.from_arrays(arrays, schema=DEAD_SCHEMA))
