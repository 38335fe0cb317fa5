"""Dataclasses and pydantic models as rows: their schemas, from type hints, and conversion to dictionaries.

Such a class can be given instead of a schema. Fields keep their names, or the aliases of a pydantic model;
the default of a field becomes the schema's default.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import datetime
import decimal
import enum
import json
import re
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import ConfigError, DecodeError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MISSING = object()
NESTING_MAX = 50

_AVRO: dict[Any, Any] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null",
    datetime.datetime: {"type": "long", "logicalType": "timestamp-micros"},
    datetime.date: {"type": "int", "logicalType": "date"},
    datetime.time: {"type": "long", "logicalType": "time-micros"},
    uuid.UUID: {"type": "string", "logicalType": "uuid"},
}
_JSON: dict[Any, Any] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    type(None): {"type": "null"},
    decimal.Decimal: {"type": "string"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    Any: {},
}
_LISTS = (list, set, frozenset, tuple)


@dataclasses.dataclass(frozen=True)
class _Field:
    """A field of a class: its name in rows, its name as an attribute, its type and its default."""

    name: str
    attribute: str
    hint: Any
    default: Any = _MISSING


def is_model(kind: object) -> bool:
    """Return True if `kind` is a dataclass or a pydantic model class."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields"))


def as_dict(row: Any) -> Any:
    """Convert a dataclass or a pydantic model, including nested ones, to dictionaries.

    Members of an enum become symbols, sets and tuples become lists. Rows of other types stay unchanged.
    """
    return row if type(row) is dict else _plain(row)


def _plain(row: Any) -> Any:
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {each.name: _plain(getattr(row, each.name)) for each in dataclasses.fields(row)}
    dump = getattr(row, "model_dump", None)
    if callable(dump):
        return _plain(dump(by_alias=True))
    if isinstance(row, dict):
        return {name: _plain(each) for name, each in row.items()}
    if isinstance(row, enum.Enum):
        return _symbol(row)
    if isinstance(row, (list, set, frozenset)) or type(row) is tuple:
        return [_plain(each) for each in row]
    return row


def as_json(row: Any) -> Any:
    """Convert a row for JSON: times, UUIDs and decimals become text, bytes become base64.

    A row that is a dictionary stays unchanged.
    """
    return row if type(row) is dict else _json_value(row)


def _json_value(row: Any) -> Any:
    if isinstance(row, (str, bool, int, float)) and not isinstance(row, enum.Enum):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {each.name: _json_value(getattr(row, each.name)) for each in dataclasses.fields(row)}
    dump = getattr(row, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True)
    if isinstance(row, dict):
        return {name: _json_value(each) for name, each in row.items()}
    if isinstance(row, (list, tuple, set, frozenset)):
        return [_json_value(each) for each in row]
    if isinstance(row, enum.Enum):
        return row.value
    if isinstance(row, (datetime.datetime, datetime.date, datetime.time)):
        return row.isoformat()
    if isinstance(row, (decimal.Decimal, uuid.UUID)):
        return str(row)
    return base64.b64encode(row).decode() if isinstance(row, bytes) else row


def _symbols(kind: type[enum.Enum]) -> dict[str, enum.Enum]:
    """Return an enum's members by Avro symbol: their values if all are Avro names, otherwise their names."""
    values = [each.value for each in kind]
    if all(isinstance(each, str) and _NAME.fullmatch(each) for each in values):
        return {each.value: each for each in kind}
    return {each.name: each for each in kind}


def _symbol(member: enum.Enum) -> str:
    return next(name for name, each in _symbols(type(member)).items() if each is member)


# --- schemas ---


def avro_schema_of(kind: type) -> str:
    """Return the text of the Avro schema of a dataclass or a pydantic model.

    Raises:
        ConfigError: the type of a field has no counterpart in Avro.
    """
    return json.dumps(_avro_record(kind, set(), kind.__name__, 0))


def _avro_record(kind: type, known: set[str], place: str, depth: int) -> Any:
    if depth > NESTING_MAX:
        raise ConfigError(f"{place}: classes are nested deeper than {NESTING_MAX}")
    name = kind.__name__
    if name in known:
        return name
    known.add(name)
    fields = []
    for each in _fields(kind):
        inner = f"{place}.{each.name}"
        if not _NAME.fullmatch(each.name):
            raise ConfigError(f"{inner}: {each.name!r} is no name of an Avro field")
        made = {"name": each.name, "type": _avro(each.hint, known, inner, depth + 1)}
        default = _default(each.default)
        if default is not _MISSING:
            made["type"] = _default_first(made["type"], default)
            made["default"] = default
        fields.append(made)
    return {"type": "record", "name": name, "fields": fields}


def _avro(hint: Any, known: set[str], place: str, depth: int) -> Any:
    hint, said = _bare(hint)
    if hint is decimal.Decimal:
        digits = _digits(said)
        if digits is None:
            raise ConfigError(
                f"{place}: a decimal needs its digits: Annotated[Decimal, (precision, scale)], or "
                "Field(max_digits=..., decimal_places=...)"
            )
        return {"type": "bytes", "logicalType": "decimal", "precision": digits[0], "scale": digits[1]}
    if hint in _AVRO:
        return _AVRO[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return [_avro(each, known, place, depth + 1) for each in arguments]
    if origin is typing.Literal and all(isinstance(each, str) for each in arguments):
        return "string"
    if _is_list(origin, arguments):
        return {"type": "array", "items": _avro(arguments[0], known, place, depth + 1)}
    if _is_map(origin, arguments):
        return {"type": "map", "values": _avro(arguments[1], known, place, depth + 1)}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        if hint.__name__ in known:
            return hint.__name__
        known.add(hint.__name__)
        return {"type": "enum", "name": hint.__name__, "symbols": list(_symbols(hint))}
    if is_model(hint):
        return _avro_record(hint, known, place, depth)
    raise ConfigError(f"{place}: Avro has no type for {_shown(hint)}")


def json_schema_of(kind: type) -> str:
    """Return the text of the JSON Schema of a dataclass, or a pydantic model's own JSON Schema.

    Raises:
        ConfigError: the type of a field has no counterpart in JSON Schema.
    """
    make = getattr(kind, "model_json_schema", None)
    if make is not None:
        return json.dumps(make(mode="serialization"))
    parts: dict[str, Any] = {}
    whole = _json_object(kind, parts, kind.__name__, 0)
    return json.dumps({"title": kind.__name__, **whole, **({"$defs": parts} if parts else {})})


def _json_object(kind: type, parts: dict[str, Any], place: str, depth: int) -> dict[str, Any]:
    if depth > NESTING_MAX:
        raise ConfigError(f"{place}: classes are nested deeper than {NESTING_MAX}")
    fields = _fields(kind)
    properties = {each.name: _json(each.hint, parts, f"{place}.{each.name}", depth + 1) for each in fields}
    return {
        "type": "object",
        "properties": properties,
        "required": [each.name for each in fields if each.default is _MISSING],
    }


def _json(hint: Any, parts: dict[str, Any], place: str, depth: int) -> Any:
    hint, _ = _bare(hint)
    if hint in _JSON:
        return _JSON[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_json(each, parts, place, depth + 1) for each in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if _is_list(origin, arguments):
        return {"type": "array", "items": _json(arguments[0], parts, place, depth + 1)}
    if _is_map(origin, arguments):
        return {"type": "object", "additionalProperties": _json(arguments[1], parts, place, depth + 1)}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [each.value for each in hint]}
    if hasattr(hint, "model_json_schema"):
        return json.loads(json_schema_of(hint))
    if is_model(hint):
        name = hint.__name__
        if name not in parts:
            parts[name] = {}
            parts[name] = _json_object(hint, parts, place, depth)
        return {"$ref": f"#/$defs/{name}"}
    raise ConfigError(f"{place}: JSON has no type for {_shown(hint)}")


def _fields(kind: type) -> list[_Field]:
    """Return the fields of a class. Raises ConfigError if a type hint cannot be resolved."""
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise ConfigError(f"the type hints of {kind.__name__} do not resolve: {error}") from None
    found = []
    if dataclasses.is_dataclass(kind):
        for each in dataclasses.fields(kind):
            default: Any = each.default
            if default is dataclasses.MISSING:
                make: Any = each.default_factory
                default = _MISSING if make is dataclasses.MISSING else make()
            found.append(_Field(each.name, each.name, hints[each.name], default))
        return found
    fields: Mapping[str, Any] = kind.model_fields  # type: ignore[attr-defined]
    for name, info in fields.items():
        default = _MISSING if info.is_required() else info.get_default(call_default_factory=False)
        if info.default_factory is not None:
            default = _MISSING
        found.append(
            _Field(
                info.serialization_alias or info.alias or name,
                name,
                typing.Annotated[hints[name], *info.metadata] if info.metadata else hints[name],
                default,
            )
        )
    return found


def _bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return (type inside `Annotated`, annotations); for another type hint, the hint and no annotations."""
    said: tuple[Any, ...] = ()
    while typing.get_origin(hint) is typing.Annotated:
        said += hint.__metadata__
        hint = hint.__origin__
    return hint, said


def _digits(said: tuple[Any, ...]) -> tuple[int, int] | None:
    """Return (precision, scale) of a decimal from its annotations: a pair, or pydantic's `Field`."""
    found: dict[str, int] = {}
    for each in said:
        if isinstance(each, tuple) and len(each) == 2:
            return int(each[0]), int(each[1])
        for part in (each, *getattr(each, "metadata", ())):
            for name in ("max_digits", "decimal_places"):
                number = getattr(part, name, None)
                if isinstance(number, int):
                    found[name] = number
    return (found["max_digits"], found["decimal_places"]) if len(found) == 2 else None


def _default(value: Any) -> Any:
    """Return the default value of a field as JSON, or `_MISSING` if a schema cannot express that value."""
    if value is _MISSING or value is None or isinstance(value, (bool, int, float, str)):
        return _symbol(value) if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return _symbol(value)
    if isinstance(value, (list, dict, set, tuple)) and not value:
        return {} if isinstance(value, dict) else []
    return _MISSING


def _default_first(made: Any, default: Any) -> Any:
    """Move the branch of the default value to the front of a union, as readers before Avro 1.12 require."""
    if not isinstance(made, list):
        return made
    kinds = {type(None): "null", bool: "boolean", int: "long", float: "double", str: "string"}
    first = kinds.get(type(default))
    return sorted(made, key=lambda each: each != first)


def _is_list(origin: Any, arguments: tuple[Any, ...]) -> bool:
    is_pair = origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis)
    name = getattr(origin, "__name__", "")
    return bool(arguments) and not is_pair and (origin in _LISTS or name in ("Sequence", "Iterable"))


def _is_map(origin: Any, arguments: tuple[Any, ...]) -> bool:
    is_map = origin is dict or getattr(origin, "__name__", "") in ("Mapping", "MutableMapping")
    return is_map and len(arguments) == 2 and arguments[0] is str


def _shown(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)


# --- back ---


def row_of(kind: Any, value: Any) -> Any:
    """Convert a dictionary, and all values in it, to an instance of a dataclass or a pydantic model.

    Raises:
        DecodeError: a field is missing, or has a value of the wrong type.
    """
    validate = getattr(kind, "model_validate", None)
    try:
        return _instance(kind, value, kind.__name__) if validate is None else validate(value)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise DecodeError(f"the value is no {kind.__name__}: {error}") from None


def _instance(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise DecodeError(f"{place} is {value!s:.60}: a record is needed")
    given = {
        each.attribute: _value(each.hint, value[each.name], f"{place}.{each.name}")
        for each in _fields(kind)
        if each.name in value
    }
    return kind(**given)


_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    datetime.datetime: datetime.datetime.fromisoformat,
    datetime.date: datetime.date.fromisoformat,
    datetime.time: datetime.time.fromisoformat,
    uuid.UUID: uuid.UUID,
    decimal.Decimal: decimal.Decimal,
}


def _value(hint: Any, value: Any, place: str) -> Any:
    """Convert a value of JSON or Avro to the type of a type hint."""
    hint, _ = _bare(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(arguments, value, place)
    if isinstance(value, str) and hint in _FROM_TEXT:
        return _FROM_TEXT[hint](value)
    if hint is bytes and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise DecodeError(f"{place} is no base64 text") from None
    if isinstance(value, list) and _is_list(origin, arguments):
        made = [_value(arguments[0], each, f"{place}[{at}]") for at, each in enumerate(value)]
        return origin(made) if origin in _LISTS else made
    if isinstance(value, dict) and _is_map(origin, arguments):
        return {name: _value(arguments[1], each, f"{place}.{name}") for name, each in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        found = _symbols(hint).get(value)
        return hint(value) if found is None else found
    if hasattr(hint, "model_validate"):
        return hint.model_validate(value)
    if is_model(hint):
        return _instance(hint, value, place)
    return value


def _one_of(hints: tuple[Any, ...], value: Any, place: str) -> Any:
    """Convert a value to a type of a union: the class that has its fields, or the first type that fits."""
    if value is None:
        return None
    others = [each for each in hints if each is not type(None)]
    if isinstance(value, Mapping):
        for each in others:
            bare, _ = _bare(each)
            if is_model(bare) and {field.name for field in _fields(bare)} >= value.keys():
                return _value(each, value, place)
    for each in others:
        if isinstance(_bare(each)[0], type) and isinstance(value, _bare(each)[0]):
            return value
    return _value(others[0], value, place)
