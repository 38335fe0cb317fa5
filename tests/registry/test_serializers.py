"""Tests of row serializers: Avro, JSON and Protobuf, their settings, headers, and several types of rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from pydantic import BaseModel

from penstock import Broker, Consumer, Producer, read_topic
from penstock.errors import ConfigError, DecodeError, EncodeError
from penstock.registry import (
    AvroDeserializer,
    AvroSerializer,
    JSONDeserializer,
    JSONSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Registry,
    RegistryClient,
    RegistryError,
    Schema,
    SerializationContext,
    from_schema,
)

TEXT = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"], "default": None},
        ],
    }
)
OTHER = json.dumps(
    {
        "type": "object",
        "title": "Order",
        "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}},
        "required": ["id"],
    }
)
VALUE = SerializationContext("orders")


@dataclass
class Order:
    id: int
    name: str | None = None


class Model(BaseModel):
    id: int
    name: str | None = None


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture
def client(registry: Registry) -> Iterator[RegistryClient]:
    with registry.client() as client:
        yield client
        for subject in client.subjects():
            client.delete_subject(subject)
            client.delete_subject(subject, permanent=True)


@pytest.mark.parametrize("row", [{"id": 1, "name": "x"}, Order(1, "x"), Model(id=1, name="x")])
def test_rows_of_several_kinds(client: RegistryClient, row: Any) -> None:
    wanted = {"id": 1, "name": "x"}
    data = AvroSerializer(client, TEXT)(row, VALUE)
    assert AvroDeserializer(client)(data, VALUE) == wanted
    assert client.subjects() == ["orders-value"]
    data = JSONSerializer(OTHER, client)(row, SerializationContext("json"))
    assert JSONDeserializer(OTHER)(data, VALUE) == wanted
    assert JSONDeserializer(schema_registry_client=client)(data, VALUE) == wanted


def test_null_stays_null_and_functions_make_rows(client: RegistryClient) -> None:
    write = AvroSerializer(client, TEXT, lambda order, context: {"id": order})
    assert write(None, VALUE) is None
    read = AvroDeserializer(client, None, lambda found, context: Order(**found))
    assert read(write(7, VALUE), VALUE) == Order(7)
    assert read(None, VALUE) is None


def test_subjects_by_strategy(client: RegistryClient) -> None:
    for strategy in ("record", "TOPIC_RECORD", lambda context, record: f"{context.topic}/{record}"):
        AvroSerializer(client, TEXT, conf={"subject.name.strategy": strategy})({"id": 1}, VALUE)
    assert client.subjects() == ["orders-shop.Order", "orders/shop.Order", "shop.Order"]


def test_settings_say_which_schema(client: RegistryClient) -> None:
    with pytest.raises(RegistryError) as unknown:
        AvroSerializer(client, TEXT, conf={"auto.register.schemas": False})({"id": 1}, VALUE)
    assert unknown.value.code == 40401
    newest = json.loads(TEXT)
    newest["fields"].append({"name": "more", "type": "int", "default": 5})
    first = client.register("orders-value", Schema(TEXT))
    number = client.register("orders-value", Schema(json.dumps(newest)))
    latest = AvroSerializer(client, None, conf={"auto.register.schemas": False, "use.latest.version": True})
    assert latest({"id": 1}, VALUE)[:5] == b"\0\0\0\0" + bytes([number])  # type: ignore[index]
    by_id = AvroSerializer(client, None, conf={"use.schema.id": first})
    data = by_id({"id": 1}, VALUE)
    assert AvroDeserializer(client)(data, VALUE) == {"id": 1, "name": None}
    read = AvroDeserializer(client, conf={"use.latest.version": True})
    assert read(data, VALUE) == {"id": 1, "name": None, "more": 5}


def test_the_guid_may_stand_in_the_headers(client: RegistryClient) -> None:
    headers: list[tuple[str, bytes]] = []
    context = SerializationContext("orders", "value", headers)
    write = AvroSerializer(client, TEXT, conf={"schema.id.serializer": "header"})
    data = write({"id": 3}, context)
    assert data == b"\x06\x00"
    assert headers[0][0] == "__value_schema_id"
    assert AvroDeserializer(client)(data, context) == {"id": 3, "name": None}
    with pytest.raises(EncodeError, match="no headers"):
        write({"id": 3}, VALUE)


def test_protobuf_messages_and_what_their_files_import(client: RegistryClient) -> None:
    message: Any = descriptor_pb2.FieldDescriptorProto
    write = ProtobufSerializer(message, client)
    data = write(message(name="x", number=5), VALUE)
    found = ProtobufDeserializer(message)(data, VALUE)
    assert (found.name, found.number) == ("x", 5)
    column = from_schema(pa.array([data]), "protobuf", client, message="google.protobuf.FieldDescriptorProto")
    assert column.whole()[0]["name"].as_py() == "x"
    with pytest.raises(EncodeError, match="FieldDescriptorProto is needed, not Timestamp"):
        write(timestamp_pb2.Timestamp(), VALUE)


def test_what_does_not_fit_says_why(client: RegistryClient) -> None:
    with pytest.raises(EncodeError, match="does not fit its Avro schema"):
        AvroSerializer(client, TEXT)({"id": "x"}, VALUE)
    with pytest.raises(EncodeError, match=r"\$.id: 'x' is not of type 'integer'"):
        JSONSerializer(OTHER, client)({"id": "x"}, SerializationContext("json"))
    data = JSONSerializer(OTHER, client, conf={"validate": False})({"id": "x"}, SerializationContext("json"))
    with pytest.raises(DecodeError, match="JSON Schema"):
        JSONDeserializer(OTHER)(data, VALUE)
    good = AvroSerializer(client, TEXT)({"id": 1}, VALUE)
    for damaged in (good[:5], b"", b"\7abcdef"):  # type: ignore[index]
        with pytest.raises(DecodeError):
            AvroDeserializer(client)(damaged, VALUE)


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"auto.register": True}, "no setting 'auto.register'"),
        ({"auto.register.schemas": "yes"}, "True or False"),
        ({"use.latest.version": True, "auto.register.schemas": True}, "exclude each other"),
        ({"subject.name.strategy": "subject"}, "no subject strategy"),
        ({"schema.id.serializer": "footer"}, "prefix or header"),
    ],
)
def test_wrong_settings_say_so(client: RegistryClient, conf: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AvroSerializer(client, TEXT, conf=conf)


def test_from_a_producer_to_a_data_frame(client: RegistryClient) -> None:
    with Broker() as broker:
        serializer = AvroSerializer(client, TEXT).bound("orders")
        with Producer(broker.bootstrap_servers, value_serializer=serializer) as producer:
            for number in range(5):
                producer.send("orders", {"id": number, "name": f"order {number}"})
        table = read_topic("orders", broker.bootstrap_servers, value="avro", registry=client)
        assert table["value"].to_pylist()[4] == {"id": 4, "name": "order 4"}
        deserializer = AvroDeserializer(client).bound("orders")
        with Consumer(
            broker.bootstrap_servers, value_deserializer=deserializer, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([("orders", 0)])
            assert consumer.poll(5_000)[0].value == {"id": 0, "name": "order 0"}
