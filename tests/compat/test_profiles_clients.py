"""Third-party clients detect the versions of a broker that emulates an older Kafka, and work with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from compat.peers import LEAKY_CLIENTS, PATIENCE_S, need_module
from penstock import Broker

aiokafka = need_module("aiokafka")
confluent_kafka = need_module("confluent_kafka")
kafka = need_module("kafka")

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    *LEAKY_CLIENTS,
]

RELEASES = ["0.8.2", "0.9", "0.10.0", "0.10.2", "0.11", "1.1", "2.8", "3.9", "4.0"]
TOPIC = "a-topic-with-a-name-of-some-length"
"""The topic's name is long because librdkafka reads invalid memory if a Metadata v0 answer is too short."""
VALUES = [b"value %d" % number for number in range(50)]


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_python_finds_out(release: str) -> None:
    with Broker(as_version=release) as broker:
        servers = broker.bootstrap_servers
        # What came before ApiVersions it cannot tell apart in every version of the client.
        known: dict[str, Any] = (
            {} if numbers(release) >= (0, 10) else {"api_version": (*numbers(release), 0)[:3]}
        )
        producer = kafka.KafkaProducer(bootstrap_servers=servers, **known)
        if not known:
            assert producer.config["api_version"][:2] <= (*numbers(release), 0)[:2]
        offsets = [producer.send(TOPIC, value, partition=0) for value in VALUES]
        assert [each.get(timeout=PATIENCE_S).offset for each in offsets] == list(range(50))
        producer.close()
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=servers, consumer_timeout_ms=1000 * PATIENCE_S, **known
        )
        place = kafka.TopicPartition(TOPIC, 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        assert [next(consumer).value for _ in VALUES] == VALUES
        consumer.close()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_confluent_kafka(release: str, codec: str) -> None:
    with Broker(as_version=release) as broker:
        common = {"bootstrap.servers": broker.bootstrap_servers}
        if numbers(release) < (0, 10):
            full = {"0.8.2": "0.8.2.2", "0.9": "0.9.0.1"}[release]
            common |= {"api.version.request": "false", "broker.version.fallback": full}
        failures: list[Any] = []
        producer = confluent_kafka.Producer({**common, "compression.type": codec})
        for value in VALUES:
            producer.produce(
                TOPIC, value, partition=0, on_delivery=lambda error, _: error and failures.append(error)
            )
        assert producer.flush(PATIENCE_S) == 0
        assert failures == []
        consumer = confluent_kafka.Consumer(
            {**common, "group.id": "g", "enable.auto.commit": False, "session.timeout.ms": 10_000}
        )
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        values: list[bytes] = []
        while len(values) < 50:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None, message.error()
            values.append(message.value())
        assert values == VALUES
        consumer.close()


@pytest.mark.parametrize("release", [each for each in RELEASES if numbers(each) >= (0, 10)])
def test_aiokafka(release: str) -> None:
    async def run(servers: str) -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers)
        await producer.start()
        for value in VALUES:
            await producer.send_and_wait(TOPIC, value, partition=0)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers)
        await consumer.start()
        place = aiokafka.TopicPartition(TOPIC, 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        values = [(await asyncio.wait_for(consumer.getone(), PATIENCE_S)).value for _ in VALUES]
        await consumer.stop()
        return values

    with Broker(as_version=release) as broker:
        if numbers(release) < (0, 11):
            # It sends batches of magic 2 in Produce v2, which these releases take for damaged, as they did.
            with pytest.raises(aiokafka.errors.CorruptRecordException):
                asyncio.run(run(broker.bootstrap_servers))
        else:
            assert asyncio.run(run(broker.bootstrap_servers)) == VALUES
