"""Correct uses of the public API, which type checkers must accept. Checked, never run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from penstock import (
    Admin,
    Broker,
    Consumer,
    Producer,
    Record,
    TopicPartition,
    read_log,
    read_topic,
    read_topic_async,
    scan_log,
    scan_topic,
    scan_topic_async,
    write_topic,
    write_topic_async,
)
from penstock.client import (
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    ConsumerOptions,
    NewTopic,
    OffsetAndMetadata,
    ProducerOptions,
)
from penstock.testing import KafkaBroker

SERVERS = "localhost:9092"
T0 = TopicPartition("orders", 0)
TABLE: pa.Table = pa.table({"value": ["x"]})


def by_length(key: bytes | None, count: int) -> int | None:
    return None if key is None else len(key) % count


Producer(SERVERS)  # 1
Producer([SERVERS, "other:9092"], acks="all", linger_ms=5)  # 2
Producer(bootstrap_servers=SERVERS, acks=1, compression_type="zstd")  # 3
Producer(SERVERS, {"linger.ms": "5", "acks": "all"})  # 4
Producer(config={"bootstrap.servers": SERVERS})  # 5
Producer(SERVERS, partitioner=by_length)  # 6
Producer(SERVERS, partitioner="consistent_random")  # 7
Producer(SERVERS, transactional_id="billing", transaction_timeout_ms=10_000)  # 8
Producer(SERVERS, security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-256", sasl_username="ada")  # 9
Producer(SERVERS, enable_idempotence=False, retries=0)  # 10
AsyncProducer(SERVERS, linger_ms=0.5, batch_size=16_384)  # 11
producer_options: ProducerOptions = {"acks": "all", "linger_ms": 5}  # 12
Producer(SERVERS, **producer_options)  # 13
any_options: dict[str, Any] = {"linger.ms": 5}
Producer(SERVERS, **any_options)  # 14
Consumer(SERVERS, group_id="billing", auto_offset_reset="earliest")  # 15
Consumer(SERVERS, auto_offset_reset="by_duration:PT1H", isolation_level="read_committed")  # 16
Consumer(SERVERS, enable_auto_commit=False, max_poll_records=10)  # 17
Consumer(SERVERS, partition_assignment_strategy=["range", "cooperative-sticky"])  # 18
AsyncConsumer(SERVERS, fetch_max_wait_ms=100)  # 19
consumer_options: ConsumerOptions = {"group_id": "billing", "check_crcs": True}
AsyncConsumer(SERVERS, **consumer_options)  # 20
Admin(SERVERS, request_timeout_ms=1_000)  # 21
AsyncAdmin([SERVERS], client_id="tool")  # 22
Broker(num_partitions=3, log_retention_ms=-1)  # 23
Broker("data", port=9092, as_version="3.9", auto_create_topics_enable=False)  # 24
Broker(config={"num.partitions": 3}, security="SASL_SSL")  # 25
KafkaBroker(num_partitions=3)  # 26


def rows(producer: Producer, consumer: Consumer) -> list[Record]:
    producer.send("orders", b"two tickets", key=b"ada", timestamp=datetime.now(UTC))  # 27
    producer.send("orders", None, headers=[("trace", b"1")], partition=0).result(timeout=10)  # 28
    producer.send_arrow("orders", TABLE, fields={"key": "user"})  # 29
    with producer.transaction():  # 30
        producer.send_offsets({T0: 3}, consumer)
    consumer.subscribe(["orders"], on_assigned=lambda partitions: print(partitions))  # 31
    consumer.subscribe(re.compile("orders-.*"))  # 32
    consumer.assign([T0, ("orders", 1)])  # 33
    consumer.seek(("orders", 0), 42)  # 34
    consumer.commit({T0: OffsetAndMetadata(3, "")})  # 35
    found: dict[TopicPartition, int | None] = consumer.offsets_for_times({T0: datetime.now(UTC)})  # 36
    print(found)
    return consumer.poll(timeout_ms=100)  # 37


def settings(admin: Admin) -> None:
    admin.create_topic("orders", partitions=6, config={"retention.ms": "-1"})  # 38
    admin.create_topics([NewTopic("orders", 3), "logs"])  # 39
    admin.alter_config("orders", set={"retention.ms": 3_600_000})  # 40
    admin.delete_records({T0: 42})  # 41


def tables() -> int:
    read_topic("orders", SERVERS, start="1h", end=datetime.now(UTC), columns=["value"])  # 42
    read_topic("orders", SERVERS, start={0: 5, 1: "latest"}, partitions=[0, 1])  # 43
    read_topic("orders", SERVERS, last=timedelta(hours=1), limit=10)  # 44
    scan = scan_topic("orders", [SERVERS], start=date(2026, 1, 31), config={"check.crcs": False})
    for batch in scan:  # 45
        print(batch)
    pa.table(scan)
    write_topic(scan, "copy", SERVERS, compression="lz4")  # 46
    write_topic([TABLE, TABLE], "copy", SERVERS, config={"linger.ms": 5})  # 47
    read_topic(["orders", "returns"], SERVERS, key=b"k", partitioner="murmur2_random")
    scan_topic(re.compile("orders-.*"), SERVERS, follow=True, limit=5, start="latest").close()
    read_log("data", "orders", last=100, partitions=0)  # 48
    return write_topic(scan_log("data"), "copy", SERVERS).rows


async def twins(producer: AsyncProducer, options: Mapping[str, object]) -> None:
    await (await producer.send("orders", b"x"))  # 49
    print(await read_topic_async("orders", SERVERS, config=options))
    await write_topic_async(scan_topic_async("orders", SERVERS, limit=5), "copy", SERVERS)  # 50


def as_json(value: dict[str, int]) -> bytes:
    return json.dumps(value).encode()


async def types_of_records(plain: Producer, texts: Consumer[str, str]) -> None:
    Producer(SERVERS, key_serializer=str.encode).send("orders", b"x", key="ada")  # 51
    tickets = Producer(SERVERS, value_serializer=as_json, linger_ms=5)
    tickets.send("orders", {"tickets": 2}, key=b"ada")  # 52
    found: list[Record[str, str]] = texts.poll()  # 53
    print(len((found[0].key or "") + (found[0].value or "")))
    for record in Consumer(SERVERS, value_deserializer=bytes.decode, group_id="billing"):  # 54
        name: str | None = record.value
        key: bytes | None = record.key
        print(name, key)
    producer: Producer[bytes, bytes] = plain  # 55
    print(producer)
    both: Producer[str, dict[str, int]] = Producer(  # 56
        SERVERS, key_serializer=str.encode, value_serializer=as_json
    )
    both.send("orders", {"tickets": 2}, key="ada")
    counts = AsyncConsumer(SERVERS, key_deserializer=int, value_deserializer=json.loads)  # 57
    count: int | None = (await counts.poll())[0].key
    print(count)
    await AsyncProducer(SERVERS, value_serializer=as_json).send_and_wait("orders", {"tickets": 2})  # 58
    Consumer(SERVERS, {"value.deserializer": bytes.decode})  # 59
    record_of_bytes: Record = Consumer(SERVERS).poll()[0]  # 60
    print(record_of_bytes.event)
