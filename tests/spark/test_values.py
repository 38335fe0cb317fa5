"""Tests of keys and values with schemas in Spark: batch queries, streams, new schema versions and sinks.

Functions for single columns are tested as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Producer, read_topic
from penstock.errors import ConfigError
from penstock.registry import AvroSerializer, DeadLetters, Registry, RegistryClient
from penstock.spark import follow, from_schema, land, reason, to_schema
from penstock.tables import landed_dataset

pytestmark = pytest.mark.spark

NewTopic = Callable[..., str]


def record(*fields: Any) -> str:
    made = [
        {"name": each[0], "type": each[1], **({"default": each[2]} if each[2:] else {})} for each in fields
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


OLD = record(("id", "long"), ("offset", "string"))
NEW = record(("id", "long"), ("offset", "string"), ("tags", {"type": "array", "items": "string"}, ["new"]))


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture
def client(registry: Registry) -> RegistryClient:
    return registry.client()


def send(brokers: str, client: RegistryClient, topic: str, schema: str, *rows: Any) -> None:
    write = AvroSerializer(client, schema).bound(topic)
    with Producer(brokers) as producer:
        for row in rows:
            producer.send(topic, row if isinstance(row, bytes) or row is None else write(row), partition=0)


def options(brokers: str, registry: Registry, topic: str, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": brokers,
        "subscribe": topic,
        "value.format": "avro",
        "schema.registry.url": registry.url,
        **{name.replace("__", "."): each for name, each in more.items()},
    }


def test_a_topic_of_two_versions_is_a_table(
    spark: Any, brokers: str, new_topic: NewTopic, registry: Registry, client: RegistryClient
) -> None:
    topic = new_topic(partitions=1)
    send(brokers, client, topic, OLD, {"id": 1, "offset": "x"})
    send(brokers, client, topic, NEW, {"id": 2, "offset": "y", "tags": ["a", "b"]}, b"no Avro", None)
    frame = spark.read.format("penstock").options(**options(brokers, registry, topic)).load()
    assert frame.columns[-4:] == ["id", "value_offset", "tags", "value_error"]
    rows = frame.orderBy("offset").collect()
    assert [(row.id, row.value_offset, row.tags) for row in rows] == [
        (1, "x", ["new"]),
        (2, "y", ["a", "b"]),
        (None, None, None),
        (None, None, None),
    ]
    dead = frame.where("value_error is not null").collect()
    assert [(row.partition, row.offset, bytes(row.value)) for row in dead] == [(0, 2, b"no Avro")]
    strict = spark.read.format("penstock").options(**options(brokers, registry, topic, value__invalid="fail"))
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark has many
        strict.load().collect()
    assert f"{topic}-0 at offset 2: the value does not decode" in reason(caught.value)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        spark.read.format("penstock").options(**options(brokers, registry, "nothing")).load()
    assert "the registry has no subject 'nothing-value'" in reason(caught.value)


def test_a_stream_goes_on_or_ends_where_a_version_is_new(
    spark: Any, brokers: str, new_topic: NewTopic, registry: Registry, client: RegistryClient, tmp_path: Path
) -> None:
    topic = new_topic(partitions=1)
    send(brokers, client, topic, OLD, {"id": 1, "offset": "x"})

    files = str(tmp_path / "files")

    def started(sink: str, **more: str) -> Any:
        given = options(brokers, registry, topic, startingOffsets="earliest", **more)
        frame = spark.readStream.format("penstock").options(**given).load()
        stream = frame.writeStream.format(sink).queryName(sink).outputMode("append")
        place = {"path": files} if sink == "parquet" else {}
        return stream.options(checkpointLocation=str(tmp_path / sink), **place).start()

    resolving = started("memory")
    try:
        resolving.processAllAvailable()
        failing = started("parquet", value__newVersion="fail")
        failing.processAllAvailable()
        send(brokers, client, topic, NEW, {"id": 2, "offset": "y", "tags": ["a"]})
        resolving.processAllAvailable()
        found = spark.sql("select * from memory order by offset").collect()
        assert [row.id for row in found] == [1, 2]
        assert "tags" not in found[0]
        with pytest.raises(Exception) as caught:  # noqa: PT011
            failing.processAllAvailable()
        assert "a record has version 2 of subject" in reason(caught.value)
    finally:
        resolving.stop()
    # Started again, it has the columns of the newest version, and misses nothing.
    again = started("parquet", value__newVersion="fail")
    try:
        again.processAllAvailable()
    finally:
        again.stop()
    table = spark.read.option("mergeSchema", "true").parquet(files).select("id", "tags").orderBy("id")
    assert table.collect() == [(1, None), (2, ["a"])]


def test_functions_on_columns(
    spark: Any, brokers: str, new_topic: NewTopic, registry: Registry, client: RegistryClient
) -> None:
    topic, other = new_topic(partitions=1), new_topic(partitions=1)
    send(brokers, client, topic, NEW, {"id": 2, "offset": "y", "tags": ["a", "b"]}, None)
    plain = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "includeHeaders": "true"}
    frame = spark.read.format("penstock").options(**plain).load()
    subject = f"{topic}-value"
    value = from_schema("value", "avro", registry.url, subject=subject, headers="headers")
    rows = frame.select(value.alias("order")).select("order.*").collect()
    assert rows == [(2, "y", ["a", "b"]), (None, None, None)]

    written = frame.select(to_schema(value, "avro", registry.url, topic=other).alias("value"))
    sink = {"kafka.bootstrap.servers": brokers, "topic": other}
    written.write.format("penstock").options(**sink).mode("append").save()
    table = read_topic(other, brokers, value="avro", registry=registry.url)
    assert table["value"].to_pylist() == [{"id": 2, "offset": "y", "tags": ["a", "b"]}, None]

    given = plain | {"startingOffsets": "earliest"}
    stream = spark.readStream.format("penstock").options(**given).load().select(value.alias("order"))
    query = stream.writeStream.format("memory").queryName("decoded").trigger(availableNow=True).start()
    query.awaitTermination()
    assert spark.sql("select order.id from decoded").collect() == [(2,), (None,)]

    send(brokers, client, topic, NEW, b"no Avro")
    frame = spark.read.format("penstock").options(**plain).load()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        frame.select(value).collect()
    assert "1 of 3 rows do not decode" in reason(caught.value)
    kept = from_schema("value", "avro", registry.url, subject=subject, invalid="keep").alias("v")
    rows = frame.select(kept).select("v.value.id", "v.error").collect()
    assert [row.id for row in rows] == [2, None, None]
    assert [row.error is None for row in rows] == [True, True, False]

    texts = spark.createDataFrame([(bytearray(b"[1, 2]"),)], ["data"])
    listed = from_schema("data", "json", schema='{"type": "array", "items": {"type": "integer"}}')
    assert texts.select(listed).collect() == [([1, 2],)]


def test_functions_say_what_is_wrong(spark: Any, registry: Registry) -> None:
    for call, words in (
        (lambda: from_schema("v", "avro", registry.url), "one of the two: subject= or schema="),
        (lambda: from_schema("v", "arvo", schema='"int"'), "the format is 'arvo'"),
        (lambda: from_schema("v", "avro", subject="x"), "subject= needs registry="),
        (lambda: from_schema("v", "avro", {"ulr": "x"}, subject="x"), "did you mean 'url'"),
        (lambda: from_schema("v", "avro", registry.url, subject="x"), "no subject 'x'"),
        (lambda: to_schema("v", "thrift", registry.url, topic="t"), "'avro', 'json' or 'protobuf'"),
        (lambda: to_schema("v", "avro", registry.client(), topic="t"), "which go to the workers"),
    ):
        with pytest.raises(ConfigError, match=words):
            call()


def test_rows_become_records_with_a_schema(
    spark: Any, brokers: str, new_topic: NewTopic, registry: Registry, client: RegistryClient, tmp_path: Path
) -> None:
    source, target = new_topic(partitions=1), new_topic(partitions=1)
    send(brokers, client, source, OLD, *({"id": n, "offset": str(n)} for n in range(5)), b"no Avro")
    given = options(brokers, registry, source, startingOffsets="earliest")
    frame = spark.readStream.format("penstock").options(**given).load().where("value_error is null")
    rows = frame.selectExpr("struct(id, id * 2 as twice) as value", "id as key")
    sink = {
        "kafka.bootstrap.servers": brokers,
        "topic": target,
        "value.format": "avro",
        "key.format": "json",
        "schema.registry.url": registry.url,
        "exactlyOnce": "true",
        "checkpointLocation": str(tmp_path / "state"),
    }
    query = rows.writeStream.format("penstock").options(**sink).trigger(availableNow=True).start()
    query.awaitTermination()
    dead = DeadLetters()
    table = read_topic(
        target, brokers, value="avro", key_format="json", registry=registry.url, dead_letters=dead
    )
    assert table["value"].to_pylist() == [{"id": n, "twice": 2 * n} for n in range(5)]
    assert table["key"].to_pylist() == [0, 1, 2, 3, 4]
    assert not len(dead)
    # A row that does not fit a schema that is there already ends the query, and is not written.
    bad = spark.sql("select struct('x' as id, 1L as twice) as value")
    for name in ("exactlyOnce", "checkpointLocation", "key.format"):
        del sink[name]
    with pytest.raises(Exception) as caught:  # noqa: PT011
        bad.write.format("penstock").options(**sink).mode("append").save()
    assert "the schema registry answers 409" in reason(caught.value)


def test_a_stream_is_landed_once_in_the_columns_of_its_table(
    spark: Any, brokers: str, new_topic: NewTopic, registry: Registry, client: RegistryClient, tmp_path: Path
) -> None:
    topic, path, checkpoint = new_topic(partitions=1), tmp_path / "lake", tmp_path / "state"
    send(brokers, client, topic, OLD, {"id": 1, "offset": "x"}, b"no Avro")

    def landed() -> list[Any]:
        reader = spark.readStream.options(**options(brokers, registry, topic, startingOffsets="earliest"))
        query = land(reader, path).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        follow(query.start(), lambda progress: None)
        return landed_dataset(path).to_table().sort_by("offset")["id"].to_pylist()

    assert landed() == [1, None]
    send(brokers, client, topic, NEW, {"id": 2, "offset": "y", "tags": ["a"]})
    assert landed() == [1, None, 2]
    # As after a crash between the sink's commit and Spark's: the last batch runs again.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    for file in (last, last.with_name(f".{last.name}.crc")):
        file.unlink(missing_ok=True)
    assert landed() == [1, None, 2]
