"""Converts batches of records to the columns of a data set; some columns are decoded from keys and values.

A `Shape` has the schema of a data set (the columns of records, and decoded ones), and makes the columns.
The shape for values with a schema is in `penstock.queries.columns.registered_values`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ConfigError
from penstock.model import COLUMN_NAMES
from penstock.queries.columns.json_values import JsonColumns, inferred, is_object
from penstock.records.arrow import SCHEMA

COLUMN_ORDER = ("partition", "offset", "timestamp", "key", "value", "headers", "topic", "timestampType")
"""The record columns of a data set, in order. The first one must need no decoding, because DuckDB reads it
to count rows.
"""

REGISTERED = ("avro", "protobuf")
"""Formats whose values cannot be decoded without a schema."""

SCHEMA_FORMATS = (*REGISTERED, "json")
"""The formats of values for which a registry may have schemas."""

FORMATS = ("bytes", "text", "json", "cloudevents", *REGISTERED)


class Shape(Protocol):
    """The interface of a conversion from batches of records to the columns of a data set."""

    @property
    def schema(self) -> pa.Schema: ...

    def needs(self, columns: Collection[str]) -> list[str]: ...

    def made(self, batch: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch: ...


class RecordsShape:
    """The `Shape` with only the columns of records; keys and values are bytes or text."""

    def __init__(self, *, is_text: bool) -> None:
        self._is_text = is_text
        fields = [SCHEMA.field(name) for name in COLUMN_ORDER]
        if is_text:
            fields = [pa.field(f.name, pa.string()) if f.name in ("key", "value") else f for f in fields]
        self.schema = pa.schema(fields)

    def needs(self, columns: Collection[str]) -> list[str]:
        """Return the record columns to read for `columns`; at least one, so that rows can be counted."""
        return records_needed(columns, ())

    def made(self, batch: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Return the columns named in `columns` of a batch of records."""
        arrays = [self.column(batch, name) for name in columns]
        return batch_of(arrays, self.schema, columns, batch.num_rows)

    def column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """Return one column of a batch; keys and values are decoded as text if so configured."""
        found = batch.column(name)
        return text_of(found) if self._is_text and name in ("key", "value") else found


class JsonFields:
    """The `Shape` in which the fields of JSON objects in values are columns."""

    def __init__(self, fields: pa.Schema, *, is_text: bool) -> None:
        self._records = RecordsShape(is_text=is_text)
        self._names = column_names_of(fields.names)
        """A dict from column names to the fields of the JSON objects that these columns show."""
        self._fields = fields
        own = [fields.field(name).with_name(column) for column, name in self._names.items()]
        self.schema = pa.schema([*self._records.schema, *own])

    def needs(self, columns: Collection[str]) -> list[str]:
        """Return the record columns that must be read to make the columns in `columns`."""
        return records_needed(columns, ("value",))

    def made(self, batch: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Return the columns named in `columns`, made from a batch of records.

        Only the fields for these columns are decoded.
        """
        wanted = {name: self._names[name] for name in columns if name in self._names}
        decoded: Mapping[str, pa.Array] = {}
        if wanted:
            types = pa.schema([self._fields.field(field) for field in wanted.values()])
            decoded = JsonColumns(types).of(batch.column("value"))
        arrays = [
            decoded[wanted[name]] if name in wanted else self._records.column(batch, name) for name in columns
        ]
        return batch_of(arrays, self.schema, columns, batch.num_rows)


class EventFields:
    """The `Shape` in which CloudEvents attributes are columns, named as in `penstock.cloudevents`."""

    def __init__(self, *, is_text: bool) -> None:
        from penstock.cloudevents.columnar import EVENT_COLUMNS, EVENT_SCHEMA

        self._records = RecordsShape(is_text=is_text)
        self._columns = [name for name in EVENT_COLUMNS if name not in COLUMN_NAMES]
        self.schema = pa.schema([*self._records.schema, *(EVENT_SCHEMA.field(n) for n in self._columns)])

    def needs(self, columns: Collection[str]) -> list[str]:
        """Return the record columns that must be read to make the columns in `columns`."""
        return records_needed(columns, ("value", "headers"))

    def made(self, batch: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Return the columns named in `columns`, made from a batch of records."""
        from penstock.cloudevents.columnar import decode_events

        wanted = [name for name in columns if name in self._columns]
        events = None
        if wanted:
            events = decode_events(batch.select(["value", "headers"]), columns=wanted)
        arrays = [
            self._records.column(batch, name) if events is None or name not in wanted else events.column(name)
            for name in columns
        ]
        return batch_of(arrays, self.schema, columns, batch.num_rows)


def shape_of(
    value_format: str, value_schema: object, sample: Iterable[bytes | None], *, is_text: bool
) -> Shape:
    """Return the `Shape` for a value format; JSON fields without a schema are inferred from `sample`.

    Raises:
        ConfigError: there is no such format, or `value_schema` is no schema.
    """
    if value_format not in FORMATS:
        raise ConfigError(f"value_format is {value_format!r}: it is one of {', '.join(FORMATS)}")
    if value_schema is not None and not isinstance(value_schema, pa.Schema):
        raise ConfigError(f"value_schema is {value_schema!r}: a pyarrow.Schema is needed")
    if value_format in REGISTERED:
        raise ConfigError(f"values of format {value_format!r} need registry=, or schema=")
    if value_schema is not None and value_format != "json":
        raise ConfigError(f"value_schema is for value_format 'json', which is {value_format!r}")
    if value_format == "json":
        fields = inferred(sample) if value_schema is None else value_schema
        return JsonFields(fields, is_text=is_text)
    if value_format == "cloudevents":
        return EventFields(is_text=is_text)
    return RecordsShape(is_text=is_text or value_format == "text")


def column_names_of(fields: Iterable[str], others: Collection[str] = ()) -> dict[str, str]:
    """Return a dict from each column name to its field.

    The name is that of the field, or ``value_<name>`` if a column of that name exists.

    SQL ignores case, so names that differ only in case get numbers. `others` are the names of existing
    columns besides those of records.
    """
    taken = {name.lower() for name in (*COLUMN_NAMES, *others)}
    found: dict[str, str] = {}
    for name in fields:
        column = f"value_{name}" if name.lower() in taken or not name else name
        number = 2
        while column.lower() in taken:
            column = f"value_{name}_{number}"
            number += 1
        taken.add(column.lower())
        found[column] = name
    return found


def text_of(column: pa.Array) -> pa.Array:
    """Return bytes as text; U+FFFD replaces invalid UTF-8."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    try:
        return pc.cast(column, pa.string())
    except pa.ArrowInvalid:
        texts = [None if one is None else one.decode(errors="replace") for one in column.to_pylist()]
        return pa.array(texts, pa.string())


def records_needed(columns: Iterable[str], sources: Sequence[str]) -> list[str]:
    """Return the record columns to read for `columns`; at least one, so that rows can be counted.

    `sources` are the record columns from which a shape makes its other columns.
    """
    found = dict.fromkeys(name for name in columns if name in COLUMN_NAMES)
    if any(name not in COLUMN_NAMES for name in columns):
        found |= dict.fromkeys(sources)
    return list(found) or ["partition"]


def batch_of(arrays: list[pa.Array], schema: pa.Schema, columns: Iterable[str], rows: int) -> pa.RecordBatch:
    """Return a batch with the columns `columns` from `arrays`; if there are none, `rows` empty rows."""
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in columns]))
    # A batch without columns has no rows, unless it is cut from one that has.
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], ["rows"]).select([])


def looks_like_json(sample: Iterable[bytes | None]) -> bool:
    """Return True if at least 90 % of the non-null values in a sample are JSON objects."""
    values = [value for value in sample if value is not None]
    return bool(values) and sum(map(is_object, values)) * 10 >= len(values) * 9
