"""Writes columns as Protobuf messages: derives a schema from an Arrow type, and converts rows.

Protobuf has no null: a null field is not set, and a null list or map is empty.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from penstock.errors import ConfigError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = "google.protobuf.Timestamp"
_SCALARS: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "bool"),
    (pa.types.is_uint64, "uint64"),
    (pa.types.is_int64, "int64"),
    (pa.types.is_unsigned_integer, "uint32"),
    (pa.types.is_integer, "int32"),
    (pa.types.is_float64, "double"),
    (pa.types.is_floating, "float"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "string"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), "bytes"),
)


def protobuf_schema(kind: pa.DataType, name: str = "value") -> str:
    """Return a Protobuf schema, as text, for an Arrow struct type, which becomes the message `name`.

    Raises:
        ConfigError: Protobuf has no counterpart of a type.
    """
    if not pa.types.is_struct(kind):
        raise ConfigError(f"Protobuf has messages alone, not {kind}: make a struct of the column")
    body = "\n".join(_message(kind, name, ""))
    imports = 'import "google/protobuf/timestamp.proto";\n' if _TIMESTAMP in body else ""
    return f'syntax = "proto3";\n{imports}{body}\n'


def _message(kind: pa.DataType, name: str, indent: str) -> list[str]:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name of Protobuf's: rename it, or give schema")
    lines = [f"{indent}message {name} {{"]
    inner = f"{indent}  "
    for number, field in enumerate(kind, 1):
        if not _NAME.fullmatch(field.name):
            raise ConfigError(
                f"the field {field.name!r} has no name of Protobuf's: rename it, or give schema"
            )
        nested = f"{name}_{field.name}"
        if pa.types.is_map(field.type):
            key = _scalar(field.type.key_type)
            if key in (None, "double", "float", "bytes"):
                raise ConfigError(f"Protobuf has no maps from {field.type.key_type}: cast, or give schema")
            declared, part = f"map<{key}, {_type(field.type.item_type, nested)}>", field.type.item_type
        elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            part = field.type.value_type
            declared = f"repeated {_type(part, nested)}"
        else:
            part = field.type
            declared = f"optional {_type(part, nested)}"
        if pa.types.is_struct(part):
            lines += _message(part, nested, inner)
        lines.append(f"{inner}{declared} {field.name} = {number};")
    return [*lines, f"{indent}}}"]


def _scalar(kind: pa.DataType) -> str | None:
    return next((name for is_one, name in _SCALARS if is_one(kind)), None)


def _type(kind: pa.DataType, nested: str) -> str:
    if pa.types.is_struct(kind):
        return nested
    if pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit != "ns":
        return _TIMESTAMP
    found = _scalar(kind)
    if found is None:
        raise ConfigError(f"Protobuf has no type for {kind}: cast the column, or give schema")
    return found


def message_row(value: Any, kind: pa.DataType) -> Any:
    """Convert a row of Arrow's `to_pylist` to arguments of a message's constructor, without nulls."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        found = {}
        for field in kind:
            each = value[field.name]
            if each is not None:
                found[field.name] = message_row(each, field.type)
        return found
    if pa.types.is_map(kind):
        return {key: message_row(each, kind.item_type) for key, each in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [message_row(each, kind.value_type) for each in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        since = value - _EPOCH
        return {"seconds": since // timedelta(seconds=1), "nanos": since.microseconds * 1000}
    return value
