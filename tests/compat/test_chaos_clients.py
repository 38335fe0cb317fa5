"""Chaos tests of other clients' applications, checked only with input records, output records and offsets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from compat.peers import LEAKY_CLIENTS, need_module
from penstock import Producer
from penstock.testing import KafkaBroker
from penstock.testing.chaos import ChaosError, History, Plan, explore
from penstock.testing.chaos.arming import Armed
from penstock.testing.chaos.events import Committed
from penstock.testing.chaos.plan import PlannedFault
from penstock.testing.chaos.runs import ChaosRun

need_module("confluent_kafka")
need_module("kafka")

pytestmark = [pytest.mark.compat, *LEAKY_CLIENTS]

ORDERS = 10
PATIENCE_S = 60.0


def is_over(history: History, since: float) -> bool:
    ends = [event.offsets for event in list(history.events) if isinstance(event, Committed)]
    return (bool(ends) and max(ends[-1].values()) >= ORDERS) or time.monotonic() > since + PATIENCE_S


def confluent(servers: str, history: History, *, before: bool) -> None:
    """Run a billing application on librdkafka.

    If `before` is true it has a bug: it commits offsets before it processes the records.
    """
    from confluent_kafka import Consumer as TheirConsumer
    from confluent_kafka import KafkaException
    from confluent_kafka import Producer as TheirProducer

    fast = {"bootstrap.servers": servers, "retry.backoff.ms": 1, "reconnect.backoff.ms": 1, "log_level": 0}
    settings = {"group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    started = time.monotonic()
    producer = TheirProducer({**fast, "enable.idempotence": True, "linger.ms": 0})
    consumer = TheirConsumer({**fast, **settings})
    consumer.subscribe(["orders"])

    def bill(messages: list[Any]) -> None:
        for message in messages:
            producer.produce("bills", b"bill", key=message.key())
        assert producer.flush(PATIENCE_S) == 0

    try:
        while not is_over(history, started):
            messages = [each for each in consumer.consume(4, 0.02) if each.error() is None]
            if not messages:
                continue
            try:
                if not before:
                    bill(messages)
                consumer.commit(message=messages[-1], asynchronous=False)
                if before:
                    bill(messages)
            except KafkaException:
                continue  # the group has gone on: the next poll joins again
    finally:
        consumer.close()


def kafka_python(servers: str, history: History, *, before: bool) -> None:
    """Run the billing application on kafka-python.

    If `before` is true it commits offsets before it processes the records.
    """
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError

    fast = {
        "bootstrap_servers": servers,
        "reconnect_backoff_ms": 1,
        "retry_backoff_ms": 1,
        "metadata_max_age_ms": 200,
    }
    started = time.monotonic()
    producer = KafkaProducer(**fast, retries=20)
    consumer = KafkaConsumer(
        **fast, group_id="billing", auto_offset_reset="earliest", enable_auto_commit=False
    )
    consumer.partitions_for_topic("orders")  # else it may join without metadata, and get no partition
    consumer.subscribe(["orders"])
    try:
        while not is_over(history, started):
            found = [record for some in consumer.poll(20, max_records=4).values() for record in some]
            if not found:
                continue
            try:
                if before:
                    consumer.commit()
                for record in found:
                    producer.send("bills", b"bill", key=record.key).get(PATIENCE_S)
                if not before:
                    consumer.commit()
            except KafkaError:
                continue
    finally:
        consumer.close()
        producer.close()


def billed_by(application: Callable[..., None], **settings: Any) -> Callable[..., None]:
    def test(kafka_broker: KafkaBroker, kafka_history: History, kafka_chaos: ChaosRun) -> None:
        with kafka_chaos.paused():
            kafka_broker.create_topic("orders")
            kafka_broker.create_topic("bills")
            with Producer(kafka_broker.bootstrap_servers) as producer:
                for number in range(ORDERS):
                    producer.send("orders", b"order", key=b"%d" % number)
        kafka_history.flow("orders", "bills", group="billing")
        application(kafka_broker.bootstrap_servers, kafka_history, **settings)

    return test


FAULTS = ["errors", "leaders_move", "delays"]
"""Faults that these clients recover from at once; reconnecting or rejoining takes them seconds."""


@pytest.mark.parametrize("application", [confluent, kafka_python], ids=lambda each: each.__name__)
def test_a_defect_is_named_without_hooks(application: Callable[..., None]) -> None:
    with pytest.raises(ChaosError, match="OffsetAheadOfWork: group billing committed orders-0 at 4"):
        explore(billed_by(application, before=True), seed=1, faults=FAULTS)


@pytest.mark.parametrize("application", [confluent, kafka_python], ids=lambda each: each.__name__)
def test_a_right_application_passes(application: Callable[..., None]) -> None:
    assert explore(billed_by(application, before=False), seed=2, runs=6, faults=FAULTS) == 6


def test_members_of_a_newer_group_are_expelled() -> None:
    from confluent_kafka import Consumer as TheirConsumer
    from confluent_kafka import KafkaException
    from confluent_kafka import TopicPartition as TheirPartition

    with KafkaBroker() as broker:
        broker.create_topic("orders")
        settings = {"group.id": "billing", "group.protocol": "consumer", "enable.auto.commit": False}
        consumer = TheirConsumer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **settings})
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.05)
        armed = Armed(broker, Plan(1, 1, (PlannedFault("rebalances", "OffsetCommit", 1),)))
        place = TheirPartition("orders", 0, 0)
        consumer.commit(offsets=[place], asynchronous=False)
        with pytest.raises(KafkaException, match=r"UNKNOWN_MEMBER|STALE_MEMBER|Unknown member"):
            consumer.commit(offsets=[place], asynchronous=False)
        armed.disarm()
        assert armed.happened == (1,)
        consumer.close()
