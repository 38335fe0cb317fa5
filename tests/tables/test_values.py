"""Tests of reading topics with decoded values: tables, scans, dead letters and arguments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import (
    Broker,
    Producer,
    read_log,
    read_topic,
    read_topic_async,
    scan_log,
    scan_topic,
    scan_topic_async,
)
from penstock.errors import ConfigError, DecodeError
from penstock.registry import DeadLetters, Schema
from penstock.v07 import Broker07, Driver07
from registry.fake_registry import FakeRegistry
from registry.test_decoding import NEW, OLD, row


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def registry_of(topic: str) -> FakeRegistry:
    registry = FakeRegistry()
    registry.add(f"{topic}-value", Schema(json.dumps(OLD)))
    registry.add(f"{topic}-value", Schema(json.dumps(NEW)))
    return registry


def filled(broker: Broker, topic: str, values: list[bytes | None], **more: Any) -> str:
    with Producer(broker.bootstrap_servers, batch_size=4096) as producer:  # several batches for many values
        for value in values:
            producer.send(topic, value, **more)
    return broker.bootstrap_servers


GOOD = [row(1, OLD, {"a": 1}), None, row(2, NEW, {"a": 2, "b": "x"})]
WANTED = [{"a": 1, "b": "none"}, None, {"a": 2, "b": "x"}]


def test_a_table_has_values_as_columns(broker: Broker) -> None:
    servers = filled(broker, "whole", GOOD)
    table = read_topic("whole", servers, value="avro", registry=registry_of("whole"))
    assert table["value"].to_pylist() == WANTED
    assert table["offset"].to_pylist() == [0, 1, 2]
    only = read_topic(
        "whole", servers, value="avro", registry=registry_of("whole"), columns=["value"], limit=1
    )
    assert only.to_pylist() == [{"value": WANTED[0]}]


def test_what_does_not_decode_is_an_error_or_a_dead_letter(broker: Broker) -> None:
    servers = filled(broker, "mixed", [GOOD[0], b"junk", GOOD[2], b""])
    registry = registry_of("mixed")
    with pytest.raises(DecodeError, match="2 values do not decode; the first is at offset 1 of partition 0"):
        read_topic("mixed", servers, value="avro", registry=registry)
    dead = DeadLetters()
    table = read_topic(
        "mixed", servers, value="avro", registry=registry, dead_letters=dead, columns=["value"]
    )
    assert table["value"].to_pylist() == [WANTED[0], WANTED[2]]
    assert [(each["topic"], each["partition"], each["offset"], each["data"]) for each in dead] == [
        ("mixed", 0, 1, b"junk"),
        ("mixed", 0, 3, b""),
    ]
    assert len(dead) == 2


def test_a_scan_decodes_batch_by_batch(broker: Broker) -> None:
    servers = filled(broker, "scanned", [row(1, OLD, {"a": number}) for number in range(3_000)])
    dead = DeadLetters()
    scan = scan_topic(
        "scanned", servers, value="avro", registry=registry_of("scanned"), batch_bytes=4096, dead_letters=dead
    )
    batches = list(scan)
    assert len(batches) > 1
    assert {batch.schema for batch in batches} == {scan.schema}
    assert [each["a"] for batch in batches for each in batch["value"].to_pylist()] == list(range(3_000))
    followed = scan_topic(
        "scanned", servers, value="avro", registry=registry_of("scanned"), follow=True, limit=5
    )
    assert sum(batch.num_rows for batch in followed) == 5


def test_json_without_a_registry_and_keys(broker: Broker) -> None:
    servers = filled(broker, "plain", [b'{"a": 1}', b'{"a": 2.5, "b": "x"}'], key=b'{"k": 1}')
    table = read_topic("plain", servers, value="json", key_format="json")
    assert table["value"].to_pylist() == [{"a": 1.0, "b": None}, {"a": 2.5, "b": "x"}]
    assert table["key"].to_pylist() == [{"k": 1}, {"k": 1}]
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "number"}}})
    assert [
        batch["value"].to_pylist() for batch in scan_topic("plain", servers, value="json", schema=schema)
    ] == [[{"a": 1.0}, {"a": 2.5}]]


def test_an_empty_topic_has_the_columns_of_its_schema(broker: Broker) -> None:
    servers = filled(broker, "nothing", [b"x"])
    table = read_topic("nothing", servers, value="avro", registry=registry_of("nothing"), start="latest")
    assert table.num_rows == 0
    assert str(table.schema.field("value").type).startswith("struct<a: int32")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"registry": FakeRegistry()}, "give value="),
        ({"value": "avro"}, "need a registry"),
        ({"value": "avrro", "schema": '"int"'}, "one of avro"),
        ({"value": "avro", "registry": FakeRegistry()}, "no subject 't-value'"),
        ({"value": "json", "columns": ["key"]}, "columns leaves it out"),
        ({"value": "json", "dead_letters": []}, "DeadLetters"),
        ({"value": "avro", "registry": 5}, "URL of a schema registry"),
        ({"value": "avro", "registry": "localhost:8081"}, "begins with http"),
    ],
)
def test_wrong_arguments_say_so(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_topic("t", "localhost:1", **arguments)


def test_a_scan_has_to_know_its_types() -> None:
    with pytest.raises(ConfigError, match="before it reads"):
        scan_topic("t", "localhost:1", value="json")


def test_the_calls_for_asyncio_decode_as_well(broker: Broker) -> None:
    servers = filled(broker, "async", GOOD)

    async def read() -> tuple[list[Any], list[Any]]:
        registry = registry_of("async")
        table = await read_topic_async("async", servers, value="avro", registry=registry)
        scan = scan_topic_async("async", servers, value="avro", registry=registry, columns=["value"])
        rows = [row["value"] async for batch in scan for row in batch.to_pylist()]
        return table["value"].to_pylist(), rows

    assert asyncio.run(read()) == (WANTED, WANTED)


def test_a_directory_is_decoded_without_a_broker(tmp_path: Path) -> None:
    registry = registry_of("kept")
    with Broker(data_dir=tmp_path) as broker:
        filled(broker, "kept", [*GOOD, b"junk"], key=b'{"k": 1}')
    with pytest.raises(DecodeError, match="the first is at offset 3 of partition 0 of topic 'kept'"):
        read_log(tmp_path, value="avro", registry=registry)
    for place, names in ((tmp_path, ("kept",)), (tmp_path, ()), (tmp_path / "kept-0", ())):
        dead = DeadLetters()
        options: Any = {"value": "avro", "key_format": "json", "registry": None, "dead_letters": dead}
        options |= {"registry": registry, "key_format": None, "columns": ["value", "offset"]}
        table = read_log(place, *names, **options)
        assert table.to_pydict() == {"value": WANTED, "offset": [0, 1, 2]}
        assert [(each["topic"], each["offset"]) for each in dead] == [("kept", 3)]
        scan = scan_log(place, *names, **options)
        assert scan.schema == table.schema
        assert [each for batch in scan for each in batch["value"].to_pylist()] == WANTED
    plain = read_log(tmp_path, key_format="json", limit=2)
    assert plain["key"].to_pylist() == [{"k": 1}, {"k": 1}]
    with pytest.raises(ConfigError, match="a scan has to know the type of the key"):
        scan_log(tmp_path, key_format="json")
    with pytest.raises(ConfigError, match="give value="):
        read_log(tmp_path, registry=registry)


def test_kafka_0_7_is_decoded_from_brokers_and_directories(tmp_path: Path) -> None:
    registry = registry_of("old")
    with Broker07(tmp_path) as broker:
        with Driver07(broker.host, broker.port) as driver:
            driver.send("old", [GOOD[0], b"junk", GOOD[2]], partition=0)
            assert driver.latest("old", 0) > 0
        dead = DeadLetters()
        servers = f"{broker.host}:{broker.port}"
        options: Any = {"value": "avro", "registry": registry, "columns": ["value"]}
        table = read_topic("old", servers, protocol="0.7", dead_letters=dead, **options)
        assert table["value"].to_pylist() == [WANTED[0], WANTED[2]]
        assert [(each["partition"], each["data"]) for each in dead] == [(0, b"junk")]
        scan = scan_topic("old", servers, protocol="0.7", dead_letters=DeadLetters(), **options)
        assert [each for batch in scan for each in batch["value"].to_pylist()] == [WANTED[0], WANTED[2]]
    for names in (("old",), ()):
        again = read_log(tmp_path, *names, dead_letters=dead, **options)
        assert again.equals(table)
    assert len(dead) == 3
