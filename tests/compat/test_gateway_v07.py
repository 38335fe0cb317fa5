"""Kafka 0.7 clients through a gateway to Apache Kafka, in a current release and in one of 2017."""

from __future__ import annotations

import contextlib
import random
import time

import pytest

from compat.peers import PATIENCE_S, shared_kafka, until
from penstock.client import Admin, Producer
from penstock.errors import KafkaError
from penstock.gateway import Gateway
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07.driver import Driver07
from penstock.v07.message_set import iter_messages
from penstock.v07.wire import FetchPart

pytestmark = pytest.mark.compat


def create(servers: str, topic: str) -> None:
    def is_created() -> bool:
        with Admin(bootstrap_servers=servers) as admin, contextlib.suppress(KafkaError):
            admin.create_topic(topic, partitions=1, replication_factor=1)
            return True
        return False

    until(is_created, "a broker that has just started creates topics")


@pytest.mark.parametrize("version", ["4.3", "0.10.2"])
def test_a_driver_of_0_7_writes_and_reads(version: str) -> None:
    servers = shared_kafka(version)
    dice = random.Random(version)
    topic = f"of-0-7-{dice.randrange(1 << 30)}"
    values = [dice.randbytes(dice.choice([0, 20, 300, 6000, 40_000])) for _ in range(600)]
    found: list[bytes] = []
    offset = -1
    end = time.monotonic() + PATIENCE_S
    create(servers, topic)
    while len(found) < len(values):
        assert time.monotonic() < end
        with Gateway(servers, v07_port=0) as gateway:
            assert gateway.v07_port is not None
            with Driver07("127.0.0.1", gateway.v07_port) as driver:
                if offset < 0:
                    for start in range(0, len(values), 50):
                        codec = dice.choice(
                            [CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.SNAPPY]
                        )
                        driver.send(topic, values[start : start + 50], partition=0, codec=codec)
                    offset = driver.earliest(topic, 0)
                for _ in range(4):
                    data = driver.connection.fetch(FetchPart(topic, 0, offset, 1 << 20)).checked()
                    messages = list(iter_messages(data, offset))
                    found += [message.payload for message in messages]
                    offset = messages[-1].next_offset if messages else offset
    assert found == values


def test_aborted_records_of_apache_kafka_are_left_out() -> None:
    servers = shared_kafka("4.3")
    topic = f"aborted-0-7-{random.Random().randrange(1 << 30)}"
    create(servers, topic)
    with Producer(bootstrap_servers=servers, transactional_id=topic) as producer:
        for number in range(10):
            try:
                with producer.transaction():
                    producer.send(topic, b"%d" % number)
                    if number % 3 == 0:
                        raise ValueError
            except ValueError:
                pass
    with Gateway(servers, v07_port=0) as gateway:
        assert gateway.v07_port is not None
        with Driver07("127.0.0.1", gateway.v07_port) as driver:
            found = [int(message.payload) for message in driver.messages(topic, 0, 0)]
    assert found == [number for number in range(10) if number % 3]
