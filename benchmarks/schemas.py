"""Decode schema registry values to columns and rows, with Penstock and four other libraries.

The others are confluent-kafka, fastavro, pyruhvro and protobuf. Rows have eight fields, some 40 bytes in
Avro. CPU is this process's. A registry runs in this process for libraries that need one; each requests a
schema once.
"""

from __future__ import annotations

import importlib.util
import io
import json
import warnings
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.json
from google.protobuf.message_factory import GetMessageClass

from harness import Contestant, arguments, measure, report
from penstock.registry import (
    AvroDeserializer,
    AvroSerializer,
    JSONSerializer,
    ProtobufSerializer,
    Registry,
    RegistryClient,
    SerializationContext,
    from_schema,
    to_schema,
)
from penstock.registry.protobuf.schema import message_named, parse_protobuf

FIELDS = [
    ("id", "long"),
    ("name", "string"),
    ("price", "double"),
    ("n", "int"),
    ("ok", "boolean"),
    ("city", ["null", "string"]),
    ("at", {"type": "long", "logicalType": "timestamp-micros"}),
    ("share", "float"),
]
AVRO = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in FIELDS]}
PROTO = """syntax = "proto3";
message R {
  int64 id = 1; string name = 2; double price = 3; int32 n = 4; bool ok = 5; optional string city = 6;
  int64 at = 7; float share = 8;
}"""
JSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "price": {"type": "number"},
            "n": {"type": "integer"},
            "ok": {"type": "boolean"},
            "city": {"type": "string"},
            "at": {"type": "integer"},
            "share": {"type": "number"},
        },
    }
)
COLUMNS = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("n", pa.int32()),
        ("ok", pa.bool_()),
        ("city", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("share", pa.float32()),
    ]
)
CONTEXT = SerializationContext("rows")


def row(number: int) -> dict[str, Any]:
    return {
        "id": number * 1000,
        "name": f"name-{number}",
        "price": number / 3,
        "n": number % 100,
        "ok": number % 2 == 0,
        "city": None if number % 5 == 0 else "Berlin",
        "at": 1_700_000_000_000_000 + number,
        "share": 1.5,
    }


def each(function: Callable[[Any], Any], rows: list[Any]) -> Callable[[], None]:
    def run() -> None:
        for one in rows:
            function(one)

    return run


def avro_contestants(client: RegistryClient, url: str, rows: list[dict[str, Any]]) -> list[Contestant]:
    write = AvroSerializer(client, json.dumps(AVRO))
    framed = [write(one, CONTEXT) for one in rows]
    assert all(one is not None for one in framed)
    column = pa.array(framed)
    parsed = fastavro.parse_schema(AVRO)
    bare = [one[5:] for one in framed if one is not None]
    count = len(rows)
    few = framed[: count // 20]
    columns = pa.array(rows, COLUMNS)
    found = [
        Contestant(
            "fastavro to dict",
            each(lambda data: fastavro.schemaless_reader(io.BytesIO(data), parsed, None), bare[: len(few)]),
            len(few),
        ),
        Contestant("penstock from_schema", lambda: from_schema(column, "avro", client).whole(), count),
        Contestant(
            "penstock to_schema",
            lambda: to_schema(columns, "avro", client, topic="rows", schema=json.dumps(AVRO)),
            count,
        ),
        Contestant(
            "fastavro from dict",
            each(lambda one: fastavro.schemaless_writer(io.BytesIO(), parsed, one), rows[: len(few)]),
            len(few),
        ),
        Contestant(
            "penstock AvroDeserializer",
            each(lambda data: AvroDeserializer.__call__(reader, data, CONTEXT), few),
            len(few),
        ),
        Contestant(
            "penstock AvroSerializer", each(lambda one: write(one, CONTEXT), rows[: len(few)]), len(few)
        ),
    ]
    reader = AvroDeserializer(client)
    if importlib.util.find_spec("confluent_kafka") is not None:
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirReader
        from confluent_kafka.schema_registry.avro import AvroSerializer as TheirWriter
        from confluent_kafka.serialization import SerializationContext as TheirContext

        theirs = SchemaRegistryClient({"url": url})
        conf = {"subject.name.strategy.type": "TOPIC"}
        their_reader, their_writer = (
            TheirReader(theirs, conf=conf),
            TheirWriter(theirs, json.dumps(AVRO), conf=conf),
        )
        context = TheirContext("rows", "value")
        found.insert(
            0,
            Contestant(
                "confluent AvroDeserializer", each(lambda data: their_reader(data, context), few), len(few)
            ),
        )
        found.append(
            Contestant(
                "confluent AvroSerializer",
                each(lambda one: their_writer(one, context), rows[: len(few)]),
                len(few),
            )
        )
    if importlib.util.find_spec("pyruhvro") is not None:
        import pyruhvro

        text = json.dumps(AVRO)
        found.append(
            Contestant("pyruhvro, bare values", lambda: pyruhvro.deserialize_array(bare, text), count)
        )
    return found


def protobuf_contestants(client: RegistryClient, rows: list[dict[str, Any]]) -> list[Contestant]:
    made: Any = GetMessageClass(message_named(parse_protobuf(PROTO), "R"))
    data = [
        made(**{key: value for key, value in one.items() if value is not None}).SerializeToString()
        for one in rows
    ]
    column = pa.array(data)
    few = data[: len(data) // 5]
    plain = pa.struct([field if field.name != "at" else pa.field("at", pa.int64()) for field in COLUMNS])
    columns = pa.array(rows[: len(few)], plain)
    return [
        Contestant("protobuf FromString", each(made.FromString, few), len(few)),
        Contestant(
            "penstock from_schema", lambda: from_schema(column, "protobuf", schema=PROTO).whole(), len(rows)
        ),
        Contestant(
            "penstock to_schema",
            lambda: to_schema(columns, "protobuf", client, topic="messages", schema=PROTO),
            len(columns),
        ),
    ]


def json_contestants(rows: list[dict[str, Any]]) -> list[Contestant]:
    data = [json.dumps(one).encode() for one in rows]
    column = pa.array(data)
    lines = b"\n".join(data)
    few = data[: len(data) // 5]
    options = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    return [
        Contestant("json.loads", each(json.loads, few), len(few)),
        Contestant(
            "pyarrow.json, joined lines",
            lambda: pyarrow.json.read_json(pa.BufferReader(lines), read_options=options),
            len(rows),
        ),
        Contestant(
            "penstock from_schema", lambda: from_schema(column, "json", schema=JSON).whole(), len(rows)
        ),
    ]


def row_contestants(client: RegistryClient, url: str, rows: list[dict[str, Any]]) -> list[Contestant]:
    """Return contestants for JSON and Protobuf rows: the serializers of Penstock and confluent-kafka."""
    made: Any = GetMessageClass(message_named(parse_protobuf(PROTO), "R"))
    few = [{name: value for name, value in one.items() if value is not None} for one in rows[:4_000]]
    messages = [made(**one) for one in few]
    titled = json.dumps({**json.loads(JSON), "title": "R"})
    ours = ProtobufSerializer(made, client), JSONSerializer(titled, client)
    contexts = SerializationContext("messages-rows"), SerializationContext("json-rows")
    found = []
    if importlib.util.find_spec("confluent_kafka") is not None:
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirJSON
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobuf
        from confluent_kafka.serialization import SerializationContext as TheirContext

        theirs = SchemaRegistryClient({"url": url})
        conf = {"subject.name.strategy.type": "TOPIC"}
        message = TheirProtobuf(made, theirs, conf={**conf, "use.deprecated.format": False})
        text = TheirJSON(titled, theirs, conf=conf)
        one, other = TheirContext("messages-rows", "value"), TheirContext("json-rows", "value")
        found += [
            Contestant("confluent Protobuf", each(lambda row: message(row, one), messages), len(messages)),
            Contestant("confluent JSON", each(lambda row: text(row, other), few), len(few)),
        ]
    return [
        *found,
        Contestant("penstock Protobuf", each(lambda row: ours[0](row, contexts[0]), messages), len(messages)),
        Contestant("penstock JSON", each(lambda row: ours[1](row, contexts[1]), few), len(few)),
    ]


def main() -> None:
    options = arguments("values with a schema, rows of eight fields", rounds=5)
    warnings.simplefilter("ignore")
    rows = [row(number) for number in range(100_000 if options.quick else 400_000)]
    with Registry() as registry, registry.client() as client:
        contestants = avro_contestants(client, registry.url, rows)
        measure(contestants, options.rounds)
        report("Avro", contestants, unit="rows")
        for title, made in (
            ("Protobuf", protobuf_contestants(client, rows)),
            ("JSON", json_contestants(rows)),
            ("Serializers", row_contestants(client, registry.url, rows)),
        ):
            measure(made, options.rounds)
            report(title, made, unit="rows")


if __name__ == "__main__":
    main()
