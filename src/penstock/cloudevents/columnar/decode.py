"""Decodes a batch of records to columns of attributes.

A row that is not a valid event never fails the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from penstock.cloudevents.columnar.declared import ARROW_TYPES
from penstock.cloudevents.columnar.event_columns import EVENT_SCHEMA, EventColumns
from penstock.cloudevents.columnar.located_rows import DecodeOptions, LocatedRows
from penstock.cloudevents.read_record import Profile
from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType
from penstock.errors import ConfigError

EVENT_COLUMNS = tuple(name for name in EVENT_SCHEMA.names if name not in ("outcome", "rule"))
"""The columns that `decode_events` adds by default: `encode_events` can make equal events from these."""


def decode_events(
    batch: Any,
    *,
    columns: Collection[str] = EVENT_COLUMNS,
    profile: Profile = "strict",
    assume_structured: bool = False,
    partitionkey_from_key: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Any:
    """Return the batch with columns of attributes added; its own columns stay unchanged.

    `batch` is a `pyarrow.RecordBatch` (or `Table`) with the columns `value` and `headers`, and `key`
    for `partitionkey_from_key`. `columns` are the columns to add: names of `EVENT_SCHEMA`, or
    ``ce_<name>`` for one extension in a column of its declared type. Other columns are not built, but
    every rule is checked. The other options are those of `from_record`.

    `error` is null for a valid event; otherwise it is the text of `from_record`'s outcome, which begins with
    the rule, and the other added columns are null. `time_text` is set if formatting `time` would not give the
    original text; `content_type` is `datacontenttype`, or JSON if the format implied it.

    Raises:
        ConfigError: a column is missing, of the wrong type, unknown, or already present.
    """
    options = DecodeOptions(profile, assume_structured, partitionkey_from_key, extension_types)
    _check_columns(batch.schema.names, columns)
    if isinstance(batch, pa.Table):
        parts = [_decode(part, columns, options) for part in batch.to_batches()]
        return pa.Table.from_batches(parts, schema_for(columns, batch.schema, extension_types))
    return _decode(batch, columns, options)


def schema_for(
    columns: Collection[str] = EVENT_COLUMNS,
    schema: Any = None,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Any:
    """Return the schema that `decode_events` produces for batches of `schema`."""
    fields = [] if schema is None else list(schema)
    for name in columns:
        if name.startswith("ce_"):
            fields.append(pa.field(name, ARROW_TYPES[extension_types.get(name[3:], AttributeType.STRING)]))
        else:
            fields.append(EVENT_SCHEMA.field(name))
    return pa.schema(fields)


def _check_columns(present: Collection[str], wanted: Collection[str]) -> None:
    for name in ("value", "headers"):
        if name not in present:
            raise ConfigError(f"decode_events needs a column {name!r}; there are {', '.join(present)}")
    for name in wanted:
        if name not in EVENT_SCHEMA.names and not name.startswith("ce_"):
            raise ConfigError(
                f"no event column is called {name!r}; there are {', '.join(EVENT_SCHEMA.names)}"
            )
        if name in present:
            raise ConfigError(f"the batch has a column {name!r} already")


def _decode(batch: Any, columns: Collection[str], options: DecodeOptions) -> Any:
    arrays = EventColumns(LocatedRows(batch, options)).columns(columns)
    schema = schema_for(columns, batch.schema, options.extension_types)
    return pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=schema)
