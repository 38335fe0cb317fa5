"""Records pass between Penstock's client and other clients, through Penstock's broker, with every codec."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from compat.peers import PATIENCE_S, need_module
from compat.places import PLACES, made
from compat.test_broker_clients import CLIENTS, CODECS, READERS, ROWS, WRITERS, Row, pytestmark
from penstock import Admin, Consumer, Producer, TopicPartition, read_topic, write_topic
from penstock.client import AsyncConsumer, AsyncProducer
from penstock.client.config import PARTITIONER_NAMES
from penstock.client.produce.partitioner import PARTITIONERS

confluent_kafka = need_module("confluent_kafka")

__all__ = ["pytestmark"]

PLACE = 1
"""The partition that all readers and writers use."""


@pytest.fixture(scope="module", params=PLACES)
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with made(request.param, num_partitions=2) as broker:
        yield broker.bootstrap_servers


def write_rows(servers: str, topic: str, codec: str) -> None:
    with Producer(servers, compression_type=codec, batch_size=20_000) as producer:
        sent = [
            producer.send(topic, value, key=key, headers=headers, partition=PLACE)
            for key, value, headers in ROWS
        ]
        assert [delivery.result(PATIENCE_S).offset for delivery in sent] == list(range(len(ROWS)))


def write_rows_async(servers: str, topic: str, codec: str) -> None:
    async def write() -> None:
        async with AsyncProducer(servers, compression_type=codec) as producer:
            for key, value, headers in ROWS:
                await producer.send(topic, value, key=key, headers=headers, partition=PLACE)

    asyncio.run(write())


def write_table(servers: str, topic: str, codec: str) -> None:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": pa.array([row[0] for row in ROWS], pa.binary()),
            "value": pa.array([row[1] for row in ROWS], pa.binary()),
            "headers": pa.array([row[2] for row in ROWS], headers),
            "partition": pa.array([PLACE] * len(ROWS), pa.int32()),
        }
    )
    assert write_topic(table, topic, servers, compression=codec).offsets == {PLACE: (0, len(ROWS))}


def read_rows(servers: str, topic: str) -> list[Row]:
    place = TopicPartition(topic, PLACE)
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        rows: list[Row] = []
        while consumer.position(place) < end:
            records = consumer.poll(500)
            rows += [(record.key, record.value, list(record.headers)) for record in records]
        return rows


def read_rows_async(servers: str, topic: str) -> list[Row]:
    async def read() -> list[Row]:
        place = TopicPartition(topic, PLACE)
        async with AsyncConsumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place]
            rows: list[Row] = []
            while await consumer.position(place) < end:
                records = await consumer.poll(500)
                rows += [(record.key, record.value, list(record.headers)) for record in records]
            return rows

    return asyncio.run(read())


def read_table(servers: str, topic: str) -> list[Row]:
    table = read_topic(topic, servers, partitions=[PLACE], columns=["key", "value", "headers"])
    return [
        (row["key"], row["value"], [(h["key"], h["value"]) for h in row["headers"]])
        for row in table.to_pylist()
    ]


OUR_WRITERS: dict[str, Callable[[str, str, str], None]] = {
    "Producer": write_rows,
    "AsyncProducer": write_rows_async,
    "write_topic": write_table,
}
OUR_READERS: dict[str, Callable[[str, str], list[Row]]] = {
    "Consumer": read_rows,
    "AsyncConsumer": read_rows_async,
    "read_topic": read_table,
}


@pytest.mark.parametrize("writer", OUR_WRITERS)
@pytest.mark.parametrize("reader", CLIENTS)
def test_what_we_write_others_read(servers: str, writer: str, reader: str) -> None:
    for codec in CODECS:
        topic = f"{writer}-{reader}-{codec}"
        OUR_WRITERS[writer](servers, topic, codec)
        assert READERS[reader](servers, topic, len(ROWS)) == ROWS, codec


@pytest.mark.parametrize("writer", CLIENTS)
def test_what_others_write_we_read(servers: str, writer: str) -> None:
    for codec in CODECS:
        topic = f"{writer}-{codec}"
        WRITERS[writer](servers, topic, ROWS, codec, True)
        for name, read in OUR_READERS.items():
            assert read(servers, topic) == ROWS, (name, codec)


KEYS = [b"", b"a", b"key", b"foobar", "größe".encode(), b"\xff\x00", *(b"%d" % (7**n) for n in range(30))]


@pytest.mark.parametrize("name", PARTITIONER_NAMES)
def test_keys_go_where_librdkafka_sends_them(servers: str, name: str) -> None:
    topic = f"keys-{name}"
    with Admin(servers) as admin:
        admin.create_topic(topic, 7)
    found: dict[bytes, int] = {}
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "partitioner": name})
    for key in KEYS:
        producer.produce(
            topic, b"", key, on_delivery=lambda _, m: found.update({m.key() or b"": m.partition()})
        )
    assert producer.flush(PATIENCE_S) == 0
    with Producer(servers, partitioner=name) as ours:
        sent = {key: ours.send(topic, b"", key=key).result(PATIENCE_S).partition for key in KEYS}
    for key in KEYS:
        if PARTITIONERS[name](key, 7) is not None:
            assert sent[key] == found[key], key


def test_keys_go_where_aiokafka_and_kafka_python_send_them(servers: str) -> None:
    topic = "keys-python"
    with Admin(servers) as admin:
        admin.create_topic(topic, 7)
    kafka = need_module("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=servers)
    theirs = {key: producer.send(topic, b"", key).get(PATIENCE_S).partition for key in KEYS if key}
    producer.close()
    table = pa.table({"key": list(theirs), "value": [b""] * len(theirs)})
    write_topic(table, topic, servers)
    rows = read_topic(topic, servers, columns=["key", "partition"]).to_pylist()
    assert {(row["key"], row["partition"]) for row in rows} == set(theirs.items())
