"""Tests of values with registry schemas as columns of data sets and SQL tables.

For a value that cannot be decoded, a column has the reason.
"""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow.compute as pc
import pytest

from penstock import Producer, scan_polars, sql, topic_dataset
from penstock.errors import ConfigError
from penstock.queries.columns.registered_values import RegisteredFields
from penstock.registry import (
    AvroSerializer,
    JSONSerializer,
    Registry,
    RegistryClient,
    Schema,
)
from versioned_values import decoded_copy, fill, inside, record

NewTopic = Callable[..., str]


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
    """Write values of two schema versions, bytes that are no Avro, and a tombstone to a new topic."""
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


@pytest.mark.parametrize("seed", range(5))
def test_generated_questions_to_values_of_several_versions(
    servers: str, new_topic: NewTopic, registry: Registry, client: RegistryClient, seed: int
) -> None:
    """The expected answers come from a full copy that other code has decoded."""
    dice, topic = random.Random(seed), new_topic(2)
    fill(topic, servers, client, dice)
    whole = decoded_copy(topic, servers, registry)
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


def expression(dice: random.Random) -> Any:
    """Return a random Polars condition on fields of values and on partitions or offsets."""
    import polars as pl

    made = dice.choice(
        [
            pl.col("id") < dice.randrange(-5, 400),
            pl.col("id") == dice.randrange(400),
            pl.col("city") == dice.choice(["Bern", "Ulm", ""]),
            pl.col("city").is_null(),
            pl.col("tags").list.len() >= dice.randrange(3),
            pl.col("value_offset").str.contains(str(dice.randrange(10)), literal=True),
            pl.col("value_error").is_not_null(),
            pl.col("offset") < dice.randrange(160),
            pl.col("partition") == dice.randrange(3),
        ]
    )
    if dice.random() < 0.6:
        return made & expression(dice) if dice.random() < 0.5 else made | expression(dice)
    return made


@pytest.mark.parametrize("seed", range(5))
def test_generated_questions_of_polars_to_values_of_several_versions(
    servers: str, new_topic: NewTopic, registry: Registry, client: RegistryClient, seed: int
) -> None:
    import polars as pl

    dice, topic = random.Random(seed), new_topic(2)
    fill(topic, servers, client, dice)
    names = ["partition", "offset", "id", "city", "tags", "value_offset"]
    copy = pl.DataFrame(decoded_copy(topic, servers, registry)).lazy()
    frame = scan_polars(topic, servers, value_format="avro", registry=registry.url)
    for _ in range(40):
        asked = expression(dice)
        found, expected = (
            each.filter(asked).select(names).sort("partition", "offset").collect() for each in (frame, copy)
        )
        assert found.to_dicts() == expected.to_dicts(), (seed, str(asked))
