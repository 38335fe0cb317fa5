"""Prints a definition: its grammar in the style of Kafka's protocol guide, and a table of its fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.protocol.compiler.layout import resolve
from penstock.protocol.compiler.wire_type import PlacedField, StructLayout
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

TAGS = "_tagged_fields"


def grammar(definition: Definition, version: int) -> Iterator[str]:
    """Yield the lines of a message's grammar at one of its versions."""
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
    return f"[{name}]" if field.wire.is_array else name


def _struct_lines(layout: StructLayout, indent: str) -> Iterator[str]:
    for field in layout.fields:
        yield from _field_lines(field, snake_case(field.spec.name), indent)
    if layout.tagged:
        tagged = " ".join(f"{_shown_name(field)}<tag: {tag}>" for tag, field in layout.tagged)
        yield f"{indent}{TAGS} => {tagged}"
        for _, field in layout.tagged:
            yield from _field_lines(field, snake_case(field.spec.name), indent + "  ")


def _field_lines(field: PlacedField, name: str, indent: str) -> Iterator[str]:
    wire, struct = field.wire, field.wire.struct
    note = " (nullable)" if (wire.is_null_allowed if struct or wire.is_array else False) else ""
    if struct is None:
        yield f"{indent}{name} => {wire.element_name}{note}"
        return
    yield f"{indent}{name} => {_names(struct)}{note}".rstrip()
    yield from _struct_lines(struct, indent + "  ")


class Row(NamedTuple):
    """A row that describes one field, for all versions of the field."""

    field: str
    type: str
    versions: str
    nullable: str
    default: str
    notes: str


HEADINGS = Row("field", "type", "versions", "nullable", "default", "notes")


def rows(definition: Definition, version: int | None = None) -> Iterator[Row]:
    """Yield a row for each field of a message, in one version or in all; nested fields are indented."""
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
    """Return the name that the definition language gives to a field's type."""
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
