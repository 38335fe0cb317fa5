"""One member of a consumer group: ``python group_members.py KIND SERVERS GROUP TOPIC STRATEGY RELEASE``.

RELEASE is the broker's release, for clients that cannot find it out: ``0.9``, or nothing for any newer one.
STRATEGY is an assignor of the classic protocol, or ``kip-848`` for the protocol in which the broker assigns
partitions. The program prints each record that it reads as ``r PARTITION OFFSET VALUE``, assigned partitions
as ``+ P P``, and revoked ones as ``- P P``. On SIGTERM it leaves the group and ends; tests use SIGKILL for a
member that dies without leaving.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

COOPERATIVE = "cooperative-sticky"
KIP_848 = "kip-848"
AUTO = "auto"
stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


def say(word: str, *values: object) -> None:
    print(word, *values, flush=True)


def told(word: str) -> Callable[[Iterable[Any]], None]:
    return lambda places: say(word, *sorted(place.partition for place in places))


def protocol(strategy: str) -> dict[str, Any]:
    """Return the settings of a group protocol in the names that Penstock and librdkafka share."""
    if strategy == KIP_848:
        return {"group.protocol": "consumer"}
    if strategy == AUTO:
        return {"group.protocol": "auto"}
    times = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300}
    return {**times, "partition.assignment.strategy": strategy}


def penstock_member(servers: str, group: str, topic: str, strategy: str, release: str) -> None:
    from penstock import Consumer

    config = {"group.id": group, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200}
    config |= {"api.version.request": not release, **protocol(strategy)}
    with Consumer(servers, config) as consumer:
        consumer.subscribe(topic, on_assigned=told("+"), on_revoked=told("-"))
        while not stopping:
            for record in consumer.poll(100):
                say("r", record.partition, record.offset, (record.value or b"").decode())


def penstock_async_member(servers: str, group: str, topic: str, strategy: str, release: str) -> None:
    from penstock.client import AsyncConsumer

    async def consume() -> None:
        options: dict[str, Any] = {"group_id": group, "auto_offset_reset": "earliest"}
        options |= {"auto_commit_interval_ms": 200, "api_version_request": not release}
        async with AsyncConsumer(servers, protocol(strategy), **options) as consumer:
            consumer.subscribe(topic, on_assigned=told("+"), on_revoked=told("-"))
            while not stopping:
                for record in await consumer.poll(100):
                    say("r", record.partition, record.offset, (record.value or b"").decode())

    asyncio.run(consume())


def confluent_member(servers: str, group: str, topic: str, strategy: str, release: str) -> None:
    from confluent_kafka import Consumer

    old = {"api.version.request": False, "broker.version.fallback": "0.9.0.1"} if release else {}
    consumer = Consumer(
        {
            **old,
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            **protocol(strategy),
        }
    )
    assigned, revoked = told("+"), told("-")
    consumer.subscribe(
        [topic], on_assign=lambda _, places: assigned(places), on_revoke=lambda _, places: revoked(places)
    )
    try:
        while not stopping:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                say("r", message.partition(), message.offset(), message.value().decode())
    finally:
        consumer.close()


def kafka_python_member(servers: str, group: str, topic: str, strategy: str, release: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        on_partitions_assigned = staticmethod(told("+"))
        on_partitions_revoked = staticmethod(told("-"))

    old = {"api_version": (0, 9)} if release else {}
    consumer = KafkaConsumer(
        **old,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=300,
        auto_commit_interval_ms=200,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    consumer.subscribe([topic], listener=Listener())
    # A leader whose metadata changes while it joins may forget its assignment (FINDINGS.md).
    consumer.partitions_for_topic(topic)
    while not stopping:
        for records in consumer.poll(100).values():
            for record in records:
                say("r", record.partition, record.offset, record.value.decode())
    consumer.close()


def aiokafka_member(servers: str, group: str, topic: str, strategy: str, release: str) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            told("+")(assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            told("-")(revoked)

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=6_000,
            heartbeat_interval_ms=300,
            auto_commit_interval_ms=200,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        await consumer.start()
        consumer.subscribe([topic], listener=Listener())
        try:
            while not stopping:
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    for record in records:
                        say("r", record.partition, record.offset, record.value.decode())
        finally:
            await consumer.stop()

    asyncio.run(consume())


def penstock_auto_member(servers: str, group: str, topic: str, strategy: str, release: str) -> None:
    """Run a Penstock member that uses the newest group protocol that the broker offers."""
    penstock_member(servers, group, topic, AUTO, release)


MEMBERS = {
    "penstock": penstock_member,
    "penstock-auto": penstock_auto_member,
    "penstock-async": penstock_async_member,
    "confluent": confluent_member,
    "kafka-python": kafka_python_member,
    "aiokafka": aiokafka_member,
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    _, kind, servers, group, topic, *rest = sys.argv
    MEMBERS[kind](servers, group, topic, *rest)
