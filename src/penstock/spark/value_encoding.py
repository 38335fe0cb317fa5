"""Encodes keys and values of rows as bytes with a schema that is in the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.registry.encoding import avro_schema, json_schema, to_schema
from penstock.registry.protobuf.writing import protobuf_schema
from penstock.spark.registries import client_for

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.value_options import WrittenField


def encoded(field: WrittenField, column: pa.Array, topic: str) -> pa.Array:
    """Return the values of a column encoded for a topic; register their schema. Nulls stay nulls.

    Raises:
        EncodeError: a row does not fit the schema.
        RegistryError, NetworkError: the registry refuses the schema, or does not answer.
    """
    return to_schema(
        column,
        field.format,
        client_for(field.registry),
        topic=topic,
        schema=field.schema,
        is_key=field.field == "key",
        conf=dict(field.settings),
        message=field.message,
    )


def check_type(field: WrittenField, kind: pa.DataType) -> None:
    """Check that the field's format can express the Arrow type `kind`, unless a schema is given.

    Raises:
        ConfigError: the format has no such type.
    """
    if field.schema is None:
        {"avro": avro_schema, "json": json_schema, "protobuf": protobuf_schema}[field.format](kind)
