"""Tests of encoding and decoding keys and values with schemas in Spark tasks, without Spark."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from for_each import for_each
from penstock.errors import ConfigError, DecodeError, NetworkError
from penstock.registry import AvroSerializer, Registry, RegistryClient, Schema, SerializationContext
from penstock.registry.client import RegistryError
from penstock.spark import PenstockDataSource, registries
from penstock.spark.source.options import read_options, value_options, write_options
from penstock.spark.source.reader import projection_of, value_columns
from penstock.spark.source.schema import schema_for
from penstock.spark.source.writer import SinkColumns
from penstock.spark.value_options import ValueOptions
from penstock.spark.value_types import as_spark, spark_type
from penstock.v07 import Broker07, Driver07

HERE = {"kafka.bootstrap.servers": "localhost:9092"}
READ = {**HERE, "subscribe": "orders"}


def record(*fields: Any, name: str = "Order") -> str:
    made = [
        {"name": each[0], "type": each[1], **({"default": each[2]} if each[2:] else {})} for each in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": made})


OLD = record(("id", "long"), ("offset", "string"))
NEW = record(("id", "long"), ("offset", "string"), ("city", "string", "Ulm"))
NEWER = record(("id", "long"), ("offset", "string"), ("city", "string", "Ulm"), ("size", "int", 1))
PROTO = 'syntax = "proto3"; message Order { uint64 id = 1; string city = 2; }'


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture
def client(registry: Registry) -> RegistryClient:
    return registry.client()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"orders-{request.node.nodeid.rpartition('::')[2]}"


def fetched(values: list[bytes | None], keys: list[bytes | None] | None = None) -> pa.RecordBatch:
    """Return a record batch as the client fetches it, with all columns."""
    count = len(values)
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.record_batch(
        {
            "key": pa.array(keys or [None] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(["orders"] * count, pa.string()),
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(40, 40 + count), pa.int64()),
            "timestamp": pa.array(range(count), pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * count, pa.int32()),
            "headers": pa.array([[]] * count, pa.list_(pa.field("element", header))),
        }
    )


def decoded(
    options: dict[str, str], batch: pa.RecordBatch, wanted: StructType | None = None
) -> list[dict[str, Any]]:
    """Return the rows that a task decodes from a batch.

    The decoder is pickled and unpickled, as for another process.
    """
    schema = wanted or schema_for(False, None, value_columns(value_options(options)))
    projection = projection_of(schema, read_options(options, streaming=False))
    projection = pickle.loads(pickle.dumps(projection))
    batches = list(projection.batches(batch.select(list(projection.fetched))))
    return [row for each in batches for row in each.to_pylist()]


def registered(registry: Registry, topic: str, **options: str) -> dict[str, str]:
    named = {name.replace("__", "."): each for name, each in options.items()}
    return {**HERE, "subscribe": topic, "value.format": "avro", "schema.registry.url": registry.url, **named}


def test_fields_are_columns_and_other_rows_have_a_reason(
    registry: Registry, client: RegistryClient, topic: str
) -> None:
    old, new = (AvroSerializer(client, text).bound(topic) for text in (OLD, NEW))
    values = [
        old({"id": 1, "offset": "x"}),
        new({"id": 2, "offset": "y", "city": "Bern"}),
        b"no Avro",
        None,
        new({"id": 3, "offset": "z", "city": "Bern"})[:-2],
    ]
    rows = decoded(registered(registry, topic), fetched(values))
    names = ["id", "value_offset", "city", "value_error"]
    assert list(rows[0])[-4:] == names
    assert [[row[name] for name in names[:3]] for row in rows] == [
        [1, "x", "Ulm"],
        [2, "y", "Bern"],
        [None, None, None],
        [None, None, None],
        [None, None, None],
    ]
    assert [row["value_error"] is None for row in rows] == [True, True, False, True, False]
    assert [row["value"] for row in rows] == [None, None, values[2], None, values[4]]
    assert [row["offset"] for row in rows] == [40, 41, 42, 43, 44]

    every = decoded(registered(registry, topic, value__raw="all"), fetched(values))
    assert [row["value"] for row in every] == values
    kept = decoded(registered(registry, topic, value__invalid="drop"), fetched(values))
    assert [row["offset"] for row in kept] == [40, 41, 43]
    with pytest.raises(
        DecodeError, match=r"orders-3 at offset 42: the value does not decode: .*value.invalid"
    ):
        decoded(registered(registry, topic, value__invalid="fail"), fetched(values))


def test_a_schema_names_the_columns_and_decides_what_is_fetched(
    registry: Registry, client: RegistryClient, topic: str
) -> None:
    value = AvroSerializer(client, NEW).bound(topic)({"id": 2, "offset": "y", "city": "Bern"})
    options = registered(registry, topic)
    wanted = StructType([StructField("city", StringType()), StructField("offset", LongType())])
    assert decoded(options, fetched([value]), wanted) == [{"city": "Bern", "offset": 40}]
    projection = projection_of(wanted, read_options(options, streaming=False))
    assert projection.fetched == ("value", "offset", "headers")
    places = projection_of(StructType([wanted[1]]), read_options(options, streaming=False))
    assert places.fetched == ("offset",)
    wrong = StructType([StructField("city", LongType())])
    with pytest.raises(ConfigError, match=r"column 'city' cannot be read as bigint; it is string"):
        decoded(options, fetched([value]), wrong)


def test_a_data_frame_keeps_the_version_that_it_has_the_columns_of(
    registry: Registry, client: RegistryClient, topic: str
) -> None:
    client.register(f"{topic}-value", Schema(NEW))
    options = registered(registry, topic)
    before = schema_for(False, None, value_columns(value_options(options)))
    newer = AvroSerializer(client, NEWER).bound(topic)({"id": 1, "offset": "x", "city": "Bern", "size": 9})
    assert "size" not in decoded(options, fetched([newer]), before)[0]
    assert decoded(options, fetched([newer]))[0]["size"] == 9
    assert "size" not in decoded(registered(registry, topic, value__version="1"), fetched([newer]))[0]

    strict = registered(registry, topic, value__newVersion="fail")
    with pytest.raises(DecodeError, match=r"a record has version 2 of subject .*: start the query again"):
        decoded(strict, fetched([newer]), before)
    older = AvroSerializer(client, NEW).bound(topic)({"id": 1, "offset": "x", "city": "Bern"})
    assert decoded(strict, fetched([newer, older]))[1]["size"] == 1


def test_a_process_asks_once_for_each_schema(
    registry: Registry, client: RegistryClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (AvroSerializer(client, text).bound(topic) for text in (OLD, NEW))
    values = [
        old({"id": 1, "offset": "x"}),
        new({"id": 2, "offset": "y", "city": "Bern"}),
        b"\0\0\0\x99\x99a",
    ]
    options = registered(registry, topic)
    schema = schema_for(False, None, value_columns(value_options(options)))
    tasks = [pickle.dumps(projection_of(schema, read_options(options, streaming=True))) for _ in range(3)]
    monkeypatch.setattr(registries, "_clients", {})
    monkeypatch.setattr("penstock.spark.value_columns._decoders", {})
    asked: list[str] = []
    get = RegistryClient._ask

    def ask(self: RegistryClient, method: str, path: str, *rest: Any) -> Any:
        asked.append(path)
        return get(self, method, path, *rest)

    monkeypatch.setattr(RegistryClient, "_ask", ask)
    for task in tasks:
        list(pickle.loads(task).batches(fetched(values)))
    assert sorted(asked) == sorted(set(asked))
    assert len(asked) == 3


def test_keys_have_columns_of_their_own(registry: Registry, client: RegistryClient, topic: str) -> None:
    value = AvroSerializer(client, OLD).bound(topic)({"id": 1, "offset": "x"})
    plain = AvroSerializer(client, '"string"').bound(topic, "key")("a")
    options = registered(registry, topic, key__format="avro")
    found = decoded(options, fetched([value, value], [plain, b"?"]))
    assert [row["key_decoded"] for row in found] == ["a", None]
    assert [row["key"] for row in found] == [None, b"?"]
    assert [row["key_error"] is None for row in found] == [True, False]

    text = record(("id", "long"), ("error", "string"), name="Key")
    bound = AvroSerializer(client, text)
    key = bound({"id": 7, "error": "none"}, SerializationContext(f"{topic}-2", "key"))
    AvroSerializer(client, OLD)({"id": 1, "offset": "x"}, SerializationContext(f"{topic}-2"))
    row = decoded(registered(registry, f"{topic}-2", key__format="avro"), fetched([value], [key]))[0]
    assert (row["key_id"], row["id"], row["key_error"]) == (7, 1, None)
    assert "none" in row.values()


def test_without_a_registry_the_text_is_the_writers_schema() -> None:
    options = {**READ, "value.format": "json", "value.schema": '{"type": "integer"}'}
    assert [row["value_decoded"] for row in decoded(options, fetched([b"1", b"2"]))] == [1, 2]
    options = {**READ, "value.format": "protobuf", "value.schema": PROTO, "value.message": "Order"}
    row = decoded(options, fetched([b"\x08\x07\x12\x04Bern"]))[0]
    assert (row["id"], row["city"]) == (7, "Bern")


def test_types_of_random_schemas_have_a_place_in_spark() -> None:
    dice = random.Random(1)
    plain = [
        pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(),
        pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.binary(3), pa.date32(),
        pa.time32("ms"), pa.time64("us"), pa.timestamp("ms", tz="UTC"), pa.timestamp("us"),
        pa.timestamp("ns", tz="UTC"), pa.decimal128(7, 2), pa.null(),
    ]  # fmt: skip

    def some(depth: int) -> pa.DataType:
        kind = dice.randrange(6) if depth < 3 else 0
        if kind == 3:
            return pa.list_(some(depth + 1))
        if kind == 4:
            return pa.map_(pa.string(), some(depth + 1))
        if kind == 5:
            return pa.struct([pa.field(f"f{n}", some(depth + 1)) for n in range(3)])
        return dice.choice(plain)

    from penstock.spark.runtime.releases import arrow_schema_of

    for _ in range(200):
        kind = some(0)
        wanted = arrow_schema_of(StructType([StructField("c", spark_type(kind))])).field(0).type
        made, bad = as_spark(pa.nulls(2, kind), wanted)
        assert made.type == wanted
        assert made.null_count == 2
        assert not len(bad)


def test_times_beyond_sparks_are_rows_that_do_not_decode(
    registry: Registry, client: RegistryClient, topic: str
) -> None:
    text = record(("at", {"type": "long", "logicalType": "timestamp-millis"}))
    write = AvroSerializer(client, text).bound(topic)
    values = [write({"at": at}) for at in (1_000, 1 << 62, 2_000, -(1 << 60))]
    rows = decoded(registered(registry, topic), fetched(values))
    assert [None if row["at"] is None else row["at"].timestamp() for row in rows] == [1, None, 2, None]
    assert [row["value_error"] is None for row in rows] == [True, False, True, False]
    assert "field at has a value that Spark's timestamp" in rows[1]["value_error"]
    assert rows[1]["value"] == values[1]


REFUSALS = {
    "a part without the format": ({"value.invalid": "keep"}, "value.invalid needs the option value.format"),
    "a registry for nothing": ({"schema.registry.url": "http://h"}, "needs value.format or key.format"),
    "no schema": ({"value.format": "avro"}, "value.format needs schema.registry.url, or value.schema"),
    "two schemas": (
        {"value.format": "avro", "value.schema": "x", "value.subject": "y"},
        "value.schema and value.subject contradict",
    ),
    "several topics": (
        {"subscribe": "a,b", "value.format": "avro", "schema.registry.url": "http://h"},
        "more than one topic needs value.subject",
    ),
    "events": (
        {"value.format": "json", "value.schema": "true", "cloudevents": "columns"},
        "value.format and cloudevents contradict",
    ),
    "a message of Avro": (
        {"value.format": "avro", "value.schema": "x", "value.message": "M"},
        "only with value.format = protobuf",
    ),
    "no versions": (
        {"value.format": "avro", "value.schema": "x", "value.newVersion": "fail"},
        "newVersion = fail needs value.subject",
    ),
    "a misspelt setting": (
        {"value.format": "avro", "schema.registry.ssl.ca.lokation": "x"},
        "did you mean 'schema.registry.ssl.ca.location'",
    ),
    "no URL": ({"value.format": "avro", "schema.registry.timeout": "3"}, "needs schema.registry.url"),
    "for writing": ({"value.use.latest.version": "true"}, "is an option for writing"),
    "a misspelt format": ({"value.format": "arvo"}, "value.format is one of bytes, avro, json, protobuf"),
    "a misspelt name": ({"value.fromat": "avro"}, "did you mean 'value.format'"),
}


@for_each(REFUSALS)
def test_contradictions_are_said(case: str) -> None:
    options, words = REFUSALS[case]
    with pytest.raises(ConfigError, match=words):
        value_options({**READ, **options})
    with pytest.raises(ConfigError, match=words):
        read_options({**READ, **options}, streaming=True)


def test_names_arrive_in_lower_case_and_secrets_stay_hidden() -> None:
    options = value_options(
        {
            **READ,
            "value.format": "AVRO",
            "value.newversion": "fail",
            "schema.registry.url": "http://h:1",
            "schema.registry.basic.auth.user.info": "ada:lovelace",
        }
    )
    assert isinstance(options, ValueOptions)
    assert (options.fields[0].new_version, options.fields[0].subject) == ("fail", "orders-value")
    assert "lovelace" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options


def test_a_subject_that_is_not_there(registry: Registry, client: RegistryClient, topic: str) -> None:
    with pytest.raises(ConfigError, match=f"no subject '{topic}-value'"):
        value_columns(value_options(registered(registry, topic)))
    client.register(f"{topic}-value", Schema(PROTO, "PROTOBUF"))
    with pytest.raises(ConfigError, match=r"is of type PROTOBUF; value.format is 'avro'"):
        value_columns(value_options(registered(registry, topic)))


ROWS = StructType(
    [
        StructField("value", StructType([StructField("id", LongType()), StructField("tags", StringType())])),
        StructField("key", LongType()),
        StructField("topic", StringType()),
    ]
)


def rows_of(topic: str) -> pa.RecordBatch:
    kind = pa.struct([("id", pa.int64()), ("tags", pa.string())])
    return pa.record_batch(
        {
            "value": pa.array([{"id": 1, "tags": "a"}, None, {"id": 2, "tags": None}], kind),
            "key": pa.array([7, 8, None], pa.int64()),
            "topic": pa.array([topic, f"{topic}-2", topic], pa.string()),
        }
    )


def sink(registry: Registry, **options: str) -> dict[str, str]:
    named = {name.replace("__", "."): each for name, each in options.items()}
    return {**HERE, "value.format": "avro", "schema.registry.url": registry.url, **named}


def test_rows_are_written_by_the_schema_of_their_topic(
    registry: Registry, client: RegistryClient, topic: str
) -> None:
    options = write_options(sink(registry, key__format="json"))
    columns = pickle.loads(pickle.dumps(SinkColumns(ROWS, options)))
    found = dict(columns.by_topic(rows_of(topic)))
    assert found[topic].column("value").null_count == 0
    assert found[f"{topic}-2"].column("value").to_pylist() == [None]
    assert client.version(f"{topic}-value").schema.type == "AVRO"
    assert client.version(f"{topic}-2-key").schema.type == "JSON"
    read = registered(registry, topic, key__format="json")
    back = decoded(read, fetched(found[topic]["value"].to_pylist(), found[topic]["key"].to_pylist()))
    assert [(row["id"], row["tags"], row["key_decoded"]) for row in back] == [(1, "a", 7), (2, None, None)]


def test_the_sink_takes_settings_of_serializers(
    registry: Registry, client: RegistryClient, topic: str
) -> None:
    settings = {"value__use.latest.version": "true", "value__auto.register.schemas": "false"}
    options, values = write_options(sink(registry, topic=topic, **settings)), StructType([ROWS[0]])
    assert dict(options.values[0].settings) == {"use.latest.version": True, "auto.register.schemas": False}
    with pytest.raises(RegistryError, match="40401"):
        list(SinkColumns(values, options).by_topic(rows_of(topic)))
    text = record(("id", ["null", "long"], None), ("tags", ["null", "string"], None))
    number = client.register(f"{topic}-value", Schema(text))
    ((_, found),) = SinkColumns(values, options).by_topic(rows_of(topic))
    assert found.column("value")[0].as_py()[:5] == b"\0" + number.to_bytes(4, "big")


def test_rows_are_written_as_protobuf(registry: Registry, client: RegistryClient, topic: str) -> None:
    options = write_options(sink(registry, topic=topic, value__format="protobuf"))
    columns = pickle.loads(pickle.dumps(SinkColumns(StructType([ROWS[0]]), options)))
    ((_, found),) = columns.by_topic(rows_of(topic).select(["value"]))
    assert client.version(f"{topic}-value").schema.type == "PROTOBUF"
    data = found["value"].to_pylist()
    assert data[1] is None
    assert [one[5:] for one in data if one is not None] == [b"\0\x08\x01\x12\x01a", b"\0\x08\x02"]
    back = decoded(registered(registry, topic, value__format="protobuf"), fetched(data))
    assert [(row["id"], row["tags"]) for row in back] == [(1, "a"), (None, None), (2, None)]


def test_a_message_of_a_schema_is_named(registry: Registry, topic: str) -> None:
    text = 'syntax = "proto3"; message A { int32 n = 1; } message B { int64 id = 2; string tags = 1; }'
    named = {"value__schema": text, "value__message": "B", "value__format": "protobuf"}
    columns = SinkColumns(StructType([ROWS[0]]), write_options(sink(registry, topic=topic, **named)))
    ((_, found),) = columns.by_topic(rows_of(topic).select(["value"]))
    assert found["value"][0].as_py()[5:] == b"\x02\x02\x0a\x01a\x10\x01"


def test_what_the_sink_refuses(registry: Registry) -> None:
    from pyspark.sql.types import DayTimeIntervalType

    with pytest.raises(ConfigError, match=r"schema.registry.url, where the schema is registered"):
        write_options({**HERE, "value.format": "avro"})
    with pytest.raises(ConfigError, match=r"value.use.latest.version needs the option value.format"):
        write_options({**HERE, "value.use.latest.version": "true"})
    with pytest.raises(ConfigError, match="one of bytes, avro, json, protobuf, not 'thrift'"):
        write_options(sink(registry, value__format="thrift"))
    with pytest.raises(ConfigError, match=r"value.message names a message of value.schema in format proto"):
        write_options(sink(registry, value__format="protobuf", value__message="M"))
    with pytest.raises(ConfigError, match=r"value.message needs the option value.format"):
        write_options({**HERE, "value.message": "M", "value.schema": PROTO})
    with pytest.raises(ConfigError, match="Protobuf has messages alone, not int64"):
        SinkColumns(ROWS, write_options(sink(registry, topic="t", key__format="protobuf")))
    with pytest.raises(ConfigError, match="rows have no column 'key'"):
        SinkColumns(StructType([ROWS[0]]), write_options(sink(registry, topic="t", key__format="avro")))
    with pytest.raises(ConfigError, match=r"or other types with value.format"):
        SinkColumns(ROWS, write_options({**HERE, "topic": "t"}))
    span = StructType([StructField("value", DayTimeIntervalType())])
    with pytest.raises(ConfigError, match="Avro has no type for duration"):
        SinkColumns(span, write_options(sink(registry, topic="t")))


def test_a_task_waits_for_a_registry_that_does_not_answer(
    registry: Registry, client: RegistryClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = AvroSerializer(client, OLD).bound(topic)({"id": 1, "offset": "x"})
    value = AvroSerializer(client, NEW).bound(topic)({"id": 1, "offset": "x", "city": "Bern"})
    options = registered(registry, topic, value__version="1")
    schema = schema_for(False, None, value_columns(value_options(options)))
    patient = read_options({**options, "maxBrokerOutage": "30s"}, streaming=True)
    monkeypatch.setattr(registries, "_clients", {})
    monkeypatch.setattr("penstock.spark.value_columns._decoders", {})
    projection = projection_of(schema, patient)
    now, get = [0.0], RegistryClient._ask
    monkeypatch.setattr(registries.time, "monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def ask(self: RegistryClient, *rest: Any) -> Any:
        if now[0] < 20:
            raise NetworkError("no schema registry answers")
        return get(self, *rest)

    monkeypatch.setattr(registries.time, "sleep", sleep)
    monkeypatch.setattr(RegistryClient, "_ask", ask)
    (batch,) = projection.batches(fetched([value]))
    assert batch.to_pylist()[0]["id"] == 1
    assert now[0] == 20

    def fail(*_: Any) -> Any:
        raise NetworkError("no schema registry answers")

    monkeypatch.setattr(RegistryClient, "_ask", fail)
    with pytest.raises(NetworkError):
        list(projection.batches(fetched([value[:1] + (999).to_bytes(4, "big") + old[5:]])))
    assert now[0] == 50


def test_what_a_registry_does_not_know_is_asked_for_again_later(
    registry: Registry, client: RegistryClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    AvroSerializer(client, OLD).bound(topic)({"id": 1, "offset": "x"})
    options = registered(registry, topic)
    now = [0.0]
    monkeypatch.setattr("penstock.spark.value_columns.time.monotonic", lambda: now[0])
    number = max(client.version(each).id for each in client.subjects()) + 1
    value = b"\0" + number.to_bytes(4, "big") + b"\x02\x02x"
    assert "is unknown to the registry" in decoded(options, fetched([value]))[0]["value_error"]
    text = OLD.replace("Order", "Late")
    client.set_compatibility("NONE")
    assert client.register(f"{topic}-late", Schema(text)) == number
    assert "is unknown to the registry" in decoded(options, fetched([value]))[0]["value_error"]
    now[0] = 61
    assert decoded(options, fetched([value]))[0]["value_error"] is None


def test_kafka_0_7_has_values_with_a_schema(
    registry: Registry, client: RegistryClient, topic: str, tmp_path: Path
) -> None:
    value = AvroSerializer(client, NEW).bound(topic)({"id": 1, "offset": "x", "city": "Bern"})
    with Broker07(tmp_path) as broker:
        with Driver07(broker.host, broker.port) as driver:
            driver.send(topic, [value, b"junk"], partition=0)
            assert driver.latest(topic, 0) > 0
        options = registered(registry, topic, protocol="0.7")
        options["kafka.bootstrap.servers"] = f"{broker.host}:{broker.port}"
        source = PenstockDataSource(options)
        reader = source.reader(source.schema())
        (task,) = reader.partitions()
        rows = [row for batch in reader.read(task) for row in batch.to_pylist()]
    assert [row["city"] for row in rows] == ["Bern", None]
    assert rows[1]["value"] == b"junk"
