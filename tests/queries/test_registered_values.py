"""Values of a schema registry are columns of data sets and of SQL; what does not decode says why."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock import Producer, read_topic, scan_polars, sql, topic_dataset
from penstock.errors import ConfigError
from penstock.queries.columns.registered_values import RegisteredFields
from penstock.registry import (
    AvroSerializer,
    DeadLetters,
    JSONSerializer,
    Registry,
    RegistryClient,
    Schema,
)

NewTopic = Callable[..., str]


def record(*fields: Any) -> str:
    made = [
        {"name": each[0], "type": each[1], **({"default": each[2]} if each[2:] else {})} for each in fields
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


OLD = record(("id", "long"), ("offset", "string"))
NEW = record(("id", "long"), ("offset", "string"), ("city", "string", "Ulm"))
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; string city = 2; }'
JSON_SCHEMA = json.dumps(
    {
        "type": "object",
        "title": "Order",
        "properties": {"id": {"type": "integer"}, "city": {"type": "string"}},
    }
)


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture
def client(registry: Registry) -> RegistryClient:
    return registry.client()


@pytest.fixture
def orders(servers: str, new_topic: NewTopic, client: RegistryClient) -> str:
    """A topic with values of two versions, one that is no Avro, and a tombstone."""
    topic = new_topic(1)
    with Producer(servers) as producer:
        for number, schema in enumerate([OLD, NEW, NEW]):
            row: dict[str, Any] = {"id": number, "offset": f"at {number}", "city": "Bern"}
            kept = {name: row[name] for name in (each["name"] for each in json.loads(schema)["fields"])}
            producer.send(topic, AvroSerializer(client, schema).bound(topic)(kept))
        producer.send(topic, b"no Avro")
        producer.send(topic, None)
    return topic


def test_fields_of_two_versions_are_columns(servers: str, orders: str, registry: Registry) -> None:
    found = topic_dataset(orders, servers, value_format="avro", registry=registry.url, text=True)
    assert found.schema.names[-4:] == ["id", "value_offset", "city", "value_error"]
    rows = found.to_table(columns=["id", "value_offset", "city", "value_error"]).to_pylist()
    assert [list(row.values())[:3] for row in rows] == [
        [0, "at 0", "Ulm"],
        [1, "at 1", "Bern"],
        [2, "at 2", "Bern"],
        [None, None, None],
        [None, None, None],
    ]
    assert [row["value_error"] is None for row in rows] == [True, True, True, False, True]
    assert found.to_table(columns=["offset"], filter=pc.field("id") == 2).to_pydict() == {"offset": [2]}


def test_sql_finds_out_which_topics_have_a_schema(
    servers: str, orders: str, new_topic: NewTopic, registry: Registry
) -> None:
    plain = new_topic(1)
    with Producer(servers) as producer:
        producer.send(plain, b'{"id": 2, "owner": "ada"}')
    found = sql(
        f'select a.city, b.owner from "{orders}" a join "{plain}" b using (id)',
        servers,
        registry=registry.url,
    )
    assert found.to_pylist() == [{"city": "Bern", "owner": "ada"}]
    failed = sql(
        f'select "offset" from "{orders}" where value_error is not null', servers, registry=registry.url
    )
    assert failed.to_pylist() == [{"offset": 3}]


def test_polars_reads_the_same(servers: str, orders: str, registry: Registry) -> None:
    import polars as pl

    frame = scan_polars(orders, servers, value_format="avro", registry=registry.url)
    assert frame.filter(pl.col("city") == "Bern").select("id").collect()["id"].to_list() == [1, 2]


@pytest.mark.parametrize("kind", ["protobuf", "json"])
def test_other_formats(servers: str, new_topic: NewTopic, client: RegistryClient, kind: str) -> None:
    topic = new_topic(1)
    row = {"id": 7, "city": "Bern"}
    if kind == "json":
        value = JSONSerializer(JSON_SCHEMA, client).bound(topic)(row)
    else:
        number = client.register(f"{topic}-value", Schema(PROTO, "PROTOBUF"))
        value = b"\0" + number.to_bytes(4, "big") + b"\0" + b"\x08\x07\x12\x04Bern"
    with Producer(servers) as producer:
        producer.send(topic, value)
    found = topic_dataset(topic, servers, value_format=kind, registry=client)
    assert found.to_table(columns=["id", "city"]).to_pylist() == [row]


def test_values_that_are_no_records_have_one_column(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with Producer(servers) as producer:
        producer.send(topic, b"\x06abc")
    found = topic_dataset(topic, servers, value_format="avro", schema='"string"')
    assert found.to_table(columns=["value_decoded"]).to_pylist() == [{"value_decoded": "abc"}]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"value_format": "avro"}, "need registry=, or schema="),
        ({"value_format": "text", "schema": '"int"'}, "registry and schema are for"),
        ({"value_format": "avro", "registry": "URL"}, "the registry has no subject 'nothing-value'"),
    ],
)
def test_what_is_missing_is_said(
    servers: str, registry: Registry, options: dict[str, Any], words: str
) -> None:
    if "registry" in options:
        options = options | {"registry": registry.url}
    with pytest.raises(ConfigError, match=words):
        topic_dataset("nothing", servers, **options)


def test_it_goes_to_other_processes() -> None:
    made = RegisteredFields("avro", None, Schema(NEW), is_text=False)
    assert pickle.loads(pickle.dumps(made)).schema == made.schema


VERSIONS = [
    record(("id", "long"), ("offset", "string")),
    record(("id", "long"), ("offset", "string"), ("city", ["null", "string"], None)),
    record(
        ("id", "double"),
        ("offset", "string"),
        ("city", ["null", "string"], None),
        ("tags", {"type": "array", "items": "int"}, []),
    ),
]


def inside(dice: random.Random) -> str:
    """A condition on the fields of values."""
    compare = dice.choice(["=", "<", ">=", "<>"])
    return dice.choice(
        [
            f"id {compare} {dice.randrange(-5, 400)}",
            f"city {compare} '{dice.choice(['Bern', 'Ulm', ''])}'",
            f"city is {dice.choice(['', 'not '])}null",
            f"len(tags) {compare} {dice.randrange(3)}",
            f"value_offset like '%{dice.randrange(10)}'",
            "value_error is not null",
        ]
    )


@pytest.mark.parametrize("seed", range(5))
def test_generated_questions_to_values_of_several_versions(
    servers: str, new_topic: NewTopic, registry: Registry, client: RegistryClient, seed: int
) -> None:
    """Answers are those over a full copy that other code has decoded."""
    dice, topic = random.Random(seed), new_topic(2)
    with Producer(servers) as producer:
        for number in range(300):
            schema = VERSIONS[number // 100]
            row: dict[str, Any] = {
                "id": number,
                "offset": f"at {number}",
                "city": dice.choice(["Bern", "Ulm", None]),
                "tags": [1] * dice.randrange(3),
            }
            kept = {each["name"]: row[each["name"]] for each in json.loads(schema)["fields"]}
            value = AvroSerializer(client, schema).bound(topic)(kept)
            producer.send(topic, dice.choice([value] * 8 + [b"no Avro", None]), partition=number % 2)
    dead = DeadLetters()
    copy = read_topic(topic, servers, value="avro", registry=registry.url, dead_letters=dead)
    names = [name for name in copy.schema.names if name not in ("value", "headers")]
    fields = copy["value"].combine_chunks()
    columns = dict(zip(fields.type.names, fields.flatten(), strict=True))
    whole = copy.select(names).append_column("value_offset", columns.pop("offset"))
    for name, column in columns.items():
        whole = whole.append_column(name, column)
    lost = dead.table.select(["topic", "partition", "offset"]).append_column(
        "value_error", dead.table["reason"]
    )
    whole = pa.concat_tables([whole, lost], promote_options="default")
    dataset = topic_dataset(topic, servers, value_format="avro", registry=registry.url)
    with duckdb.connect() as connection:
        connection.register("t", dataset)
        connection.register("copy", whole)
        for _ in range(40):
            place = dice.choice(
                ["true", f'"offset" < {dice.randrange(160)}', f"partition = {dice.randrange(3)}"]
            )
            where = f"({inside(dice)} {dice.choice(['and', 'or'])} {inside(dice)}) and {place}"
            what = 'partition, "offset", id, city, tags, value_offset'
            query = f"select {what} from TABLE where {where} order by 1, 2"
            found, expected = (
                connection.sql(query.replace("TABLE", name)).fetchall() for name in ("t", "copy")
            )
            assert found == expected, (seed, query)
