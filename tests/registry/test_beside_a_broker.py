"""`Broker(registry=True)`: a schema registry beside the broker, whose schemas are in the broker's topic."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from penstock import Broker, Producer, read_topic
from penstock.errors import ConfigError
from penstock.registry import AvroSerializer, RegistryClient, Schema
from penstock.testing import KafkaBroker

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})


def test_from_a_broker_to_a_table() -> None:
    with Broker(registry=True) as broker:
        serializer = AvroSerializer(broker.registry_url, ORDER).bound("orders")
        with Producer(broker.bootstrap_servers, value_serializer=serializer) as producer:
            producer.send("orders", {"id": 7})
        table = read_topic("orders", broker.bootstrap_servers, value="avro", registry=broker.registry_url)
        assert table["value"].to_pylist() == [{"id": 7}]


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
