"""Wrong uses of the public API, each of which type checkers must refuse. Checked, never run.

An unnecessary ignore comment is an error itself: of mypy by warn_unused_ignores, of pyright by
reportUnnecessaryTypeIgnoreComment.
"""

from __future__ import annotations

import pyarrow as pa

from penstock import (
    Admin,
    Broker,
    Consumer,
    Producer,
    TopicPartition,
    read_log,
    read_topic,
    scan_topic,
    scan_topic_async,
    write_topic,
)
from penstock.client import AsyncAdmin, AsyncConsumer, AsyncProducer, ConsumerOptions, ProducerOptions
from penstock.testing import KafkaBroker

SERVERS = "localhost:9092"
T0 = TopicPartition("orders", 0)
TABLE: pa.Table = pa.table({"value": ["x"]})

Producer(9092)  # type: ignore  # 1
Producer(SERVERS, lingre_ms=5)  # type: ignore  # 2
Producer(SERVERS, linger_ms="5")  # type: ignore  # 3
Producer(SERVERS, acks="two")  # type: ignore  # 4
Producer(SERVERS, acks=-2)  # type: ignore  # 5
Producer(SERVERS, compression_type="lzma")  # type: ignore  # 6
Producer(SERVERS, group_id="billing")  # type: ignore  # 7
Producer(SERVERS, batch_size=1.5)  # type: ignore  # 8
Producer(SERVERS, enable_idempotence="yes")  # type: ignore  # 9
Producer(SERVERS, partitioner="random")  # type: ignore  # 10
Producer(SERVERS, partitioner=lambda key: 0)  # type: ignore  # 11
Producer(SERVERS, transactional_id=7)  # type: ignore  # 12
Producer(SERVERS, security_protocol="TLS")  # type: ignore  # 13
Producer(SERVERS, sasl_mechanism="SCRAM")  # type: ignore  # 14
Producer(SERVERS, ["linger.ms"])  # type: ignore  # 15
AsyncProducer(SERVERS, max_poll_records=5)  # type: ignore  # 16
producer_options: ProducerOptions = {"ack": "all"}  # type: ignore  # 17
consumer_options: ConsumerOptions = {"check_crcs": "no"}  # type: ignore  # 18
Consumer(SERVERS, group="billing")  # type: ignore  # 19
Consumer(SERVERS, isolation_level="serializable")  # type: ignore  # 20
Consumer(SERVERS, auto_offset_reset=0)  # type: ignore  # 21
Consumer(SERVERS, max_poll_records="10")  # type: ignore  # 22
Consumer(SERVERS, partition_assignment_strategy=5)  # type: ignore  # 23
AsyncConsumer(SERVERS, linger_ms=5)  # type: ignore  # 24
Admin(SERVERS, acks="all")  # type: ignore  # 25
AsyncAdmin(SERVERS, client_id=5)  # type: ignore  # 26
Broker(num_partition=3)  # type: ignore  # 27
Broker(num_partitions="three")  # type: ignore  # 28
Broker(port="9092")  # type: ignore  # 29
KafkaBroker(auto_create_topics_enable="no")  # type: ignore  # 30


def rows(producer: Producer, consumer: Consumer) -> None:
    producer.send("orders", "two tickets", mode="binry")  # type: ignore  # 31
    producer.send(["orders"], b"x")  # type: ignore  # 32
    producer.send("orders", b"x", key="ada", partition="0")  # type: ignore  # 33
    producer.send("orders", b"x", timestamp="now")  # type: ignore  # 34
    producer.send_arrow("orders", TABLE, field={"key": "user"})  # type: ignore  # 35
    consumer.assign("orders")  # type: ignore  # 36
    consumer.assign([("orders", "0")])  # type: ignore  # 37
    consumer.seek("orders", 42)  # type: ignore  # 38
    consumer.seek(T0, "42")  # type: ignore  # 39
    consumer.poll("1000")  # type: ignore  # 40
    consumer.commit([T0])  # type: ignore  # 41
    consumer.subscribe(7)  # type: ignore  # 42
    consumer.offsets_for_times({T0: "now"})  # type: ignore  # 43


def tables(admin: Admin) -> None:
    admin.create_topic("orders", partitions="6")  # type: ignore  # 44
    read_topic(b"orders", SERVERS)  # type: ignore  # 45
    read_topic("orders", SERVERS, start=1.5)  # type: ignore  # 46
    scan_topic("orders", SERVERS, limit="5")  # type: ignore  # 47
    scan_topic("orders", SERVERS, follow=True, end=5)  # type: ignore  # a scan that follows has no end
    read_topic("orders", SERVERS, key="k")  # type: ignore  # keys are bytes
    write_topic(5, "orders", SERVERS)  # type: ignore  # 48
    read_log(b"data", "orders")  # type: ignore  # 49
    for batch in scan_topic_async("orders", SERVERS):  # type: ignore  # 50
        print(batch)


def types_of_records(plain: Producer, texts: Consumer[str, str]) -> None:
    Producer(SERVERS, value_serializer="StringSerializer")  # type: ignore  # 51
    Producer(SERVERS, value_serializer=str.encode).send("orders", b"x")  # type: ignore  # 52
    Producer(SERVERS, key_serializer=str.encode).send("orders", key=7)  # type: ignore  # 53
    Producer(SERVERS, value_deserializer=bytes.decode)  # type: ignore  # 54
    plain.send("orders", {"tickets": 2})  # type: ignore  # 55
    number: int = texts.poll()[0].value  # type: ignore  # 56
    print(number)
    Consumer(SERVERS, value_deserializer=str.encode)  # type: ignore  # 57
    for record in AsyncConsumer(SERVERS, value_deserializer=bytes.decode):  # type: ignore  # 58
        print(record)
    other: Producer[str, str] = plain  # type: ignore  # 59
    print(other)
    Consumer(SERVERS, key_deserializer=int).poll()[0].key.decode()  # type: ignore  # 60
