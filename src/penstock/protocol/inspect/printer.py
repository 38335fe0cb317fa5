"""A definition for people: its grammar in the manner of Kafka's protocol guide, and its fields as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.protocol.compiler.layout import resolve
from penstock.protocol.compiler.struct_types import NullableStructure, PlacedField, StructLayout, Structure
from penstock.protocol.compiler.wire_types import (
    COMPACT,
    Array,
    Blob,
    RecordSet,
    Text,
    Uuid,
    Varint,
    WireType,
)
from penstock.protocol.schema.definition import (
    FIXED,
    UNSIGNED,
    Definition,
    FieldSpec,
    FieldType,
    NewStruct,
    StructSpec,
    snake_case,
)

_FIXED_NAMES = {"bool": "BOOLEAN", "uint32": "UNSIGNED_INT32"}

TAGS = "_tagged_fields"


def type_name(wire: WireType) -> str:
    """What the protocol guide calls a type; structs by their name, arrays by what is in them."""
    if isinstance(wire, Array):
        return f"{'NULLABLE ' * wire.nullable}[{type_name(wire.element)}]"
    if isinstance(wire, Structure):
        nullable = isinstance(wire, NullableStructure)
        return f"{'NULLABLE ' * nullable}{wire.layout.spec.name}"
    if isinstance(wire, Varint):
        return f"{'' if wire.signed else 'UNSIGNED_'}VARINT{wire.bits}"
    if isinstance(wire, Uuid):
        return "UUID"
    if isinstance(wire, (Text, Blob)):
        name = "STRING" if isinstance(wire, Text) else "RECORDS" if isinstance(wire, RecordSet) else "BYTES"
        return f"{'COMPACT_' * (wire.length is COMPACT)}{'NULLABLE_' * wire.nullable}{name}"
    name = str(getattr(wire, "name", ""))
    return _FIXED_NAMES.get(name, name.upper())


def grammar(definition: Definition, version: int) -> Iterator[str]:
    """The lines of a message's grammar at a version that it has."""
    layout = resolve(definition, version)
    title = definition.name
    for kind in ("Request", "Response"):
        if definition.type == kind.lower():
            title = f"{title.removesuffix(kind)} {kind}"
    yield f"{title} (Version: {version}) => {_names(layout)}".rstrip()
    yield from _struct_lines(layout, "  ")


def _names(layout: StructLayout) -> str:
    names = [_shown_name(field) for field in layout.fields]
    return " ".join([*names, TAGS] if layout.flexible else names)


def _shown_name(field: PlacedField) -> str:
    name = snake_case(field.spec.name)
    return f"[{name}]" if isinstance(field.wire, Array) else name


def _struct_lines(layout: StructLayout, indent: str) -> Iterator[str]:
    for field in layout.fields:
        yield from _field_lines(field, snake_case(field.spec.name), indent)
    if layout.tagged:
        tagged = " ".join(f"{_shown_name(field)}<tag: {tag}>" for tag, field in layout.tagged)
        yield f"{indent}{TAGS} => {tagged}"
        for _, field in layout.tagged:
            yield from _field_lines(field, snake_case(field.spec.name), indent + "  ")


def _field_lines(field: PlacedField, name: str, indent: str) -> Iterator[str]:
    wire = field.wire
    element = wire.element if isinstance(wire, Array) else wire
    nullable = isinstance(element, NullableStructure) or (isinstance(wire, Array) and wire.nullable)
    note = " (nullable)" if nullable else ""
    if not isinstance(element, Structure):
        yield f"{indent}{name} => {type_name(element)}{note}"
        return
    yield f"{indent}{name} => {_names(element.layout)}{note}".rstrip()
    yield from _struct_lines(element.layout, indent + "  ")


class Row(NamedTuple):
    """A field, all versions together."""

    field: str
    type: str
    versions: str
    nullable: str
    default: str
    notes: str


HEADINGS = Row("field", "type", "versions", "nullable", "default", "notes")


def rows(definition: Definition, version: int | None = None) -> Iterator[Row]:
    """The fields of a message from the top, those of structs indented; of one version or of all."""
    yield from _struct_rows(definition, definition.root, version, "")


def _struct_rows(definition: Definition, spec: StructSpec, version: int | None, indent: str) -> Iterator[Row]:
    for field in spec.fields:
        if version is not None and version not in field.versions:
            continue
        yield Row(
            indent + field.name[:1].lower() + field.name[1:],
            _type_text(field, version),
            str(field.versions),
            "" if not field.nullable else str(field.nullable),
            _default_text(field),
            _notes(field),
        )
        base = field.types[0][1].base
        if base in definition.structs:
            yield from _struct_rows(definition, definition.structs[base], version, indent + "  ")


def language_type(field_type: FieldType) -> str:
    """A type as definitions spell it."""
    name = field_type.base
    if field_type.encoding != FIXED:
        name = f"{'unsigned_' * (field_type.encoding == UNSIGNED)}var{name}"
    return f"{'[]' * field_type.is_array}{name}"


def _type_text(field: FieldSpec, version: int | None) -> str:
    if version is not None:
        return language_type(field.type_at(version))
    if len(field.types) == 1:
        return language_type(field.types[0][1])
    return ", ".join(f"{versions}: {language_type(each)}" for versions, each in field.types)


def _default_text(field: FieldSpec) -> str:
    if field.default is None:
        return "null"
    if field.default is NewStruct or field.default == ():
        return ""
    plain = field.default in (0, False, "", b"", 0.0) or field.default == bytes(16)
    return (
        "" if plain else str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    )


def _notes(field: FieldSpec) -> str:
    notes = []
    if field.tag is not None:
        notes.append(f"tag {field.tag} in {field.tagged}")
    if field.ignorable:
        notes.append("ignorable")
    if field.map_key:
        notes.append("key")
    if field.entity_type:
        notes.append(field.entity_type)
    return ", ".join(notes)
