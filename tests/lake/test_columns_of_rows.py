"""Tests of the columns of landed rows: value formats, new columns during a stream, upserts and bad values."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lake.places import land, place
from lake.s3_server import Store
from penstock import write_topic
from penstock.errors import ConfigError
from penstock.lake.arrow_types import fields_of, spark_type
from penstock.lake.kinds.iceberg_specs import transforms
from penstock.lake.shapes import ShapeSettings


def fill(
    servers: str, values: list[bytes | None], keys: list[bytes | None] | None = None, **more: object
) -> None:
    columns = {"value": pa.array(values, pa.binary())}
    if keys is not None:
        columns["key"] = pa.array(keys, pa.binary())
    write_topic(pa.table({**columns, **more}), "orders", bootstrap_servers=servers)


def test_declared_fields_are_added_widened_renamed_and_dropped(
    store: Store, servers: str, tmp_path: Path
) -> None:
    there = place("iceberg", store, tmp_path)
    fill(servers, [b'{"a": 1, "b": "x", "c": true}'])
    land(there, servers, ShapeSettings("json", fields_of("a int, b string, c boolean")))
    fill(servers, [b'{"a": 8589934592, "name": "y", "d": {"e": 1}}'])
    wider = ShapeSettings("json", fields_of("a bigint, name string, d struct<e: int>"))
    table = there.table(renames={"b": "name"}, drops=("c",))
    land(there, servers, wider, table=table)
    fill(servers, [b'{"a": 3, "name": "z", "d": {"e": 2, "f": "new"}}'])
    land(there, servers, ShapeSettings("json", fields_of("a bigint, name string, d struct<e:int,f:string>")))
    rows = there.rows().sort_by("offset").select(["a", "name", "d"]).to_pylist()
    assert rows == [
        {"a": 1, "name": "x", "d": None},
        {"a": 8589934592, "name": "y", "d": {"e": 1, "f": None}},
        {"a": 3, "name": "z", "d": {"e": 2, "f": "new"}},
    ]
    assert "c" not in there.rows().schema.names


def test_a_type_that_the_table_cannot_take_is_refused(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("iceberg", store, tmp_path)
    fill(servers, [b'{"a": 1}', b'{"a": 2}'])
    land(there, servers, ShapeSettings("json", fields_of("a bigint")))
    fill(servers, [b'{"a": "text"}'])
    with pytest.raises(ConfigError, match=r"(?s)cannot change the columns of iceberg://c/sales.orders"):
        land(there, servers, ShapeSettings("json", fields_of("a string")))
    assert there.rows().num_rows == 2


def test_inferred_columns_are_kept(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("object", store, tmp_path)
    fill(servers, [b'{"a": 1, "b": [1, 2]}', b'{"a": 2}'])
    land(there, servers, ShapeSettings("json"))
    fill(servers, [b'{"a": 3, "more": 1}', b'{"a": "wrong"}', b'{"a": 4, "b": ["x"]}'])
    assert land(there, servers, ShapeSettings("json")).dead == 2
    assert there.rows().sort_by("offset").column("a").to_pylist() == [1, 2, 3]
    dead = there.rows(dead=True).sort_by("offset").to_pylist()
    assert [row["reason"] for row in dead] == ["field a is no int64", "field b[] is no int64"]
    assert dead[0]["value"] == b'{"a": "wrong"}'


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_the_last_record_of_each_key_counts(kind: str, store: Store, servers: str, tmp_path: Path) -> None:
    there = place(kind, store, tmp_path)
    shape = ShapeSettings("json", fields_of("n int"))

    def upsert() -> None:
        land(there, servers, shape, table=there.table(key=("key",)), key=True)

    def found() -> dict[bytes, int]:
        return {row["key"]: row["n"] for row in there.rows().to_pylist()}

    fill(servers, [b'{"n": 1}', b'{"n": 2}', b'{"n": 3}', None], [b"a", b"b", b"a", b"never"])
    upsert()
    assert found() == {b"a": 3, b"b": 2}
    fill(servers, [b'{"n": 4}', None, b'{"n": 5}', b'{"n": 6}', b'{"n": 9}'], [b"c", b"b", b"d", b"a", None])
    upsert()
    assert found() == {b"a": 6, b"c": 4, b"d": 5}
    assert there.rows().num_rows == 3
    (dead,) = there.rows(dead=True).to_pylist()
    assert (dead["offset"], dead["reason"]) == (8, "the record has no key, and is to update a row")
    # A commit of nothing but deletes, one of them in vain, has its positions all the same.
    fill(servers, [None, None], [b"d", b"nobody"])
    upsert()
    assert found() == {b"a": 6, b"c": 4}
    state = there.table().state()
    assert state.positions is not None
    assert state.positions.offsets == {0: 11}


def test_changes_of_rows_out_of_envelopes(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("iceberg", store, tmp_path)

    def change(operation: str, after: object) -> bytes:
        return json.dumps({"op": operation, "before": None, "after": after, "ts_ms": 1}).encode()

    wrapped = json.dumps({"schema": {}, "payload": json.loads(change("u", {"n": 5}))}).encode()
    odd = [change("t", None), b"no JSON", change("u", {"n": "text"}), change("c", None)]
    values = [change("r", {"n": 1}), change("c", {"n": 2}), wrapped, change("d", None), *odd]
    fill(servers, values, [b"a", b"b", b"a", b"b", b"c", b"c", b"c", b"c"])
    shape = ShapeSettings("json", fields_of("n int"))
    land(there, servers, shape, table=there.table(key=("key",)), key=True, unwraps=True)
    assert [(row["key"], row["n"]) for row in there.rows().to_pylist()] == [(b"a", 5)]
    dead = there.rows(dead=True).sort_by("offset").to_pylist()
    assert [row["value"] for row in dead] == odd
    assert [row["reason"] for row in dead] == [
        'the value is no change of a row: its op is "t"',
        "the value is no JSON object",
        "field n is no int32",
        "the value has no row: its after is no object",
    ]


def test_files_alone_take_no_updates(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="files of Parquet alone take no updates"):
        place("object", store, tmp_path).table(key=("key",))


def test_events_become_columns(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("iceberg", store, tmp_path)
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"x": 1}}
    headers = [("content-type", b"application/cloudevents+json")]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    found = pa.array([[dict(zip(("key", "value"), each, strict=True)) for each in headers]] * 2, kind)
    fill(servers, [json.dumps(event).encode(), b"{}"], headers=found)
    land(there, servers, ShapeSettings("cloudevents"))
    (row,) = there.rows().to_pylist()
    assert (row["id"], row["source"], row["type"], row["data"]) == ("1", "/s", "t", b'{"x": 1}')
    (dead,) = there.rows(dead=True).to_pylist()
    assert dead["offset"] == 1
    assert "specversion" in dead["reason"] or "id" in dead["reason"]


AVRO = [
    {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]},
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    },
]


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_newer_schema_in_the_middle_of_a_stream(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    from penstock.registry import AvroSerializer, Registry, SerializationContext

    there = place(kind, store, tmp_path)
    second = (
        AVRO[1] if kind == "iceberg" else {**AVRO[1], "fields": [AVRO[0]["fields"][0], AVRO[1]["fields"][1]]}
    )
    with Registry() as registry:
        context = SerializationContext("orders", "value")
        first = AvroSerializer(registry.url, json.dumps(AVRO[0]))
        fill(servers, [first({"id": n}, context) for n in range(3)])
        shape = ShapeSettings("avro", registry=registry.url)
        land(there, servers, shape)
        # The old schema, the new one, and bytes of neither, in one batch of records.
        newer = AvroSerializer(registry.url, json.dumps(second))
        fill(servers, [first({"id": 3}, context), newer({"id": 4, "note": "new"}, context), b"neither"])
        assert land(there, servers, shape).dead == 1
    rows = there.rows().sort_by("offset").to_pylist()
    assert [(row["id"], row["note"]) for row in rows] == [*((n, None) for n in range(4)), (4, "new")]


def test_partitions_by_transforms(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("iceberg", store, tmp_path)
    fill(servers, [b'{"n": %d}' % n for n in range(20)], [b"%d" % n for n in range(20)])
    by = ("day(timestamp)", "bucket(4, key)", "truncate(10, n)")
    land(there, servers, ShapeSettings("json"), table=there.table(partition_by=by))
    assert there.table().state().files > 4
    assert sorted(there.rows().column("n").to_pylist()) == list(range(20))


def test_transforms_as_people_write_them() -> None:
    schema = fields_of("timestamp timestamp, id bigint")
    found = transforms(["date", "hour(timestamp)", "bucket(16, id)", "id"], schema)
    assert [(column, str(each)) for column, each in found] == [
        ("timestamp", "day"),
        ("timestamp", "hour"),
        ("id", "bucket[16]"),
        ("id", "identity"),
    ]
    for wrong in ("bucket(id)", "day(3, timestamp)", "nowhere"):
        with pytest.raises(ConfigError):
            transforms([wrong], schema)


@pytest.mark.parametrize(
    "text",
    ["a bigint, b decimal(10,2)", "a array<struct<b:string,c:map<string,int>>>", "`odd name` timestamp"],
)
def test_declared_types_are_those_that_are_written_down(text: str) -> None:
    found = fields_of(text)
    again = ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in found)
    assert fields_of(again) == found


@pytest.mark.parametrize(
    "text", ["", "a", "a bigint b", "a nothing", "a array<int", "a int, A int", "a decimal(99)"]
)
def test_declared_types_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError):
        fields_of(text)


def test_types_have_a_deepest_place() -> None:
    with pytest.raises(ConfigError, match="more than 16 deep"):
        fields_of("a " + "array<" * 5000 + "int" + ">" * 5000)
