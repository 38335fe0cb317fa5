"""Computes the layout of a message at one version: its fields in wire order, and their wire types."""

from __future__ import annotations

from penstock.protocol.compiler.struct_types import NullableStructure, Structure
from penstock.protocol.compiler.wire_type import PlacedField, StructLayout, WireType
from penstock.protocol.compiler.wire_types import VARINT_TYPES, WIRE_TYPES, Array
from penstock.protocol.schema.definition import FIXED, Definition, FieldSpec, FieldType, StructSpec


def resolve(definition: Definition, version: int) -> StructLayout:
    """Return the layout of a message at one of its versions."""
    flexible = version in definition.flexible
    structs = dict(definition.structs)

    def struct_layout(spec: StructSpec) -> StructLayout:
        layout = StructLayout(spec, structs, version, flexible)
        for field in spec.fields:
            if version not in field.versions:
                layout.absent.append(field)
                continue
            placed = PlacedField(field, wire_type(field))
            if version in field.tagged and field.tag is not None:
                layout.tagged.append((field.tag, placed))
            else:
                layout.fields.append(placed)
        layout.tagged.sort(key=lambda pair: pair[0])
        return layout

    def wire_type(field: FieldSpec) -> WireType:
        compact = flexible if field.flexible is None else version in field.flexible
        nullable = version in field.nullable
        field_type = field.type_at(version)
        if field_type.is_array:
            return Array(single(field_type, compact, nullable=False), compact, nullable)
        if field_type.is_struct and nullable:
            return NullableStructure(struct_layout(structs[field_type.base]), version in field.tagged)
        return single(field_type, compact, nullable)

    def single(field_type: FieldType, compact: bool, nullable: bool) -> WireType:
        if field_type.is_struct:
            return Structure(struct_layout(structs[field_type.base]))
        if field_type.encoding != FIXED:
            return VARINT_TYPES[field_type.base, field_type.encoding]
        return WIRE_TYPES[field_type.base](compact, nullable)

    return struct_layout(definition.root)
