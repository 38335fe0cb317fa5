"""Avro schemas: parses their JSON to objects in which every name is resolved.

https://avro.apache.org/docs/1.12.0/specification/. A schema that refers to other schemas of a registry is
parsed together with these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import DecodeError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
SCHEMA_BYTES_MAX = 4 << 20
NESTING_MAX = 100
TYPES_MAX = 20_000
"""The maximum number of types in a schema. The type of each field, item and branch counts as one."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SchemaError(DecodeError):
    """Raised if a text is not a valid schema; the message has the path in the schema and the reason."""


class _NoDefault:
    def __repr__(self) -> str:
        return "no default"


NO_DEFAULT = _NoDefault()


@dataclass(eq=False)
class Type:
    """An Avro type: `kind` is its name, such as ``record``; `logical` is its logical type, or None."""

    kind: str
    logical: str | None = None
    precision: int = 0
    scale: int = 0


@dataclass(eq=False)
class NamedType(Type):
    """An Avro type that has a name: a record, an enum or a fixed."""

    name: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]


@dataclass(eq=False)
class AvroField:
    """A field of an Avro record."""

    name: str
    type: Type
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()


@dataclass(eq=False)
class AvroRecord(NamedType):
    """A record, or an Avro error, which is encoded like a record."""

    fields: list[AvroField] = field(default_factory=list)


@dataclass(eq=False)
class Enum(NamedType):
    """An enum; a reader uses `default` for a symbol that only the writer's enum has."""

    symbols: tuple[str, ...] = ()
    default: str | None = None


@dataclass(eq=False)
class AvroFixed(NamedType):
    """The Avro type ``fixed``: values of a fixed number of bytes."""

    size: int = 0


@dataclass(eq=False)
class AvroArray(Type):
    """The Avro type ``array``: items of one type."""

    items: Type = field(default_factory=lambda: Type("null"))


@dataclass(eq=False)
class Map(Type):
    """The Avro type ``map``: from strings to values of one type."""

    values: Type = field(default_factory=lambda: Type("null"))


@dataclass(eq=False)
class Union(Type):
    """An Avro union: its values have one of several types."""

    branches: tuple[Type, ...] = ()


def parse_avro(text: str, referenced: Iterable[str] = ()) -> Type:
    """Return the type that a schema defines; it can use the types that the schemas `referenced` define.

    Raises:
        SchemaError: the text is not an Avro schema, or has too many types.
    """
    parser = _Parser()
    for each in referenced:
        parser.parse(loaded(each), "", 0, "a referenced schema")
    return parser.parse(loaded(text), "", 0, "the schema")


def loaded(text: str) -> Any:
    """Return the parsed JSON of a schema. The bare name of a primitive type is accepted, too.

    Raises:
        SchemaError: the text is not JSON, or is too large.
    """
    if len(text) > SCHEMA_BYTES_MAX:
        raise SchemaError(f"the schema has {len(text):,} characters: {SCHEMA_BYTES_MAX:,} are allowed")
    if text.strip() in PRIMITIVES:
        return text.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the schema is no JSON: {error}") from None


class _Parser:
    """Parses several Avro schemas; each can use the names that earlier ones define."""

    def __init__(self) -> None:
        self._names: dict[str, NamedType] = {}
        self._count = 0

    def parse(self, found: Any, space: str, depth: int, place: str) -> Type:
        self._count += 1
        if depth > NESTING_MAX or self._count > TYPES_MAX:
            raise SchemaError(
                f"{place}: types are nested deeper than {NESTING_MAX}, or more than {TYPES_MAX}"
            )
        if isinstance(found, str):
            return Type(found) if found in PRIMITIVES else self._known(found, space, place)
        if isinstance(found, list):
            return self._union(found, space, depth, place)
        if not isinstance(found, dict):
            raise SchemaError(f"{place}: {found!r:.60} is no type")
        kind = found.get("type")
        if isinstance(kind, (dict, list)):
            return self.parse(kind, space, depth + 1, place)
        if kind in ("record", "error"):
            return self._record(found, space, depth, place)
        if kind == "enum":
            return self._enum(found, space, place)
        if kind == "fixed":
            return self._fixed(found, space, place)
        if kind == "array":
            return AvroArray(
                "array", items=self.parse(found.get("items"), space, depth + 1, f"{place}, items")
            )
        if kind == "map":
            return Map("map", values=self.parse(found.get("values"), space, depth + 1, f"{place}, values"))
        if kind in PRIMITIVES:
            return _logical(Type(str(kind)), found, 0)
        if isinstance(kind, str):
            return self._known(kind, space, place)
        raise SchemaError(f"{place}: a type is missing")

    def _known(self, name: str, space: str, place: str) -> NamedType:
        for full in (f"{space}.{name}", name) if space and "." not in name else (name,):
            if full in self._names:
                return self._names[full]
        raise SchemaError(f"{place}: there is no type {name!r}")

    def _union(self, found: list[Any], space: str, depth: int, place: str) -> Union:
        branches = tuple(
            self.parse(each, space, depth + 1, f"{place}, branch {number}")
            for number, each in enumerate(found)
        )
        seen: set[str] = set()
        for branch in branches:
            if isinstance(branch, Union):
                raise SchemaError(f"{place}: a union stands in a union")
            name = branch_name(branch)
            if name in seen:
                raise SchemaError(f"{place}: the union has {name} twice")
            seen.add(name)
        if not branches:
            raise SchemaError(f"{place}: the union has no branch")
        return Union("union", branches=branches)

    def _name(self, found: Mapping[str, Any], space: str, place: str) -> tuple[str, str, tuple[str, ...]]:
        """Return a type's full name, the namespace of the names inside the type, and its full aliases."""
        name = found.get("name")
        if not isinstance(name, str) or not all(_NAME.fullmatch(part) for part in name.split(".")):
            raise SchemaError(f"{place}: {name!r} is no name of a type")
        given = found.get("namespace")
        own = name.rpartition(".")[0] if "." in name else given if isinstance(given, str) else space
        full = name if "." in name or not own else f"{own}.{name}"
        if full in self._names:
            raise SchemaError(f"{place}: {full} is defined twice")
        aliases = tuple(
            alias if "." in alias or not own else f"{own}.{alias}" for alias in _texts(found.get("aliases"))
        )
        return full, own, aliases

    def _record(self, found: Mapping[str, Any], space: str, depth: int, place: str) -> AvroRecord:
        name, own, aliases = self._name(found, space, place)
        record = AvroRecord("record", name=name, aliases=aliases)
        self._names[name] = record
        fields = found.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"{place}: record {name} has no fields")
        seen: set[str] = set()
        for each in fields:
            label = each.get("name") if isinstance(each, dict) else None
            if not isinstance(label, str) or not _NAME.fullmatch(label):
                raise SchemaError(f"record {name}: {label!r} is no name of a field")
            if label in seen:
                raise SchemaError(f"record {name}: field {label} is there twice")
            if "type" not in each:
                raise SchemaError(f"record {name}: field {label} has no type")
            seen.add(label)
            kind = each["type"]
            # Older writers put a logical type beside the type of the field, where it has no meaning.
            made = self.parse(kind, own, depth + 1, f"{name}.{label}")
            default = each.get("default", NO_DEFAULT)
            if default is not NO_DEFAULT and not fits_default(made, default):
                raise SchemaError(f"{name}.{label}: the default {default!r:.60} is none of its type")
            record.fields.append(AvroField(label, made, default, tuple(_texts(each.get("aliases")))))
        return record

    def _enum(self, found: Mapping[str, Any], space: str, place: str) -> Enum:
        name, _, aliases = self._name(found, space, place)
        symbols = tuple(_texts(found.get("symbols")))
        if len(set(symbols)) != len(symbols) or not all(map(_NAME.fullmatch, symbols)):
            raise SchemaError(f"{place}: enum {name} has symbols that are no names, or one twice")
        default = found.get("default")
        if default is not None and default not in symbols:
            raise SchemaError(f"{place}: the default of enum {name} is {default!r}, which is no symbol")
        made = Enum("enum", name=name, aliases=aliases, symbols=symbols, default=default)
        self._names[name] = made
        return made

    def _fixed(self, found: Mapping[str, Any], space: str, place: str) -> AvroFixed:
        name, _, aliases = self._name(found, space, place)
        size = found.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= 1 << 30:
            raise SchemaError(f"{place}: fixed {name} has size {size!r}")
        made = AvroFixed("fixed", name=name, aliases=aliases, size=size)
        _logical(made, found, size)
        self._names[name] = made
        return made


def _texts(found: object) -> list[str]:
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise SchemaError(f"{found!r:.60} is no list of names")
    return found


_LOGICAL = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "timestamp-nanos",
        "local-timestamp-millis",
        "local-timestamp-micros",
        "local-timestamp-nanos",
    ),
    "bytes": ("decimal",),
    "string": ("uuid",),
    "fixed": ("decimal", "uuid", "duration"),
}


def _logical(made: Type, found: Mapping[str, Any], size: int) -> Type:
    """Set a type's logical type if it is valid for the type; ignore an invalid one, as Avro requires."""
    logical = found.get("logicalType")
    if logical not in _LOGICAL.get(made.kind, ()):
        return made
    if logical == "decimal":
        precision, scale = found.get("precision"), found.get("scale", 0)
        digits = (8 * size - 1) * 30103 // 100_000 if made.kind == "fixed" else 38
        if not isinstance(precision, int) or not isinstance(scale, int):
            return made
        if not (0 < precision <= min(digits, 38) and 0 <= scale <= precision):
            return made
        made.precision, made.scale = precision, scale
    if (logical == "uuid" and made.kind == "fixed" and size != 16) or (logical == "duration" and size != 12):
        return made
    made.logical = logical
    return made


def branch_name(branch: Type) -> str:
    """Return the name of a union's branch: the full name of a named type, or else its `kind`, as ``int``."""
    return branch.name if isinstance(branch, NamedType) else branch.kind


_FITTING: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "bytes": (str,),
    "string": (str,),
    "fixed": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
}


def fits_default(made: Type, default: Any) -> bool:
    """Return True if a JSON value is a valid default of a type; for a union, of any branch (Avro 1.12)."""
    if isinstance(made, Union):
        return any(fits_default(branch, default) for branch in made.branches)
    if isinstance(made, Enum):
        return default in made.symbols
    if isinstance(default, bool) and made.kind != "boolean":
        return False
    if not isinstance(default, _FITTING[made.kind]):
        # Numbers that JSON cannot write are spelled as text.
        return made.kind in ("float", "double") and default in ("NaN", "Infinity", "-Infinity")
    found: Any = default
    if made.kind in ("int", "long"):
        bound = 1 << (31 if made.kind == "int" else 63)
        return bool(-bound <= found < bound)
    if made.kind in ("bytes", "fixed"):
        right_size = not isinstance(made, AvroFixed) or len(found) == made.size
        return right_size and all(ord(character) < 256 for character in found)
    if isinstance(made, AvroArray):
        return all(fits_default(made.items, each) for each in found)
    if isinstance(made, Map):
        return all(fits_default(made.values, each) for each in found.values())
    if isinstance(made, AvroRecord):
        return all(
            fits_default(each.type, found[each.name])
            if each.name in found
            else each.default is not NO_DEFAULT
            for each in made.fields
        )
    return True


def as_json(made: Type, known: set[str] | None = None) -> Any:
    """Return a type's schema as JSON; each named type is defined at its first use, and then referred to."""
    known = set() if known is None else known
    if isinstance(made, NamedType):
        if made.name in known:
            return made.name
        known.add(made.name)
        found: dict[str, Any] = {"type": made.kind, "name": made.name}
        if made.aliases:
            found["aliases"] = list(made.aliases)
        if isinstance(made, Enum):
            found["symbols"] = list(made.symbols)
            if made.default is not None:
                found["default"] = made.default
        elif isinstance(made, AvroFixed):
            found["size"] = made.size
            _put_logical(found, made)
        elif isinstance(made, AvroRecord):
            found["fields"] = [_field_json(each, known) for each in made.fields]
        return found
    if isinstance(made, Union):
        return [as_json(branch, known) for branch in made.branches]
    if isinstance(made, AvroArray):
        return {"type": "array", "items": as_json(made.items, known)}
    if isinstance(made, Map):
        return {"type": "map", "values": as_json(made.values, known)}
    if made.logical is None:
        return made.kind
    found = {"type": made.kind}
    _put_logical(found, made)
    return found


def _put_logical(found: dict[str, Any], made: Type) -> None:
    if made.logical is not None:
        found["logicalType"] = made.logical
        if made.logical == "decimal":
            found["precision"], found["scale"] = made.precision, made.scale


def _field_json(each: AvroField, known: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": each.name, "type": as_json(each.type, known)}
    if each.default is not NO_DEFAULT:
        found["default"] = each.default
    if each.aliases:
        found["aliases"] = list(each.aliases)
    return found
