"""Tests of decoding Protobuf messages to Arrow columns, compared with Google's library."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.registry import Schema, framing, from_schema
from penstock.registry.protobuf import schema
from penstock.registry.protobuf.schema import (
    ProtobufSchemaError,
    message_named,
    parse_protobuf,
    path_of,
)
from registry.fake_registry import FakeRegistry

SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)

TEXT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";

message Order {
  int64 id = 1;
  string name = 2;
  double price = 3;
  float share = 4;
  bool paid = 5;
  bytes raw = 6;
  uint32 u32 = 7;
  uint64 u64 = 8;
  sint32 s32 = 9;
  sint64 s64 = 10;
  fixed32 f32 = 11;
  fixed64 f64 = 12;
  sfixed32 sf32 = 13;
  sfixed64 sf64 = 14;
  int32 i32 = 15;
  Colour colour = 16;
  optional int32 maybe = 17;
  repeated int32 numbers = 18;
  repeated sint64 loose = 19 [packed = false];
  repeated string tags = 20;
  repeated Line lines = 21;
  map<string, int64> counts = 22;
  map<int32, Line> by_number = 23;
  Line first = 24;
  oneof either { string text = 25; int32 number = 26; Line line = 27; }
  google.protobuf.Timestamp at = 28;
  enum Colour { RED = 0; BLUE = 1; GREEN = 7; }
  message Line { string sku = 1; repeated double prices = 2; }
}
message Tree { int32 v = 1; repeated Tree children = 2; }
"""
FILE = parse_protobuf(TEXT)
ORDER: Any = GetMessageClass(message_named(FILE, "shop.Order"))
TREE: Any = GetMessageClass(message_named(FILE, "Tree"))

INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
UINT32, UINT64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
FLOAT = st.floats(width=32, allow_nan=False)
DOUBLE = st.floats(allow_nan=False)
LINE = st.fixed_dictionaries(
    {}, optional={"sku": st.text(max_size=4), "prices": st.lists(DOUBLE, max_size=3)}
)
SECONDS, MICROS = st.integers(0, 2**33), st.integers(0, 999_999)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": INT64, "name": st.text(max_size=12), "price": DOUBLE, "share": FLOAT, "paid": st.booleans(),
    "raw": st.binary(max_size=12), "u32": UINT32, "u64": UINT64, "s32": INT32, "s64": INT64, "f32": UINT32,
    "f64": UINT64, "sf32": INT32, "sf64": INT64, "i32": INT32, "colour": st.sampled_from([0, 1, 7, 5]),
    "maybe": INT32, "numbers": st.lists(INT32, max_size=4), "loose": st.lists(INT64, max_size=3),
    "tags": st.lists(st.text(max_size=4), max_size=3), "lines": st.lists(LINE, max_size=3),
    "counts": st.dictionaries(st.text(max_size=3), INT64, max_size=3),
    "by_number": st.dictionaries(INT32, LINE, max_size=2), "first": LINE,
    "at": st.builds(lambda s, n: {"seconds": s, "nanos": n * 1000}, SECONDS, MICROS),
}  # fmt: skip
ONE_OF = st.one_of(
    st.just({}),
    st.text(max_size=4).map(lambda text: {"text": text}),
    INT32.map(lambda number: {"number": number}),
    LINE.map(lambda line: {"line": line}),
)
ORDERS = st.builds(
    lambda one, other: ORDER(**one, **other), st.fixed_dictionaries({}, optional=FIELDS), ONE_OF
)


def line_row(line: Any) -> dict[str, Any]:
    return {"sku": line.sku, "prices": list(line.prices)}


def row_of(order: Any) -> dict[str, Any]:
    """Return a message as the row that the columns must have."""
    names = {0: "RED", 1: "BLUE", 7: "GREEN"}
    plain = [
        "id",
        "name",
        "price",
        "share",
        "paid",
        "raw",
        "u32",
        "u64",
        "s32",
        "s64",
        "f32",
        "f64",
        "sf32",
        "sf64",
        "i32",
    ]
    found: dict[str, Any] = {name: getattr(order, name) for name in plain}
    found["colour"] = names.get(order.colour, str(order.colour))
    for name in ("maybe", "text", "number"):
        found[name] = getattr(order, name) if order.HasField(name) else None
    for name in ("first", "line"):
        found[name] = line_row(getattr(order, name)) if order.HasField(name) else None
    for name in ("numbers", "loose", "tags"):
        found[name] = list(getattr(order, name))
    found["lines"] = [line_row(line) for line in order.lines]
    found["counts"] = sorted(order.counts.items())
    found["by_number"] = sorted((key, line_row(line)) for key, line in order.by_number.items())
    found["at"] = order.at.ToMicroseconds() if order.HasField("at") else None
    return found


def as_row(found: dict[str, Any]) -> dict[str, Any]:
    maps = {name: sorted(found[name]) for name in ("counts", "by_number")}
    return {**found, **maps}


def decode(rows: list[Any], message: str = "shop.Order", text: str = TEXT) -> Any:
    return from_schema(pa.array(rows, pa.binary()), "protobuf", schema=text, message=message)


def rows_in(values: pa.Array) -> list[Any]:
    values.validate(full=True)
    place = values.type.get_field_index("at")
    arrays = values.flatten()
    arrays[place] = arrays[place].cast(pa.int64())
    table = pa.StructArray.from_arrays(arrays, [field.name for field in values.type])
    return [as_row(row) for row in table.to_pylist()]


@SLOW
@given(st.lists(ORDERS, max_size=5))
def test_messages_are_those_that_were_written(orders: list[Any]) -> None:
    found = decode([order.SerializeToString() for order in orders])
    assert rows_in(found.whole()) == [row_of(order) for order in orders]


@SLOW
@given(ORDERS, ORDERS)
def test_parts_are_put_together_as_by_google(one: Any, other: Any) -> None:
    data = one.SerializeToString() + other.SerializeToString()
    merged = ORDER.FromString(data)
    if one.WhichOneof("either") == other.WhichOneof("either") or not (one.lines or one.by_number):
        found = rows_in(decode([data]).whole())[0]
        wanted = row_of(merged)
        # Entries of maps come twice in columns, where Google's library keeps the last.
        for name in ("counts", "by_number"):
            found[name] = sorted(dict(decode_order(data, name)).items())
        assert found == wanted


def decode_order(data: bytes, name: str) -> list[Any]:
    found: list[Any] = decode([data]).whole().to_pylist()[0][name]
    return found


@SLOW
@given(st.lists(ORDERS, min_size=2, max_size=4), st.data())
def test_damaged_messages_are_dead_letters_where_google_refuses_them(
    orders: list[Any], data: st.DataObject
) -> None:
    rows = [order.SerializeToString() for order in orders]
    place = data.draw(st.integers(0, len(rows) - 1))
    cut = data.draw(st.integers(0, len(rows[place])))
    rows[place] = rows[place][:cut] + data.draw(st.binary(max_size=6))
    found = decode(rows)
    kept = dict(zip(found.rows.tolist(), rows_in(found.values), strict=True))
    for number, order in enumerate(orders):
        if number != place:
            assert kept[number] == row_of(order)
    if place in kept:
        ORDER.FromString(rows[place])  # what is read here is a message there


def test_unknown_fields_are_passed_over_and_missing_ones_are_zero() -> None:
    text = 'syntax = "proto3"; package shop; message Order { string name = 2; int32 added = 99; }'
    rows = [ORDER(id=5, name="x", lines=[{"sku": "y"}]).SerializeToString()]
    assert decode(rows, text=text).whole().to_pylist() == [{"name": "x", "added": 0}]


def test_a_type_that_holds_itself_is_json_text() -> None:
    tree = TREE(v=1, children=[TREE(v=2, children=[TREE(v=3)]), TREE()])
    (row,) = decode([tree.SerializeToString()], "Tree").whole().to_pylist()
    assert row["v"] == 1
    assert [json.loads(each) for each in row["children"]] == [{"v": 2, "children": [{"v": 3}]}, {}]
    broken = decode([b"\x12\x04\x12\x02\x12\x05"], "Tree")
    assert broken.dead["reason"].to_pylist() == ["the value ends too early"]


def nested(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = b"\x12" + unsigned(len(data)) + data
    return data


def unsigned(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


HOSTILE = {
    "a length beyond the message": (b"\x12" + unsigned(2**40), "too early"),
    "a length of 64 bits": (b"\x12" + b"\xff" * 9 + b"\x01", "too early"),
    "field zero": (b"\x00\x00", "wire type"),
    "a group": (b"\x0b\x0c", "wire type"),
    "an unknown group": (b"\xfb\x3f", "wire type"),
    "a varint without an end": (b"\x08" + b"\xff" * 12, "does not fit"),
    "text that is no UTF-8": (b"\x12\x02\xc3\x28", "not UTF-8"),
    "another wire type": (b"\x0d\0\0\0\0", "wire type"),
    "a packed list cut off": (b"\x92\x01\x03\x80\x80\x80", "too early"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_messages_are_dead_letters(name: str) -> None:
    row, reason = HOSTILE[name]
    found = decode([row, b"\x08\x01"])
    assert found.rows.tolist() == [1]
    assert reason in found.dead["reason"][0].as_py()


def test_messages_in_messages_without_end() -> None:
    begin = time.monotonic()
    found = decode([nested(5_000), nested(90)], "Tree")
    assert found.dead["reason"].to_pylist() == ["the value is nested too deeply"]
    assert time.monotonic() - begin < 5


def test_message_indexes_say_which_message() -> None:
    registry = FakeRegistry()
    number = registry.add("t-value", Schema(TEXT, "PROTOBUF"))
    order, tree = ORDER(id=1).SerializeToString(), TREE(v=2).SerializeToString()
    rows = [
        framing.id_prefix(number) + framing.message_indexes([place]) + data
        for place, data in ((0, order), (1, tree), (5, tree))
    ]
    rows += [framing.id_prefix(number) + b"\2\0" + order, framing.id_prefix(number)]
    found = from_schema(pa.array(rows), "protobuf", registry)
    assert [row["id"] for row in found.values.to_pylist()] == [1, 1]
    assert found.rows.tolist() == [0, 3]
    reasons = found.dead["reason"].to_pylist()
    assert "the message is shop.Tree, not shop.Order" in reasons[0]
    assert "no message of index 5" in reasons[1]
    assert "does not end" in reasons[2]
    found = from_schema(pa.array(rows), "protobuf", registry, subject="t-value", message="shop.Tree")
    assert [row["v"] for row in found.values.to_pylist()] == [2]


def test_a_descriptor_in_base64_is_a_schema_as_well() -> None:
    proto = descriptor_pb2.FileDescriptorProto()
    FILE.CopyToProto(proto)
    text = base64.b64encode(proto.SerializeToString()).decode()
    assert decode([b"\x08\x05"], text=text).whole()[0]["id"].as_py() == 5


def test_paths_of_nested_messages() -> None:
    # The entries of the two maps, which come before it, are nested messages as well.
    assert path_of(message_named(FILE, "shop.Order.Line")) == (0, 2)
    assert path_of(message_named(FILE, "shop.Tree")) == (1,)


def test_imports_are_references() -> None:
    other = 'syntax = "proto3"; package a; message City { string name = 1; }'
    main = 'syntax = "proto3"; package b; import "city.proto"; message To { a.City city = 1; }'
    file = parse_protobuf(main, {"city.proto": other})
    assert message_named(file, "b.To").fields_by_name["city"].message_type.full_name == "a.City"
    with pytest.raises(ProtobufSchemaError, match=r"city.proto"):
        parse_protobuf(main)


def test_presence_in_proto2() -> None:
    text = """message R { required int32 a = 1; optional int32 b = 2 [default = 7]; repeated int32 c = 3;
      map<string, string> d = 4; }"""
    file: Any = GetMessageClass(message_named(parse_protobuf(text), "R"))
    rows = [file(a=1, c=[1, 2], d={"k": "v"}).SerializeToString(), file(a=0, b=0).SerializeToString()]
    assert decode(rows, "R", text).whole().to_pylist() == [
        {"a": 1, "b": None, "c": [1, 2], "d": [("k", "v")]},
        {"a": 0, "b": 0, "c": [], "d": []},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message {", "no Protobuf schema"),
        ('syntax = "proto3";', "no message"),
        ('syntax = "proto3"; message A { B b = 1; }', "cannot be resolved"),
        ("message A { optional group G = 1 { optional int32 x = 1; } }", "group"),
    ],
)
def test_what_is_no_schema_says_why(text: str, message: str) -> None:
    with pytest.raises(ProtobufSchemaError, match=message):
        parse_protobuf(text)


def test_a_schema_that_is_parsed_again_is_not_the_same_object() -> None:
    text = 'syntax = "proto3"; message Kept { int64 a = 1; }'
    one, other = schema.file_of(text, "one.proto"), schema.file_of(text, "other.proto")
    assert (one.name, other.name) == ("one.proto", "other.proto")
    one.message_type[0].name = "Changed"
    assert schema.file_of(text, "one.proto").message_type[0].name == "Kept"
    for _ in range(2):
        with pytest.raises(schema.ProtobufSchemaError, match="line 1"):
            schema.file_of("message {", "broken.proto")
