"""Compares two schemas: lists their differences, and reasons why one cannot read values of the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import DecodeError
from penstock.registry.schemas import AVRO, JSON, PROTOBUF, Schema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

    from penstock.registry.avro.schema import Type

References = Mapping[str, Schema]


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """One difference between two schemas: the path, such as ``customer.email``, and its old and new form.

    A form is None if the schema lacks the part."""

    place: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        if self.old is None:
            return f"+ {self.place}: {self.new}"
        if self.new is None:
            return f"- {self.place}: {self.old}"
        return f"~ {self.place}: {self.new}, was {self.old}"


def differences(
    old: Schema, old_references: References, new: Schema, new_references: References
) -> list[SchemaDifference]:
    """Return the differences between two schemas, in the order of the new schema, removed parts last.

    Raises:
        DecodeError: one of the schemas is invalid, or their types differ.
    """
    if old.type != new.type:
        raise DecodeError(f"the old schema is of type {old.type}, the new one of type {new.type}")
    parts = _PARTS[new.type]
    before, after = parts(old, old_references), parts(new, new_references)
    return [
        SchemaDifference(place, before.get(place), after.get(place))
        for place in dict.fromkeys([*after, *before])
        if before.get(place) != after.get(place)
    ]


def misreadings(
    reader: Schema, reader_references: References, writer: Schema, references: References
) -> list[str]:
    """Return the reasons why `reader` cannot read values of `writer`, a schema of the same type.

    Raises:
        DecodeError: one of the schemas is invalid.
    """
    return _CHECKS[reader.type](reader, reader_references, writer, references)


def _texts(references: References) -> dict[str, str]:
    return {name: each.text for name, each in references.items()}


# --- Avro ---


def _avro(schema: Schema, references: References) -> Type:
    from penstock.registry.avro.schema import parse_avro

    return parse_avro(schema.text, _texts(references).values())


def _avro_misreadings(
    reader: Schema, reader_references: References, writer: Schema, references: References
) -> list[str]:
    from penstock.registry.avro.compatibility import incompatibilities

    return incompatibilities(_avro(reader, reader_references), _avro(writer, references))


def _avro_parts(schema: Schema, references: References) -> dict[str, str]:
    from penstock.registry.avro import schema as avro

    found: dict[str, str] = {}
    seen: set[str] = set()

    def shown(kind: Type) -> str:
        if isinstance(kind, avro.Union):
            return " | ".join(map(shown, kind.branches))
        if isinstance(kind, avro.AvroArray):
            return f"array of {shown(kind.items)}"
        if isinstance(kind, avro.Map):
            return f"map of {shown(kind.values)}"
        if isinstance(kind, avro.Enum):
            return f"enum {kind.name} of {', '.join(kind.symbols)}"
        logical = f" ({kind.logical})" if kind.logical else ""
        if kind.logical == "decimal":
            logical = f" (decimal {kind.precision}, {kind.scale})"
        if isinstance(kind, avro.AvroFixed):
            return f"fixed {kind.name} of {kind.size} bytes{logical}"
        if isinstance(kind, avro.NamedType):
            return f"{kind.kind} {kind.name}"
        return f"{kind.kind}{logical}"

    def walk(kind: Type, place: str) -> None:
        if isinstance(kind, avro.Union):
            for each in kind.branches:
                walk(each, place)
        elif isinstance(kind, avro.AvroArray):
            walk(kind.items, f"{place}[]")
        elif isinstance(kind, avro.Map):
            walk(kind.values, f"{place}{{}}")
        elif isinstance(kind, avro.AvroRecord) and kind.name not in seen:
            seen.add(kind.name)
            for field in kind.fields:
                inner = f"{place}.{field.name}" if place else field.name
                default = "" if field.default is avro.NO_DEFAULT else f", default {json.dumps(field.default)}"
                aliases = f", alias {', '.join(field.aliases)}" if field.aliases else ""
                found[inner] = f"{shown(field.type)}{default}{aliases}"
                walk(field.type, inner)

    whole = _avro(schema, references)
    found["(whole)"] = shown(whole)
    walk(whole, "")
    return found


# --- JSON Schema ---

_KEPT_APART = ("properties", "items", "required", "additionalProperties")
_SAYS_NOTHING = ("$schema", "$id", "title", "description", "$comment", "examples")


def _json_misreadings(
    reader: Schema, reader_references: References, writer: Schema, references: References
) -> list[str]:
    from penstock.registry.json_schema.columns import parse_json_schema
    from penstock.registry.json_schema.compatibility import incompatibilities

    known = {
        name: parse_json_schema(text)
        for name, text in {**_texts(references), **_texts(reader_references)}.items()
    }
    return incompatibilities(parse_json_schema(reader.text), parse_json_schema(writer.text), known)


def _json_parts(schema: Schema, references: References) -> dict[str, str]:
    from penstock.registry.json_schema.columns import parse_json_schema

    return dict(_json_part(parse_json_schema(schema.text), "", is_required=False))


def _json_part(found: Any, place: str, *, is_required: bool) -> Iterator[tuple[str, str]]:
    required = ", required" if is_required else ""
    name = place or "(whole)"
    if not isinstance(found, dict):
        yield name, f"{json.dumps(found)}{required}"
        return
    words = {key: each for key, each in found.items() if key not in (*_KEPT_APART, *_SAYS_NOTHING)}
    shown = [str(words.pop("type"))] if isinstance(words.get("type"), str) else []
    shown += [f"{key} {json.dumps(each, sort_keys=True)}" for key, each in sorted(words.items())]
    yield name, f"{', '.join(shown) or 'anything'}{required}"
    properties = found.get("properties")
    names = found.get("required")
    if isinstance(properties, dict):
        for key, each in properties.items():
            inner = f"{place}.{key}" if place else key
            is_needed = isinstance(names, list) and key in names
            yield from _json_part(each, inner, is_required=is_needed)
    if "items" in found:
        yield from _json_part(found["items"], f"{place}[]", is_required=False)
    if "additionalProperties" in found:
        yield from _json_part(found["additionalProperties"], f"{place}{{}}", is_required=False)


# --- Protobuf ---


def _protobuf_misreadings(
    reader: Schema, reader_references: References, writer: Schema, references: References
) -> list[str]:
    from penstock.registry.protobuf.compatibility import incompatibilities
    from penstock.registry.protobuf.schema import parse_protobuf

    return incompatibilities(
        parse_protobuf(reader.text, _texts(reader_references)),
        parse_protobuf(writer.text, _texts(references)),
    )


def _protobuf_parts(schema: Schema, references: References) -> dict[str, str]:
    from penstock.registry.protobuf.schema import parse_protobuf

    file = parse_protobuf(schema.text, _texts(references))
    found = {f"enum {each.name}": _symbols(each) for each in file.enum_types_by_name.values()}
    for message in file.message_types_by_name.values():
        found |= _message_parts(message, message.name)
    return found


def _message_parts(message: Descriptor, place: str) -> dict[str, str]:
    found = {place: "message"}
    for each in message.fields:
        found[f"{place}.{each.name}"] = f"{_protobuf_type(each)} = {each.number}"
    for enum in message.enum_types:
        found[f"enum {place}.{enum.name}"] = _symbols(enum)
    for inner in message.nested_types:
        if not inner.GetOptions().map_entry:
            found |= _message_parts(inner, f"{place}.{inner.name}")
    return found


def _symbols(enum: EnumDescriptor) -> str:
    return ", ".join(f"{each.name} = {each.number}" for each in enum.values)


def _protobuf_type(field: FieldDescriptor) -> str:
    from google.protobuf.descriptor import FieldDescriptor as Kinds

    names = {
        value: name.removeprefix("TYPE_").lower()
        for name, value in vars(Kinds).items()
        if name[:5] == "TYPE_"
    }
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = (field.message_type.fields_by_name[each] for each in ("key", "value"))
        return f"map of {_protobuf_type(key)} to {_protobuf_type(value)}"
    kind = field.message_type or field.enum_type
    shown = names.get(field.type, "unknown") if kind is None else kind.full_name
    if field.is_repeated:
        return f"repeated {shown}"
    oneof = field.containing_oneof
    # A synthetic oneof of one field stands for the word optional.
    if oneof is not None and not (len(oneof.fields) == 1 and oneof.name == f"_{field.name}"):
        return f"{shown} in oneof {oneof.name}"
    return f"required {shown}" if field.is_required else f"optional {shown}" if oneof else shown


_CHECKS: dict[str, Callable[[Schema, References, Schema, References], list[str]]] = {
    AVRO: _avro_misreadings,
    JSON: _json_misreadings,
    PROTOBUF: _protobuf_misreadings,
}
_PARTS: dict[str, Callable[[Schema, References], dict[str, str]]] = {
    AVRO: _avro_parts,
    JSON: _json_parts,
    PROTOBUF: _protobuf_parts,
}
