"""librdkafka's consumers with ``group.protocol=consumer`` (KIP-848) on one broker, and on three."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.peers import free_ports, need_module
from compat.places import PLACES, made
from penstock import Broker

confluent_kafka = need_module("confluent_kafka")

from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "6000",
}
"""Broker settings with heartbeats every 200 ms, since each step of a rebalance waits for a heartbeat."""

PARTITIONS = 6
PATIENCE_S = 40.0


class Members:
    """The consumers of one group, and the records that each has read."""

    def __init__(self, servers: str, group: str = "g") -> None:
        self.servers = servers
        self.group = group
        self.consumers: list[Any] = []
        self.seen: list[tuple[str, int, int]] = []

    def add(self, *topics: str, **settings: object) -> Any:
        config = {
            "bootstrap.servers": self.servers,
            "group.id": self.group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 500,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        consumer = confluent_kafka.Consumer(config)
        consumer.subscribe(list(topics))
        self.consumers.append(consumer)
        return consumer

    def drop(self, consumer: Any) -> None:
        self.consumers.remove(consumer)
        consumer.close()

    def poll_until(self, holds: Any, what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain: {what}; {self.sizes()} {len(self.seen)}"
            for consumer in self.consumers:
                message = consumer.poll(0.02)
                if message is not None:
                    assert message.error() is None or message.error().retriable(), message.error()
                    if message.error() is None:
                        self.seen.append((message.topic(), message.partition(), message.offset()))

    def sizes(self) -> list[int]:
        return sorted(len(consumer.assignment()) for consumer in self.consumers)

    def close(self) -> None:
        while self.consumers:
            self.drop(self.consumers[0])


@pytest.fixture(params=PLACES)
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with made(request.param, config=SETTINGS) as broker:
        yield broker.bootstrap_servers


def create(servers: str, name: str, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(PATIENCE_S)


def produce(servers: str, topic: str, count: int, partitions: int = PARTITIONS) -> set[tuple[str, int, int]]:
    """Send records; return the topic, partition and offset of each."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    sent: set[tuple[str, int, int]] = set()

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        sent.add((message.topic(), message.partition(), message.offset()))

    for number in range(count):
        producer.produce(topic, b"v", partition=number % partitions, on_delivery=delivered)
    producer.flush()
    assert len(sent) == count
    return sent


def test_three_members_share_six_partitions_and_hand_them_over(servers: str) -> None:
    create(servers, "t")
    sent = produce(servers, "t", 60)
    members = Members(servers)
    first = members.add("t")
    members.poll_until(lambda: members.sizes() == [6], "one member has all")
    members.add("t")
    members.add("t")
    members.poll_until(lambda: members.sizes() == [2, 2, 2], "three members share")
    members.poll_until(lambda: set(members.seen) >= sent, "everything is read")
    admin = AdminClient({"bootstrap.servers": servers})
    described = admin.describe_consumer_groups(["g"])["g"].result(PATIENCE_S)
    assert described.state == confluent_kafka.ConsumerGroupState.STABLE
    assert described.type == confluent_kafka.ConsumerGroupType.CONSUMER
    assert sorted(len(each.assignment.topic_partitions) for each in described.members) == [2, 2, 2]
    members.drop(first)
    members.poll_until(lambda: members.sizes() == [3, 3], "two members share")
    members.close()


def test_a_group_resumes_where_it_has_committed(servers: str) -> None:
    create(servers, "t")
    sent = produce(servers, "t", 30)
    members = Members(servers)
    consumer = members.add("t")
    members.poll_until(lambda: set(members.seen) == sent, "everything is read")
    consumer.commit(asynchronous=False)
    members.close()
    more = produce(servers, "t", 12)
    again = Members(servers)
    again.add("t")
    again.poll_until(lambda: set(again.seen) >= more, "what is new is read")
    assert set(again.seen) == more
    again.close()


def test_a_regular_expression_finds_topics_that_come_later(servers: str) -> None:
    create(servers, "events-a", 1)
    create(servers, "other", 1)
    members = Members(servers)
    consumer = members.add("^events-.*")
    members.poll_until(lambda: members.sizes() == [1], "the first topic is found")
    create(servers, "events-b", 2)
    members.poll_until(lambda: members.sizes() == [3], "the second topic is found")
    assert {each.topic for each in consumer.assignment()} == {"events-a", "events-b"}
    members.close()


def test_a_static_member_has_its_partitions_back(servers: str) -> None:
    create(servers, "t")
    members = Members(servers)
    members.add("t", group_instance_id="one")
    second = members.add("t", group_instance_id="two")
    members.poll_until(lambda: members.sizes() == [3, 3], "both have half")
    had = {each.partition for each in second.assignment()}
    members.drop(second)
    again = members.add("t", group_instance_id="two")
    members.poll_until(lambda: members.sizes() == [3, 3], "the second is back")
    assert {each.partition for each in again.assignment()} == had
    members.close()


def test_members_go_on_after_the_broker_restarts(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    members = Members(f"127.0.0.1:{port}")
    with Broker(tmp_path, port=port, config=SETTINGS):
        create(members.servers, "t")
        sent = produce(members.servers, "t", 12)
        first = members.add("t", reconnect_backoff_max_ms=500)
        members.poll_until(lambda: set(members.seen) == sent, "the first member reads all")
        first.commit(asynchronous=False)
        members.add("t", reconnect_backoff_max_ms=500)
        members.poll_until(lambda: members.sizes() == [3, 3], "both have half")
        had = [{each.partition for each in consumer.assignment()} for consumer in members.consumers]
    members.seen.clear()
    with Broker(tmp_path, port=port, config=SETTINGS):
        more = produce(members.servers, "t", 12)
        members.poll_until(lambda: set(members.seen) >= more, "they read on")
        assert sorted(members.seen) == sorted(more)
        assert [{each.partition for each in each.assignment()} for each in members.consumers] == had
        members.close()
