"""confluent-kafka's registry client and serializers work with Penstock's registry and serializers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("confluent_kafka.schema_registry", reason="confluent-kafka is not installed")

from google.protobuf.message_factory import GetMessageClass

from penstock.registry import (
    AvroDeserializer,
    AvroSerializer,
    JSONDeserializer,
    JSONSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Registry,
    SerializationContext,
)
from penstock.registry.protobuf.schema import message_named, parse_protobuf

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore")]

AVRO = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"], "default": None},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)
JSON = json.dumps(
    {"title": "R", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
)
PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Other { string x = 1; }
message Order { int64 id = 1; repeated string tags = 2; google.protobuf.Timestamp at = 3;
  Other other = 4; }"""
ROW = {"id": 7, "name": "ü", "tags": ["a", "b"]}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture
def theirs(registry: Registry) -> Iterator[Any]:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = SchemaRegistryClient({"url": registry.url})
        yield client
        client.__exit__(None, None, None)


def context(field: str = "value", headers: Any = None) -> Any:
    from confluent_kafka.serialization import SerializationContext as Theirs

    return Theirs("orders", field, headers)


OURS = SerializationContext("orders")


def test_their_client_has_every_answer(theirs: Any) -> None:
    from confluent_kafka.schema_registry import ConfigCompatibilityLevel, Schema, ServerConfig
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    number = theirs.register_schema("t-value", Schema(AVRO, "AVRO"))
    assert theirs.get_schema(number).schema_type == "AVRO"
    registered = theirs.lookup_schema("t-value", Schema(AVRO, "AVRO"))
    assert (registered.version, registered.schema_id) == (1, number)
    assert theirs.get_schema_by_guid(registered.guid).schema_str == registered.schema.schema_str
    assert theirs.get_schema_types() == ["AVRO", "JSON", "PROTOBUF"]
    assert theirs.get_subjects() == ["t-value"]
    assert theirs.get_versions("t-value") == [1]
    assert theirs.get_latest_version("t-value").version == 1
    assert theirs.get_version("t-value", 1).schema_id == number
    assert theirs.get_subjects_by_schema_id(number) == ["t-value"]
    assert [each.version for each in theirs.get_schema_versions(number)] == [1]
    assert theirs.get_referenced_by("t-value", 1) == []
    other = json.loads(AVRO)
    other["fields"].append({"name": "needed", "type": "int"})
    assert not theirs.test_compatibility("t-value", Schema(json.dumps(other), "AVRO"))
    assert theirs.test_compatibility("t-value", Schema(AVRO, "AVRO"))
    assert theirs.test_compatibility_all_versions("t-value", Schema(AVRO, "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        theirs.register_schema("t-value", Schema(json.dumps(other), "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    theirs.set_compatibility("t-value", "FULL")
    assert theirs.get_compatibility("t-value") == "FULL"
    assert theirs.get_compatibility() == "BACKWARD"
    theirs.set_config("t-value", ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert theirs.get_config("t-value").compatibility_level == "NONE"
    theirs.delete_config("t-value")
    assert theirs.get_global_mode() == "READWRITE"
    assert theirs.update_mode("t-value", "READONLY") == "READONLY"
    assert theirs.get_mode("t-value") == "READONLY"
    theirs.delete_mode("t-value")
    assert theirs.get_contexts() == ["."]
    assert theirs.delete_version("t-value", 1) == 1
    assert theirs.delete_version("t-value", 1, permanent=True) == 1
    with pytest.raises(SchemaRegistryError) as gone:
        theirs.get_versions("t-value")
    assert gone.value.error_code == 40401


def test_avro_both_ways(registry: Registry, theirs: Any) -> None:
    from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirReader
    from confluent_kafka.schema_registry.avro import AvroSerializer as TheirWriter

    with registry.client() as ours:
        conf = {"subject.name.strategy.type": "TOPIC"}
        their_bytes = TheirWriter(theirs, AVRO, conf=conf)(ROW, context())
        our_bytes = AvroSerializer(ours, AVRO, conf=conf)(ROW, OURS)
        assert our_bytes == their_bytes
        assert AvroDeserializer(ours)(their_bytes, OURS) == ROW
        assert TheirReader(theirs, conf=conf)(our_bytes, context()) == ROW


def test_avro_with_a_guid_in_the_headers(registry: Registry, theirs: Any) -> None:
    from confluent_kafka.schema_registry import header_schema_id_serializer
    from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirReader
    from confluent_kafka.schema_registry.avro import AvroSerializer as TheirWriter

    with registry.client() as ours:
        conf = {"subject.name.strategy.type": "TOPIC"}
        headers: list[Any] = []
        write = TheirWriter(theirs, AVRO, conf={**conf, "schema.id.serializer": header_schema_id_serializer})
        their_bytes = write(ROW, context("value", headers))
        assert AvroDeserializer(ours)(their_bytes, SerializationContext("orders", "value", headers)) == ROW
        own: list[Any] = []
        our_context = SerializationContext("orders", "value", own)
        our_bytes = AvroSerializer(ours, AVRO, conf={"schema.id.serializer": "header"})(ROW, our_context)
        assert (our_bytes, own) == (their_bytes, headers)
        assert TheirReader(theirs, conf=conf)(our_bytes, context("value", own)) == ROW


def test_json_both_ways(registry: Registry, theirs: Any) -> None:
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirReader
    from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirWriter

    with registry.client() as ours:
        conf = {"subject.name.strategy.type": "TOPIC"}
        their_bytes = TheirWriter(JSON, theirs, conf=conf)({"id": 5}, context())
        our_bytes = JSONSerializer(JSON, ours)({"id": 5}, OURS)
        assert our_bytes[:5] == their_bytes[:5]  # type: ignore[index]
        assert JSONDeserializer(schema_registry_client=ours)(their_bytes, OURS) == {"id": 5}
        assert TheirReader(JSON, schema_registry_client=theirs, conf=conf)(our_bytes, context()) == {"id": 5}


def test_protobuf_both_ways(registry: Registry, theirs: Any) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirReader
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirWriter

    made: Any = GetMessageClass(message_named(parse_protobuf(PROTO), "shop.Order"))
    order = made(id=5, tags=["x"], other={"x": "y"})
    order.at.FromMilliseconds(1_700_000_000_000)
    with registry.client() as ours:
        conf = {"use.deprecated.format": False, "subject.name.strategy.type": "TOPIC"}
        their_bytes = TheirWriter(made, theirs, conf=conf)(order, context())
        our_bytes = ProtobufSerializer(made, ours)(order, OURS)
        assert our_bytes == their_bytes
        assert ProtobufDeserializer(made)(their_bytes, OURS) == order
        assert TheirReader(made, conf=conf, schema_registry_client=theirs)(our_bytes, context()) == order
