"""Columns from Avro, Protobuf and JSON values with a schema in a registry."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.errors import ConfigError
from penstock.model import COLUMN_NAMES
from penstock.queries.columns.values import RecordsShape, batch_of, column_names_of, records_needed
from penstock.records.kernels.compiled import Ints
from penstock.registry.client import client_of
from penstock.registry.decoding import FORMATS, Decoder, newest_version, reader_version, taken_with_nulls
from penstock.registry.subjects import topic_subject

if TYPE_CHECKING:
    from penstock.registry.client import Finder
    from penstock.registry.schemas import Schema

ERROR_COLUMN = "value_error"
"""The column with the reason why a value does not decode; null if it decodes."""

WHOLE_COLUMN = "value_decoded"
"""The name of the column for decoded values whose schema is not a record, such as texts, numbers or lists."""

_FORMAT_OF_TYPE = {kind: name for name, kind in FORMATS.items()}


class RegisteredFields:
    """The `Shape` of topics whose values have a schema: the schema's fields are columns.

    A value that does not decode is null in these columns, and the column ``value_error`` has the reason.
    """

    def __init__(
        self,
        value_format: str,
        registry: str | Mapping[str, object] | Finder | None,
        schema: str | Schema,
        *,
        is_text: bool,
    ) -> None:
        """Prepare to decode values by the reader's schema; without a registry, it is the writer's too.

        Raises:
            ConfigError: the arguments do not fit each other.
            RegistryError, NetworkError: the registry does not return the schemas to which `schema` refers.
            DecodeError: the schema is not valid in that format.
        """
        self._arguments = (value_format, registry, schema)
        self._is_text = is_text
        self._decoder = Decoder(value_format, registry, schema=schema)
        self._has_registry = registry is not None
        self._records = RecordsShape(is_text=is_text)
        kind = self._decoder.type
        assert kind is not None  # the reader's schema is given
        self._is_record = pa.types.is_struct(kind)
        fields = list(kind) if self._is_record else [pa.field(WHOLE_COLUMN, kind)]
        self._names = column_names_of([field.name for field in fields], {ERROR_COLUMN})
        """A dict from column names to the fields of the schema that these columns show."""
        by_name = {field.name: field for field in fields}
        own = [by_name[field].with_name(column) for column, field in self._names.items()]
        self.schema = pa.schema(
            [*self._records.schema, *(pa.field(f.name, f.type) for f in own), (ERROR_COLUMN, pa.string())]
        )

    def needs(self, columns: Collection[str]) -> list[str]:
        """Return the record columns that must be read to make the columns in `columns`."""
        return records_needed(columns, ("value", "headers") if self._has_registry else ("value",))

    def made(self, batch: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Return the columns named in `columns`, made from a batch of records.

        Raises:
            RegistryError, NetworkError: the registry refuses a request, or does not answer.
        """
        decoded: dict[str, pa.Array] = {}
        if any(name not in COLUMN_NAMES for name in columns):
            decoded = self._decoded(batch, columns)
        arrays = [decoded[name] if name in decoded else self._records.column(batch, name) for name in columns]
        return batch_of(arrays, self.schema, columns, batch.num_rows)

    def _decoded(self, batch: pa.RecordBatch, columns: Collection[str]) -> dict[str, pa.Array]:
        headers = batch.column("headers") if self._has_registry else None
        found = self._decoder.decode(batch.column("value"), headers)
        places = None if found.is_whole else _places(found.rows, batch.num_rows)
        made: dict[str, pa.Array] = {}
        for name in columns:
            if name in self._names:
                array = found.values
                if self._is_record:
                    # Unlike `field`, `flatten` minds rows that are null as a whole.
                    array = array.flatten()[array.type.get_field_index(self._names[name])]
                made[name] = array if places is None else taken_with_nulls(array, places)
        if ERROR_COLUMN in columns:
            reasons = found.dead["reason"].combine_chunks()
            made[ERROR_COLUMN] = taken_with_nulls(
                reasons, _places(found.dead["row"].to_numpy(), batch.num_rows)
            )
        return made

    def __reduce__(self) -> Any:
        value_format, registry, schema = self._arguments
        return _again, (value_format, registry, schema, self._is_text)


def _again(value_format: str, registry: Any, schema: Any, is_text: bool) -> RegisteredFields:
    return RegisteredFields(value_format, registry, schema, is_text=is_text)


def _places(rows: Ints, count: int) -> Ints:
    """Invert the row numbers `rows`: return for each number below `count` its index in `rows`, or -1."""
    places = np.full(count, -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    return places


def registered_format(topic: str, registry: str | Mapping[str, object] | Finder) -> str | None:
    """Return the format of a topic's newest schema in the registry, or None if it has no schema.

    Raises:
        RegistryError, NetworkError: the registry refuses a request, or does not answer.
    """
    found = newest_version(client_of(registry), topic_subject(topic))
    return None if found is None else _FORMAT_OF_TYPE.get(found.schema.type)


def registered_fields(
    topic: str | None,
    value_format: str,
    registry: str | Mapping[str, object] | Finder | None,
    schema: str | Schema | None,
    *,
    is_text: bool,
) -> RegisteredFields:
    """Return the `Shape` of a topic with encoded values, for `schema` or its subject's newest schema.

    Raises:
        ConfigError: there is neither a schema nor a registry that has one.
        RegistryError, NetworkError: the registry refuses a request, or does not answer.
        DecodeError: the schema is not valid in that format.
    """
    if schema is None:
        if registry is None or topic is None:
            raise ConfigError(f"values of format {value_format!r} need registry=, or schema=")
        schema = reader_version(client_of(registry), topic_subject(topic)).schema
    return RegisteredFields(value_format, registry, schema, is_text=is_text)
