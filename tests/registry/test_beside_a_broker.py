"""Tests of `Broker(registry=True)`, a schema registry that stores its schemas in a topic of the broker."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Broker, Producer, read_topic
from penstock.errors import ConfigError
from penstock.registry import (
    AvroDeserializer,
    AvroSerializer,
    Decoder,
    RegistryClient,
    Schema,
    SerializationContext,
    to_schema,
)
from penstock.testing import KafkaBroker

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})


def test_from_a_broker_to_a_table() -> None:
    with Broker(registry=True) as broker:
        serializer = AvroSerializer(broker.registry_url, ORDER).bound("orders")
        with Producer(broker.bootstrap_servers, value_serializer=serializer) as producer:
            producer.send("orders", {"id": 7})
        table = read_topic("orders", broker.bootstrap_servers, value="avro", registry=broker.registry_url)
        assert table["value"].to_pylist() == [{"id": 7}]


def test_ids_of_eight_bytes_where_the_registry_has_them() -> None:
    with Broker(registry=True) as broker:
        registry = {"url": broker.registry_url, "id.bytes": 8}
        client = RegistryClient(registry)
        serializer = AvroSerializer(client, ORDER)
        data = serializer({"id": 7}, SerializationContext("orders"))
        assert data == b"\0" + (1).to_bytes(8, "big") + b"\x0e"
        assert AvroDeserializer(client)(data, SerializationContext("orders")) == {"id": 7}
        columns = to_schema(pa.array([{"id": 8}]), "avro", client, topic="others")
        assert columns.to_pylist() == [b"\0" + (2).to_bytes(8, "big") + b"\x02\x10"]
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", data)
        table = read_topic("orders", broker.bootstrap_servers, value="avro", registry=registry)
        assert table["value"].to_pylist() == [{"id": 7}]
    with pytest.raises(ConfigError, match=r"id\.bytes is 5: ids have 4 bytes, or 8"):
        RegistryClient({"url": "http://localhost", "id.bytes": 5})


def test_ids_of_eight_bytes_in_tasks_of_spark() -> None:
    from penstock.spark.registries import KnownVersions, PatientRegistry, client_for
    from penstock.spark.value_options import registry_settings

    client = client_for(registry_settings({"url": "http://localhost:1", "id.bytes": "8"}))
    assert PatientRegistry(KnownVersions(client, "orders-value", 1), 0).id_bytes == 8
    assert Decoder("json", PatientRegistry(client, 0))._id_bytes == 8


@pytest.mark.kafka(registry=True)
def test_the_fixture_has_one_where_its_mark_says_so(kafka_broker: KafkaBroker) -> None:
    client = RegistryClient(kafka_broker.registry_url)
    assert client.register("orders-value", Schema(ORDER)) == 1
    url = kafka_broker.registry_url
    kafka_broker.restart()
    assert kafka_broker.registry_url == url
    assert RegistryClient(url).version("orders-value").id == 1


def test_schemas_stay_in_the_directory(tmp_path: Path) -> None:
    for expected in (1, 1):
        with Broker(tmp_path, registry=True) as broker:
            assert RegistryClient(broker.registry_url).register("orders-value", Schema(ORDER)) == expected


def test_a_secured_broker_lets_it_in() -> None:
    with Broker(registry=True, security="SASL_SSL") as broker:
        assert RegistryClient(broker.registry_url).subjects() == []


def test_in_asyncio() -> None:
    async def program() -> list[str]:
        async with Broker(registry=True) as broker:
            return await asyncio.to_thread(RegistryClient(broker.registry_url).subjects)

    assert asyncio.run(program()) == []


def test_what_is_wrong_says_so() -> None:
    with pytest.raises(ConfigError, match="registry is 70000: True, or a port"):
        Broker(registry=70_000)
    with pytest.raises(ConfigError, match="no schema registry: give registry=True"):
        _ = Broker().registry_url
    with pytest.raises(ConfigError, match="no schema registry: it is not running"):
        _ = Broker(registry=True).registry_url
    with (
        Broker(registry=True) as one,
        pytest.raises(Exception, match=r"cannot be listened on|in use"),
        Broker(registry=int(one.registry_url.rpartition(":")[2])) as other,
    ):
        raise AssertionError(other)
