"""Third-party clients set and describe quotas, and obey the throttle times that result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat.peers import PATIENCE_S, java, maven_classpath, need_module, until
from compat.places import THREE_AND_AGAIN_ONE, made

confluent_kafka = need_module("confluent_kafka")

pytestmark = pytest.mark.compat


@pytest.fixture(params=THREE_AND_AGAIN_ONE)
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with made(request.param) as broker:
        yield broker.bootstrap_servers


def configs(servers: str, *args: str) -> str:
    """Run Apache Kafka's ConfigCommand; return its output."""
    classpath = maven_classpath("kafka-4.3.0")
    command = ("kafka.admin.ConfigCommand", "--bootstrap-server", servers, *args)
    return java(classpath, *command, check=True).stdout


def test_kafkas_tool_sets_lists_and_removes_quotas(servers: str) -> None:
    one = ("--entity-type", "clients", "--entity-name", "one")
    configs(servers, *one, "--alter", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048")
    both = ("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-default")
    configs(servers, *both, "--alter", "--add-config", "request_percentage=200")
    listed = configs(servers, *one, "--describe")
    assert "client-id 'one' are consumer_byte_rate=2048.0, producer_byte_rate=1024.0" in listed
    listed = configs(servers, "--entity-type", "users", "--entity-type", "clients", "--describe")
    assert "the default user-principal, the default client-id are request_percentage=200.0" in listed
    configs(servers, *one, "--alter", "--delete-config", "producer_byte_rate")
    assert "client-id 'one' are consumer_byte_rate=2048.0\n" in configs(servers, *one, "--describe")


def test_librdkafka_is_told_to_rest_and_rests(servers: str) -> None:
    limit = ("--entity-type", "clients", "--entity-name", "limited")
    configs(servers, *limit, "--alter", "--add-config", "producer_byte_rate=10000,consumer_byte_rate=20000")
    throttled: list[float] = []

    def on_throttle(event: Any) -> None:
        throttled.append(event.throttle_time)

    settings = {"bootstrap.servers": servers, "client.id": "limited", "throttle_cb": on_throttle}
    producer = confluent_kafka.Producer({**settings, "linger.ms": 0, "batch.num.messages": 1})
    began = time.monotonic()
    for _ in range(13):
        producer.produce("limited", b"x" * 10_000)
    assert producer.flush(PATIENCE_S) == 0
    # Ten seconds' worth may come at once; what is beyond has its second for each.
    assert time.monotonic() - began >= 1.5
    until(lambda: producer.poll(0.05) or throttled, "the producer is not told to rest", PATIENCE_S)
    assert max(throttled) > 0.5

    throttled.clear()
    group = {"group.id": "g", "auto.offset.reset": "earliest", "fetch.message.max.bytes": 20_000}
    consumer = confluent_kafka.Consumer({**settings, **group, "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition("limited", 0, 0)])
    found: list[bytes] = []

    def read_all() -> bool:
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None
            found.append(message.value())
        return len(found) == 13

    until(read_all, "not everything was read", PATIENCE_S)
    consumer.close()
    assert set(found) == {b"x" * 10_000}

    unlimited = confluent_kafka.Producer({**settings, "client.id": "unlimited", "linger.ms": 0})
    throttled.clear()
    for _ in range(50):
        unlimited.produce("limited", b"x" * 10_000)
    assert unlimited.flush(PATIENCE_S) == 0
    assert throttled == []
