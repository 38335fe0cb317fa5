"""Clients run against recordings of themselves, and a broker answers recorded requests as recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache

import pytest

from compat.peers import LEAKY_CLIENTS, need_module
from penstock.testing import KafkaBroker
from penstock.testing.replay import Recording
from testing.replay.talks import tapped

COUNT = 20

pytestmark = [pytest.mark.compat, *LEAKY_CLIENTS]


def confluent(servers: str) -> list[bytes]:
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": servers, "client.id": "shop", "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce("orders", b"v%d" % number, key=b"k", partition=0)
    assert producer.flush(30) == 0
    settings = {"group.id": "desk", "auto.offset.reset": "earliest", "client.id": "desk"}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.subscribe(["orders"])
    found: list[bytes] = []
    while len(found) < COUNT:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        found.append(message.value())
    consumer.close()
    return found


def kafka_python(servers: str) -> list[bytes]:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=servers, client_id="shop")
    for number in range(COUNT):
        producer.send("orders", b"v%d" % number, key=b"k", partition=0)
    producer.flush(30)
    producer.close()
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="desk",
        client_id="desk",
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    found: list[bytes] = []
    for row in consumer:
        found.append(row.value)
        if len(found) == COUNT:
            break
    consumer.close()
    return found


def aiokafka(servers: str) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=servers, client_id="shop") as producer:
            for number in range(COUNT):
                await producer.send("orders", b"v%d" % number, key=b"k", partition=0)
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=servers,
            group_id="desk",
            client_id="desk",
            auto_offset_reset="earliest",
        )
        async with consumer:
            return [(await asyncio.wait_for(consumer.getone(), 30)).value for _ in range(COUNT)]

    return asyncio.run(run())


CLIENTS = [
    pytest.param("confluent_kafka", confluent, id="confluent"),
    pytest.param("kafka", kafka_python, id="kafka-python"),
    pytest.param("aiokafka", aiokafka, id="aiokafka"),
]


@cache
def recording_of(run: Callable[[str], list[bytes]]) -> Recording:
    with tapped() as (tap, servers):
        assert run(servers) == [b"v%d" % number for number in range(COUNT)]
        return Recording.from_pcap(tap.capture())


@pytest.mark.parametrize(("module", "run"), CLIENTS)
def test_it_runs_against_its_own_recording(module: str, run: Callable[[str], list[bytes]]) -> None:
    need_module(module)
    with recording_of(run).cluster() as cluster:
        assert run(cluster.bootstrap_servers) == [b"v%d" % number for number in range(COUNT)]
        assert not [each for each in cluster.unasked if each.startswith("Produce")]


@pytest.mark.parametrize(("module", "run"), CLIENTS)
def test_a_broker_answers_its_recording_alike(module: str, run: Callable[[str], list[bytes]]) -> None:
    need_module(module)
    recording = recording_of(run)
    with KafkaBroker() as broker:
        assert [str(each) for each in recording.play_to(broker.bootstrap_servers)] == []
