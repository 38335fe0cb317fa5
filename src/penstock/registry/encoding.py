"""Encodes columns of values to columns of bytes: each value has the id of its schema in front."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.errors import ConfigError, DecodeError, EncodeError
from penstock.registry.client import RegistryClient
from penstock.registry.protobuf.writing import message_row, protobuf_schema
from penstock.registry.schemas import Schema
from penstock.registry.serializers import (
    AvroSerializer,
    JSONSerializer,
    ProtobufRowSerializer,
    SerializationContext,
)

_AVRO_PLAIN: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_boolean, "boolean"),
    (lambda kind: pa.types.is_integer(kind) and kind.bit_width < 32, "int"),
    (pa.types.is_int32, "int"),
    (lambda kind: pa.types.is_integer(kind) and not pa.types.is_uint64(kind), "long"),
    (lambda kind: pa.types.is_float32(kind) or pa.types.is_float16(kind), "float"),
    (pa.types.is_float64, "double"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "string"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), "bytes"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
    (pa.types.is_null, "null"),
)
_UNITS = {"ms": "millis", "us": "micros", "ns": "nanos"}


def to_schema(
    column: pa.Array | pa.ChunkedArray,
    format: str,
    registry: str | Mapping[str, object] | RegistryClient,
    *,
    topic: str,
    schema: str | Schema | None = None,
    is_key: bool = False,
    conf: Mapping[str, Any] | None = None,
    message: str | None = None,
) -> pa.Array:
    """Return the rows of a column as bytes, each with its schema's id in front; nulls stay nulls.

    Args:
        column: an array of structs, or of another type that the schema describes.
        format: ``"avro"``, ``"json"`` or ``"protobuf"``; Protobuf needs structs.
        registry: the URL of a registry, its settings, or a client. The schema is registered there.
        topic: the topic, from which the subject is derived.
        schema: the schema to write; by default it is derived from the column's type.
        is_key: True if the values are record keys.
        conf: settings of serializers.
        message: the full name of a Protobuf message of `schema`; by default the file's first.

    Raises:
        ConfigError: the format is unknown, or a type of the column has no counterpart in the format.
        EncodeError: a row does not fit the schema.
        RegistryError, NetworkError: the registry refuses the schema, or cannot be reached.
    """
    client = registry if isinstance(registry, RegistryClient) else RegistryClient(_settings(registry))
    context = SerializationContext(topic, "key" if is_key else "value")
    write: AvroSerializer | JSONSerializer | ProtobufRowSerializer
    if format == "avro":
        text = schema or json.dumps(avro_schema(column.type, topic.replace("-", "_").replace(".", "_")))
        write = AvroSerializer(client, text, lambda row, _: row, conf)
        written = _avro_in_bulk(column, client, write, context)
        if written is not None:
            return written
    elif format == "json":
        write = JSONSerializer(
            schema or json.dumps(json_schema(column.type)), client, lambda row, _: row, conf
        )
    elif format == "protobuf":
        own = schema or protobuf_schema(column.type, topic.replace("-", "_").replace(".", "_"))
        write = ProtobufRowSerializer(own, client, message, conf)
        messages = (message_row(row, column.type) for row in column.to_pylist())
        return pa.array([write(row, context) for row in messages], pa.binary())
    else:
        raise ConfigError(f"columns are written as 'avro', 'json' or 'protobuf', not {format!r}")
    maps = _has_map(column.type)
    rows = (_plain(row, column.type) if maps else row for row in column.to_pylist())
    return pa.array([write(row, context) for row in rows], pa.binary())


def _avro_in_bulk(
    column: pa.Array | pa.ChunkedArray,
    client: RegistryClient,
    write: AvroSerializer,
    context: SerializationContext,
) -> pa.Array | None:
    """Return the column's rows as Avro, encoded in one pass, or None if they must be encoded one by one."""
    from penstock.registry.avro.schema import parse_avro
    from penstock.registry.avro.writing import write_columns

    framing = write.framing(context) if column.null_count < len(column) else None
    if framing is None:
        return None
    schema, prefix = framing
    try:
        kind = parse_avro(schema.text, [each.text for each in client.referenced(schema).values()])
    except DecodeError:  # fastavro may take it, or says what is wrong
        return None
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    pieces = []
    for chunk in chunks:
        piece = write_columns(chunk, kind, prefix)
        if piece is None:
            return None
        pieces.append(piece)
    try:
        return pa.concat_arrays(pieces)
    except pa.ArrowInvalid:
        raise EncodeError("the values have more than 2 GiB: write fewer rows at a time") from None


def _settings(registry: str | Mapping[str, object]) -> str | Mapping[str, object]:
    if isinstance(registry, (str, Mapping)):
        return registry
    raise ConfigError(f"registry is {registry!r}: the URL of a schema registry is needed, or a client")


def avro_schema(kind: pa.DataType, name: str = "value") -> Any:
    """Return an Avro schema for an Arrow type.

    Fields, items and map values are nullable; the outermost type is not.

    Raises:
        ConfigError: Avro has no counterpart of a type.
    """
    for is_one, avro in _AVRO_PLAIN:
        if is_one(kind):
            return avro
    if pa.types.is_struct(kind):
        fields = [
            {
                "name": field.name,
                "type": _optional(avro_schema(field.type, f"{name}_{field.name}")),
                "default": None,
            }
            for field in kind
        ]
        return {"type": "record", "name": name, "fields": fields}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _optional(avro_schema(kind.item_type, f"{name}_value"))}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _optional(avro_schema(kind.value_type, f"{name}_element"))}
    if pa.types.is_timestamp(kind) and kind.unit in _UNITS:
        prefix = "" if kind.tz else "local-"
        return {"type": "long", "logicalType": f"{prefix}timestamp-{_UNITS[kind.unit]}"}
    if pa.types.is_decimal128(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": f"{name}_fixed", "size": kind.byte_width}
    raise ConfigError(f"Avro has no type for {kind}: cast the column, or give schema")


def json_schema(kind: pa.DataType) -> Any:
    """Return a JSON Schema for an Arrow type.

    Raises:
        ConfigError: JSON has no counterpart of a type.
    """
    if pa.types.is_boolean(kind):
        return {"type": ["null", "boolean"]}
    if pa.types.is_integer(kind):
        return {"type": ["null", "integer"]}
    if pa.types.is_floating(kind):
        return {"type": ["null", "number"]}
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return {"type": ["null", "string"]}
    if pa.types.is_struct(kind):
        return {
            "type": ["null", "object"],
            "properties": {field.name: json_schema(field.type) for field in kind},
        }
    if pa.types.is_map(kind):
        return {"type": ["null", "object"], "additionalProperties": json_schema(kind.item_type)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": ["null", "array"], "items": json_schema(kind.value_type)}
    if pa.types.is_null(kind):
        return {"type": "null"}
    raise ConfigError(f"JSON has no type for {kind}: cast the column to text")


def _optional(made: Any) -> Any:
    return made if made == "null" else ["null", made]


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(number).type) for number in range(kind.num_fields))


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Return a row whose maps are dictionaries, converted from Arrow's lists of pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _plain(each, kind.item_type) for key, each in value}
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(each, kind.value_type) for each in value]
    return value
