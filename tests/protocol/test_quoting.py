"""Tests that a hostile definition cannot run code: generated source has its texts only as literals."""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.protocol.compiler.compile import decoder_source, encoder_source, writer_source
from penstock.protocol.compiler.layout import resolve
from penstock.protocol.inspect.evolution import compare
from penstock.protocol.inspect.json_form import from_json, to_json
from penstock.protocol.inspect.printer import grammar, rows
from penstock.protocol.inspect.sizes import measure
from penstock.protocol.loaded_classes import load_message, message_class
from penstock.protocol.message import Message
from penstock.protocol.quoting import identifier, is_identifier, literal
from penstock.protocol.schema.class_writer import module_source
from penstock.protocol.schema.definition import DefinitionError
from penstock.protocol.schema.loader import FILE_BYTES_MAX, read_definition
from penstock.protocol.schema.parser import FIELDS_MAX, STRUCT_DEPTH_MAX, parse_definition

CANARY = "a_definition_ran_code"
CALL = f'__import__("sys").modules.__setitem__("{CANARY}", 1)'
TEXTS = [
    f'" + str({CALL}) + "',
    f"' + str({CALL}) + '",
    f'"""\n{CALL}\n"""',
    f"{{{CALL}}}",
    f'") or {CALL} or ("',
    f"\\\n{CALL}#",
    CALL,
    "'",
    '"',
    "'\"",
    "\"'",
    "\\",
    "\\'",
    '\\"',
    "\\N{DASH}",
    "{}",
    "{0.__class__}",
    "%s",
    "\n",
    "\r",
    "\0",
    "a\x1b[2J",
    "\u2028\u202e\x85",
    "é ｅ",
    "x" * 5000,
]


@pytest.fixture(autouse=True)
def no_code_runs() -> Iterator[None]:
    yield
    ran = sys.modules.pop(CANARY, None)
    assert ran is None, "text of a definition was executed"


scalars = st.none() | st.booleans() | st.integers() | st.text() | st.binary()


@given(scalars | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(TEXTS))
def test_a_literal_evaluates_to_its_value_and_nothing_else(value: object) -> None:
    written = literal(value)
    read = ast.literal_eval(written)
    assert (type(read), repr(read)) == (type(value), repr(value))
    assert "\n" not in written


class Evil(str):
    def __repr__(self) -> str:
        return CALL


class EvilNumber(int):
    def __repr__(self) -> str:
        return CALL


@pytest.mark.parametrize(
    "value", [Evil("a"), EvilNumber(1), float("nan"), float("inf"), [1], (), {}, object, Ellipsis, 1j]
)
def test_what_has_no_literal_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="cannot be written into generated source"):
        literal(value)


def test_names_in_generated_source() -> None:
    for good in ("watts", "max_wait_ms", "LampReport", "match", "a1"):
        assert identifier(good) == good
    # The last two: Python reads a full-width letter and a ligature as the plain letters they resemble.
    for bad in (
        "",
        "1a",
        "a b",
        "a-b",
        "import",
        "None",
        "__class__",
        "_a",
        "a\n",
        "a;b",
        "ｅval",
        "ﬁeld",
        "é",
    ):
        assert not is_identifier(bad)
        with pytest.raises(ValueError, match="cannot be a name"):
            identifier(bad)


def definition(default: object = "", *, kind: str = "string", **change: object) -> dict[str, Any]:
    """Return a definition in which `default` is the default in every position that generated code uses."""
    plain = {"type": kind, "versions": "0+", "ignorable": True, "default": default}
    item = {
        "name": "Item", "type": "[]Item", "versions": "0+",
        "fields": [{"name": "Plain", **plain}, {"name": "Absent", **plain, "versions": "1+"}],
    }  # fmt: skip
    tagged = {**plain, "taggedVersions": "1+", "tag": 0}
    late = {
        "name": "Late", "type": "Late", "versions": "1+", "taggedVersions": "1+", "tag": 1,
        "fields": [{"name": "Inner", **plain}],
    }  # fmt: skip
    records = {"name": "Records", "type": "records", "versions": "0+", "nullableVersions": "0+"}
    fields = [
        {"name": "Plain", **plain},
        {"name": "Absent", **plain, "versions": "1+"},
        item,
        {"name": "Tagged", **tagged},
        late,
        records,
    ]
    return {
        "name": "LampReport", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+",
        "fields": fields, **change,
    }  # fmt: skip


def use(source: dict[str, Any]) -> type[Message]:
    """Run everything that generates or prints source on a definition, and return its message class."""
    found = parse_definition(source, "lamp.json")
    made = message_class(found)
    ast.parse(module_source(found))
    item_class = vars(sys.modules[made.__module__])["Item"]
    for version in (0, 1):
        layout = resolve(found, version)
        for text, _ in (
            decoder_source(layout),
            decoder_source(layout, from_views=True),
            encoder_source(layout),
            writer_source(layout),
        ):
            ast.parse(text)
        list(grammar(found, version))
        list(rows(found, version))
        message = made(item=[item_class() for _ in range(20)], records=b"abc")
        data = message.encode(version)
        assert made.decode(data, version) == message
        assert made.decode(bytearray(data), version) == message
        assert from_json(made, to_json(message, version), version) == message
        measure(message, version)
    list(rows(found))
    compare(found, parse_definition(definition("other"), "lamp.json"))
    return made


@for_each(TEXTS)
def test_a_default_is_a_value_whatever_is_in_it(text: str) -> None:
    made = use(definition(text))
    plain: Any = made()
    assert (plain.plain, plain.absent, plain.tagged, plain.late.inner) == (text,) * 4


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("bool", True, True),
        ("bool", "false", False),
        ("int8", -128, -128),
        ("int64", str(2**63 - 1), 2**63 - 1),
        ("uint32", "0xffffffff", 2**32 - 1),
        ("float64", "-1e300", -1e300),
        ("float64", -0.0, 0.0),
        ("uuid", "AAAAAAAAAAAAAAAAAAAnIg", b"\0" * 13 + b"\0'\""),
    ],
)
def test_defaults_of_other_types(kind: str, default: object, expected: object) -> None:
    made: Any = use(definition(default, kind=kind))()
    assert (made.plain, made.late.inner) == (expected, expected)


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int8", 128),
        ("int64", 2**63),
        ("int64", -(2**4000)),
        ("int32", "9" * 10_000),
        ("int32", "0x" + "f" * 10_000),
        ("int32", 1.5),
        ("int32", True),
        ("int32", CALL),
        ("uint16", -1),
        ("bool", "maybe"),
        ("bool", 1),
        ("bool", []),
        ("float64", "nan"),
        ("float64", "1e999"),
        ("float64", CALL),
        ("uuid", "'" * 22),
        ("uuid", CALL),
        ("string", "null"),
        ("string", "\ud800"),
        ("string", ["a"]),
        ("string", {"a": 1}),
        ("bytes", CALL),
        ("[]int32", CALL),
    ],
)
def test_what_is_no_default_names_file_and_field(kind: str, default: object) -> None:
    with pytest.raises(DefinitionError, match=r"^lamp\.json: Plain: "):
        parse_definition(definition(default, kind=kind), "lamp.json")


@pytest.mark.parametrize(
    "place", ["name", "apiKey", "type", "listeners", "latestVersionUnstable", "validVersions"]
)
@for_each(TEXTS)
def test_no_property_of_a_message_is_source(text: str, place: str) -> None:
    for value in (text, [text]):
        with pytest.raises(DefinitionError, match=r"^lamp\.json: "):
            parse_definition(definition(**{place: value}), "lamp.json")


@pytest.mark.parametrize(
    "place",
    [
        "name", "type", "versions", "nullableVersions", "tag", "taggedVersions", "entityType", "ignorable",
        "mapKey", "encoding", "flexibleVersions",
    ],
)  # fmt: skip
@for_each(TEXTS)
def test_no_property_of_a_field_is_source(text: str, place: str) -> None:
    for value in (text, [text], {text: text}):
        source = definition()
        source["fields"][0][place] = value
        with pytest.raises(DefinitionError, match=r"^lamp\.json: "):
            parse_definition(source, "lamp.json")


@pytest.mark.parametrize(
    "name", ["self", "Self", "import", "Import", "__class__", "class", "UnknownTags", "isinstance", "tuple",
             "Encode", "a_b", "_a", "ｅval", "a" * 201]
)  # fmt: skip
def test_names_that_a_field_cannot_have(name: str) -> None:
    source = definition()
    source["fields"][0]["name"] = name
    with pytest.raises(DefinitionError, match=r"^lamp\.json: "):
        parse_definition(source, "lamp.json")


@pytest.mark.parametrize(
    "name", ["print", "len", "match", "Exec", "Builtins", "Data", "Pos", "Holder", "Append"]
)
def test_names_that_mean_something_elsewhere_are_plain_fields(name: str) -> None:
    source = definition("here")
    source["fields"][0]["name"] = name
    assert name.lower() in repr(use(source)(**{name.lower(): "there"}))


@pytest.mark.parametrize(
    "name", ["KeyError", "IndexError", "UnicodeDecodeError", "DecodeError", "Struct", "None"]
)
def test_structs_do_not_hide_what_codecs_call(name: str) -> None:
    assert name == "None" or name in ("DecodeError", "Struct") or hasattr(builtins, name)
    source = definition()
    source["fields"][2]["type"] = f"[]{name}"
    with pytest.raises(DefinitionError, match=rf"^lamp\.json: Item: a struct cannot be called {name}"):
        parse_definition(source, "lamp.json")
    with pytest.raises(DefinitionError, match=rf"^lamp\.json: a message cannot be called {name}"):
        parse_definition(definition(name=name), "lamp.json")


def test_a_field_that_occurs_twice() -> None:
    source = definition()
    source["fields"][1]["name"] = "plain"
    with pytest.raises(DefinitionError, match=r"lamp\.json: plain: the name occurs twice"):
        parse_definition(source, "lamp.json")


@pytest.mark.parametrize(
    "versions",
    ["0-999999999", "9" * 10_000, "0-" + "9" * 5000, "٣", "１", "0-1-2", "-1", "+", "0x1", "1e3", "1-0", ""],
)
def test_versions_that_cannot_be(versions: str) -> None:
    for place in ("validVersions", "flexibleVersions"):
        with pytest.raises(DefinitionError, match="range of versions"):
            parse_definition(definition(**{place: versions}), "lamp.json")


def nested(levels: int, kind: str = "[]S{}", in_common: bool = False) -> dict[str, Any]:
    """Return a definition of a message with structs nested in each other."""
    fields: list[dict[str, Any]] = [{"name": "X", "type": "int32", "versions": "0+"}]
    common = []
    for level in range(levels):
        struct = {"name": f"S{level}", "versions": "0+", "fields": fields}
        field = {"name": f"F{level}", "type": kind.format(level), "versions": "0+"}
        common.append(struct)
        fields = [field if in_common else {**field, "fields": fields}]
    source = {
        "name": "Deep",
        "type": "data",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": fields,
    }
    return {**source, "commonStructs": common} if in_common else source


@pytest.mark.parametrize("in_common", [False, True])
@pytest.mark.parametrize("kind", ["S{}", "[]S{}"])
def test_structs_nest_to_a_limit(kind: str, in_common: bool) -> None:
    made = message_class(parse_definition(nested(STRUCT_DEPTH_MAX, kind, in_common), "deep.json"))
    inner: Any = {"x": 7}
    for level in range(STRUCT_DEPTH_MAX):
        inner = {
            f"f{level}": [inner, inner]
            if kind[0] == "[" and level < 3
            else [inner]
            if kind[0] == "["
            else inner
        }
    message = from_json(made, inner, 0)
    assert made.decode(message.encode(0), 0) == message
    for levels in (STRUCT_DEPTH_MAX + 1, 200):
        with pytest.raises(DefinitionError, match=rf"^deep\.json: .*nest more than {STRUCT_DEPTH_MAX} deep"):
            parse_definition(nested(levels, kind, in_common), "deep.json")


def test_a_file_that_nests_10_000_levels(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        path.write_text(opening * 10_000 + "1" + closing * 10_000)
        with pytest.raises(
            DefinitionError, match=r"deep\.json: no definition: objects or lists nest too deep"
        ):
            read_definition(path)
    levels = 10_000
    start = '{"name":"Deep","type":"data","validVersions":"0","flexibleVersions":"0+","fields":['
    inner = "".join(f'{{"name":"F","type":"S{each}","versions":"0+","fields":[' for each in range(levels))
    path.write_text(start + inner + "]}" * levels + "]}")
    with pytest.raises(DefinitionError, match=r"deep\.json: "):
        load_message(path)


def test_a_struct_that_contains_itself_is_found_where_nothing_uses_it() -> None:
    field = {"name": "Again", "type": "Round", "versions": "0+"}
    common = [{"name": "Round", "versions": "0+", "fields": [field]}]
    with pytest.raises(DefinitionError, match=r"lamp\.json: struct Round: contains itself"):
        parse_definition(definition(commonStructs=common), "lamp.json")


def test_a_short_definition_of_very_many_fields_is_refused() -> None:
    """In nine nested structs, all ten fields have the next struct as type: 10^9 fields from 5 KB."""
    source = nested(9, "S{}", in_common=True)
    for struct in [source, *source["commonStructs"]]:
        field = struct["fields"][0]
        struct["fields"] = [{**field, "name": f"{field['name']}N{number}"} for number in range(10)]
    with pytest.raises(DefinitionError, match=rf"more than {FIELDS_MAX} fields"):
        parse_definition(source, "deep.json")


@pytest.mark.parametrize("kind", ["unsigned_varint32", "string", "[]int32"])
@pytest.mark.parametrize("tagged", [False, True])
def test_a_message_of_as_many_fields_as_are_allowed(kind: str, tagged: bool) -> None:
    fields: list[dict[str, Any]] = [
        {"name": f"F{number}", "type": kind, "versions": "0+"} for number in range(FIELDS_MAX)
    ]
    if tagged:
        fields = [{**field, "tag": number, "taggedVersions": "0+"} for number, field in enumerate(fields)]
    source = {
        "name": "Wide",
        "type": "data",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": fields,
    }
    made = message_class(parse_definition(source, "wide.json"))
    assert made.decode(made().encode(0), 0) == made()
    assert from_json(made, to_json(made(), 0), 0) == made()


def test_ranges_of_types_are_looked_at_once() -> None:
    kinds = {str(version): "int32" for version in range(32_768)}
    source = definition(validVersions="0-32767")
    source["fields"][0] = {"name": "Plain", "type": kinds, "versions": "0+"}
    assert len(parse_definition(source, "lamp.json").root.fields[0].types) == 32_768
    del kinds["20000"]
    with pytest.raises(DefinitionError, match="Plain: version 20000 has no type"):
        parse_definition(source, "lamp.json")
    kinds["20000-20001"] = "int64"
    with pytest.raises(DefinitionError, match="Plain: version 20001 has more than one type"):
        parse_definition(source, "lamp.json")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON: 'utf-8' codec"),
        (b"\0", "no JSON"),
        (b"[" * 1000, "no JSON|nest too deep"),
        (b'{"name": ' + b"9" * 5000 + b"}", "no JSON"),
        (b"null", "expected an object, found None"),
        (b"[[]]", "expected an object"),
        (b" " * (FILE_BYTES_MAX + 1), "more than 4194304 bytes"),
        (json.dumps({"__class__": 1}).encode(), "unknown property '__class__'"),
    ],
)
def test_files_that_are_no_definition(tmp_path: Path, data: bytes, complaint: str) -> None:
    path = tmp_path / "lamp.json"
    path.write_bytes(data)
    with pytest.raises(DefinitionError, match=rf"lamp\.json: .*({complaint})"):
        load_message(path)


def test_a_path_with_a_nul() -> None:
    with pytest.raises(DefinitionError, match="no name of a file"):
        load_message("lamp\0.json")
