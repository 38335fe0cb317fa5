"""Tests that every version of every message has the fields and types of Kafka's own definitions."""

from __future__ import annotations

import json

from for_each import for_each
from penstock.protocol.api import API_TABLE
from penstock.protocol.compiler.layout import resolve
from penstock.protocol.compiler.struct_types import NullableStructure, Structure
from penstock.protocol.compiler.wire_type import COMPACT, StructLayout, WireType
from penstock.protocol.compiler.wire_types import Array, Blob, Fixed, RecordSet, Text, Uuid
from penstock.protocol.schema.definition import Definition, FieldSpec, NewStruct
from protocol import reference
from protocol.catalogue import NAMES, message


def signature(layout: StructLayout) -> str:
    plain = " ".join(of(field.wire, layout.flexible) for field in layout.fields)
    if not layout.flexible:
        return plain
    known = " ".join(f"{tag}={of(field.wire, True)}" for tag, field in layout.tagged)
    return f"{plain}{{{known}}}"


def of(wire: WireType, flexible: bool) -> str:
    if isinstance(wire, Structure):
        return f"({signature(wire.layout)})" + "?" * isinstance(wire, NullableStructure)
    if isinstance(wire, Uuid):
        return "u"
    if isinstance(wire, Fixed):
        return reference.CODES[wire.name]
    assert isinstance(wire, (Array, Text, Blob))
    if isinstance(wire, Array):
        code = f"[{of(wire.element, flexible)}]"
    else:
        code = "s" if isinstance(wire, Text) else "R" if isinstance(wire, RecordSet) else "B"
    return code + "?" * wire.nullable + "!" * (flexible and wire.length is not COMPACT)


def facts() -> dict[str, dict[int, str]]:
    table: dict[str, dict[int, str]] = {}
    for line in reference.LAYOUTS.read_text("utf-8").splitlines():
        name, versions, *rest = line.split(" ", 2)
        low, _, high = versions.partition("-")
        table.setdefault(name, {}).update(
            {version: "".join(rest) for version in range(int(low), int(high) + 1)}
        )
    return table


@for_each(NAMES)
def test_layouts_are_the_facts(name):
    message_class, definition = message(name)
    low, high = message_class.VERSIONS
    found = {version: signature(resolve(definition, version)) for version in range(low, high + 1)}
    assert found == facts()[name]


def test_every_message_is_there():
    assert sorted(facts()) == NAMES


def default_of(field: FieldSpec) -> object:
    return "new" if field.default is NewStruct else field.default


def our_fields(definition: Definition, version: int) -> list[tuple[str, str, object]]:
    def walk(fields: list[FieldSpec], path: str):
        for field in fields:
            if version in field.versions:
                of_type = field.type_at(version)
                yield path + field.name, "[]" * of_type.is_array + of_type.base, default_of(field)
                if of_type.is_struct:
                    yield from walk(definition.structs[of_type.base].fields, path + field.name + ".")

    return list(walk(definition.root.fields, ""))


def known_fields() -> dict[str, list[tuple[int, int, list[list[object]]]]]:
    table: dict[str, list[tuple[int, int, list[list[object]]]]] = {}
    for line in reference.FIELDS.read_text("utf-8").splitlines():
        name, low, high, fields = json.loads(line)
        table.setdefault(name, []).append((low, high, fields))
    return table


@for_each(NAMES)
def test_fields_are_the_facts(name):
    _, definition = message(name)
    for low, high, fields in known_fields()[name]:
        for version in range(low, high + 1):
            found = our_fields(definition, version)
            assert [[path, kind, reference.shown(value)] for path, kind, value in found] == fields, version


def test_the_api_table_agrees_with_what_releases_spoke():
    table = json.loads(reference.RELEASES.read_text("utf-8"))
    assert {str(key): api.name for key, api in API_TABLE.items()} == table["names"]
    assert {str(key): api.flexible_since for key, api in API_TABLE.items()} == table["first_flexible"]
    for release, facts_of_release in table["releases"].items():
        for key, (low, high) in facts_of_release["apis"].items():
            known_low, known_high = API_TABLE[int(key)].versions
            assert known_low <= low <= high <= known_high, (release, key)
    trunk = list(table["releases"].values())[-1]["apis"]
    assert {key: high for key, (_, high) in trunk.items()} == {
        str(key): api.versions[1] for key, api in API_TABLE.items() if key not in (4, 5, 6, 7)
    }
