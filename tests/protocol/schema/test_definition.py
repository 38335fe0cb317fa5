"""Tests of the parser for message definitions: what it accepts, and its error for each broken rule."""

from __future__ import annotations

import copy
import json

import pytest

from for_each import for_each
from penstock.protocol.loaded_classes import load_message
from penstock.protocol.schema.definition import DefinitionError, FieldType, NewStruct, snake_case
from penstock.protocol.schema.loader import read_definition
from penstock.protocol.schema.parser import parse_definition
from penstock.protocol.schema.versions import NO_VERSIONS, Versions

GOOD = {
    "name": "LampRequest",
    "type": "request",
    "apiKey": 900,
    "listeners": ["broker"],
    "validVersions": "0-3",
    "flexibleVersions": "2+",
    "fields": [
        {"name": "Watts", "type": "int32", "versions": "0+", "default": "0x28", "about": "Its power."},
        {"name": "Colour", "type": "string", "versions": "1+", "nullableVersions": "1+", "default": "null"},
        {"name": "Shade", "type": "Shade", "versions": "2+", "tag": 0, "taggedVersions": "2+", "fields": [
            {"name": "Width", "type": "float64", "versions": "2+", "default": "1.5"}]},
        {"name": "Bulbs", "type": "[]Bulb", "versions": "0+"},
        {"name": "Level", "type": {"0-2": "int32", "3+": "unsigned_varint32"}, "versions": "0+"},
        {"name": "Age", "type": "int64", "versions": "0+", "encoding": {"0-2": "fixed64", "3+": "signed64"}},
    ],
    "commonStructs": [
        {"name": "Bulb", "versions": "0+", "fields": [{"name": "Id", "type": "uuid", "versions": "0+"}]}
    ],
}  # fmt: skip


def broken(*changes: tuple[str, object]) -> dict:
    """Return a copy of the definition GOOD with changes, each a path and a new value (... deletes).

    A path consists of keys and list indexes with dots between them.
    """
    source = copy.deepcopy(GOOD)
    for path, value in changes:
        *parents, last = (int(each) if each.isdigit() else each for each in path.split("."))
        place: object = source
        for each in parents:
            place = place[each]  # type: ignore[index]
        if value is ...:
            del place[last]  # type: ignore[attr-defined]
        else:
            place[last] = value  # type: ignore[index]
    return source


def test_a_definition_is_read_whole():
    definition = parse_definition(GOOD, "lamp.json")
    watts, colour, shade, bulbs, level, age = definition.root.fields
    assert (definition.name, definition.api_key, definition.listeners) == ("LampRequest", 900, ("broker",))
    assert (definition.valid, definition.flexible) == (Versions(0, 3), Versions(2, 32767))
    assert (watts.default, colour.default, shade.default, bulbs.default) == (40, None, NewStruct, ())
    assert (shade.tag, shade.tagged, colour.tagged) == (0, Versions(2, 32767), NO_VERSIONS)
    assert list(definition.structs) == ["Shade", "Bulb"]
    assert level.type_at(2) == FieldType("int32")
    assert level.type_at(3) == FieldType("int32", "unsigned")
    assert age.type_at(3) == FieldType("int64", "signed")


@for_each(
    [
        (("name", "Lamp-Request"), "no name"),
        (("type", "question"), "type must be one of"),
        (("name", "lamp"), "a message's name begins with a capital letter, unlike lamp"),
        (("name", "None"), "a message cannot be called None"),
        (("name", "L" * 5000), "longer than 200 characters"),
        (("listeners", 1), "listeners must be a list"),
        (("listeners", [None]), "listeners must be a list of names"),
        (("apiKey", -1), "apiKey"),
        (("apiKey", ...), "apiKey"),
        (("flexibleVersions", ...), "flexibleVersions is missing"),
        (("flexibleVersions", "1-2"), "no end"),
        (("validVersions", "3-1"), "validVersions: '3-1'"),
        (("validVersions", "a"), "no range of versions"),
        (("colour", 1), "unknown property 'colour'"),
        (("fields", {}), "fields must be a list"),
        (("fields.0", 3), "expected an object"),
        (("fields.0.size", 3), "Watts: unknown property 'size'$"),
        (("fields.0.name", "9W"), "field 1: '9W' is no name"),
        (("fields.0.name", ...), "field 1: name is missing"),
        (("fields.0.nam", "Watts"), "Watts: unknown property 'nam'; did you mean name\\?"),
        (("fields.2.fields.0.vesions", "0+"), "Shade.Width: unknown property 'vesions'; did you"),
        (("fields.2.fields.0.name", 7), "Shade.field 1: 7 is no name"),
        (("fieldz", []), "unknown property 'fieldz'; did you mean fields"),
        (("fields.0.type", "int31"), "Watts: there is no type and no .* 'int31'; did you mean int32"),
        (("fields.3.type", "Switch"), "Bulbs: there is no type and no struct called 'Switch'"),
        (("fields.0.type", "[][]int32"), "Watts: there are no arrays of arrays"),
        (("fields.0.type", "[]records"), "Watts: there are no arrays of records"),
        (("fields.0.type", 4), "Watts: type must be a name"),
        (("fields.0.versions", ...), "Watts: versions is missing"),
        (("fields.0.versions", "1-"), "Watts: '1-' is no range"),
        (("fields.0.default", "forty"), "Watts: 'forty' is no int32"),
        (("fields.0.default", 2**31), "Watts: 2147483648 is no int32: out of range"),
        (("fields.0.default", [1]), "Watts: .* is no int32: write a number or a text"),
        (("fields.0.default", "9" * 5000), "Watts: '999.* is no int32"),
        (("fields.2.fields.0.default", "nan"), "Shade.Width: 'nan' is no float64: not finite"),
        (("fields.2.fields.0.default", 10**400), "Shade.Width: .* is no float64"),
        (("fields.1.default", "\ud800"), "Colour: .* is no string"),
        (("fields.1.default", ["x"]), "Colour: .* is no string"),
        (("fields.2.tag", "9" * 5000), "Shade: tag must be a number"),
        (("fields.0.entityType", {}), "Watts: unknown entityType"),
        (("fields.0.default", True), "Watts: True is no int32"),
        (("fields.0.default", "null"), "Watts: null is no default"),
        (("fields.0.nullableVersions", "0+"), "Watts: int32 cannot be null"),
        (("fields.0.ignorable", "yes"), "Watts: ignorable must be true or false"),
        (("fields.0.entityType", "lampId"), "Watts: unknown entityType"),
        (("fields.0.entityType", "topicName"), "Watts: a topicName is a string"),
        (("fields.0.flexibleVersions", "none"), "Watts: flexibleVersions of a field is only for"),
        (("fields.0.fields", [{"name": "A", "type": "int8", "versions": "0+"}]), "Watts: only a struct"),
        (("fields.0.tag", 1), "Watts: a tag without taggedVersions"),
        (("fields.0.taggedVersions", "2+"), "Watts: taggedVersions without a tag"),
        (("fields.1.name", "watts"), "watts: the name occurs twice"),
        (("fields.1.nullableVersions", "2+"), "Colour: null is no default"),
        (("fields.2.tag", 1), "tags must be 0, 1, 2"),
        (("fields.2.tag", "zero"), "Shade: tag must be a number"),
        (("fields.2.taggedVersions", "2-3"), "Shade: taggedVersions must have no end"),
        (("fields.2.taggedVersions", "1+"), "Shade: taggedVersions reach beyond versions"),
        (("fields.2.mapKey", True), "Shade: a tagged field cannot be a key"),
        (("fields.2.nullableVersions", "3+"), "Shade: either all tagged versions are nullable or none"),
        (("fields.2.default", "5"), "Shade: default of Shade can only be empty or null"),
        (("fields.2.type", "Bulb"), "two structs called Bulb"),
        (("fields.2.fields.0.default", "wide"), "Shade.Width: 'wide' is no float64"),
        (("fields.3.type", "int32"), "struct Bulb: is never used"),
        (("fields.4.type", {"0-1": "int32", "3+": "varint32"}), "Level: version 2 has no type"),
        (("fields.4.type", {"0-2": "int32", "2+": "varint32"}), "Level: version 2 has more than one type"),
        (("fields.4.type", {"0-2": "int32", "3+": "string"}), "Level: only the width and encoding"),
        (("fields.4.type", {}), "Level: type must be a name"),
        (("fields.4.encoding", {"0+": "fixed32"}), "Level: give a type per version or an encoding"),
        (("fields.5.encoding", {"0+": "fixed32"}), "Age: encoding of int64 is fixed64 or signed64 or"),
        (("fields.5.encoding", {"0-2": "fixed64"}), "Age: version 3 has no type"),
        (("fields.5.encoding", []), "Age: encoding must be an object"),
        (("fields.1.encoding", {"0+": "fixed32"}), "Colour: encoding is for fields of a plain integer type"),
        (("commonStructs.0.name", "bulb"), "must begin with a capital"),
        (("commonStructs.0.name", "Struct"), "a struct cannot be called Struct"),
        (("name", "Bulb"), "a struct is called Bulb too"),
        (("fields.0.name", "From"), "From: in Python it would be called from, which is taken"),
        (("fields.0.name", "unknownTags"), "unknownTags: in Python it would be called unknown_tags"),
        (("commonStructs.0.versions", "1+"), "Bulbs: used in versions 0\\+, but struct Bulb has 1\\+"),
        (("commonStructs.0.fields.0.type", "[]Bulb"), "struct Bulb: contains itself"),
        (("commonStructs.0.fields.0.versions", "1+"), "Bulbs: in version 0, its elements have no fields"),
    ]
)
def test_a_broken_rule_is_named_with_file_and_field(change, complaint):
    with pytest.raises(DefinitionError, match=complaint) as caught:
        parse_definition(broken(change), "lamp.json")
    assert str(caught.value).startswith("lamp.json: ")
    assert len(str(caught.value)) < 300


def test_tags_need_flexible_versions():
    with pytest.raises(DefinitionError, match=r"Shade: tagged in 2\+, but flexible versions are 3\+"):
        parse_definition(broken(("flexibleVersions", "3+")), "lamp.json")


def test_only_requests_have_listeners_and_unstable_versions():
    with pytest.raises(DefinitionError, match="listeners belongs to requests only"):
        parse_definition(broken(("type", "response")), "lamp.json")
    changes = (("type", "data"), ("listeners", []), ("latestVersionUnstable", True))
    with pytest.raises(DefinitionError, match="latestVersionUnstable belongs to requests only"):
        parse_definition(broken(*changes), "lamp.json")


def test_a_file_may_have_comments_and_must_be_json(tmp_path):
    path = tmp_path / "LampRequest.json"
    path.write_text("// Lamps.\n" + json.dumps(GOOD))
    assert read_definition(path).name == "LampRequest"
    path.write_text("{")
    with pytest.raises(DefinitionError, match="no JSON"):
        read_definition(path)


def test_a_definition_of_ones_own_becomes_a_message_class(tmp_path):
    path = tmp_path / "LampRequest.json"
    path.write_text(json.dumps(GOOD))
    lamp_request = load_message(path)
    assert (lamp_request.NAME, lamp_request.API_KEY, lamp_request.VERSIONS) == ("LampRequest", 900, (0, 3))
    message = lamp_request(watts=60, colour="red", level=-1, age=-70)
    for version in (1, 2, 3):
        assert lamp_request.decode(message.encode(version), version) == message


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("maxWaitMs", "max_wait_ms"),
        ("TopicId", "topic_id"),
        ("isKRaftController", "is_k_raft_controller"),
        ("Enable2Pc", "enable2_pc"),
        ("V0Host", "v0_host"),
        ("ISR", "isr"),
        ("KRaftVersion", "k_raft_version"),
        ("x", "x"),
    ],
)
def test_snake_case(name, attribute):
    assert snake_case(name) == attribute


@pytest.mark.parametrize(
    ("text", "versions"),
    [("0+", (0, 32767)), ("3", (3, 3)), ("1-4", (1, 4)), ("none", (0, -1)), ("0", (0, 0))],
)
def test_versions_read_and_print(text, versions):
    assert Versions.parse(text) == versions
    assert str(Versions.parse(text)) == text


@for_each(["", "+", "-1", "4-1", "1-4+", "1.5", "40000", "x", "1-2-3", "²"])
def test_no_versions(text):
    with pytest.raises(ValueError, match="range of versions"):
        Versions.parse(text)


def test_versions_as_sets():
    assert Versions(0, 3).intersect(Versions(2, 9)) == Versions(2, 3)
    assert not Versions(0, 3).intersect(Versions(4, 9))
    assert Versions(0, 3).join(Versions(4, 9)) == Versions(0, 9)
    with pytest.raises(ValueError, match="gap"):
        Versions(0, 3).join(Versions(5, 9))
    assert Versions(0, 3).covers(Versions(1, 3))
    assert not Versions(0, 3).covers(Versions(1, 4))
    assert list(Versions(2, 32767).up_to(4)) == [2, 3, 4]


def test_a_tag_in_quotation_marks() -> None:
    """The parser accepts a tag as a string, which one of Kafka's own definitions has."""
    field = {"name": "A", "type": "int32", "versions": "0+", "tag": "0", "taggedVersions": "0+"}
    source = {"name": "M", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": [field]}
    assert parse_definition(source, "M").root.fields[0].tag == 0


def test_a_message_that_was_removed_keeps_its_name_only() -> None:
    definition = parse_definition({"name": "M", "type": "request", "apiKey": 7, "validVersions": "none"}, "M")
    assert not definition.valid
    assert not definition.flexible
