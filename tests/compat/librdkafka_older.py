"""librdkafka set for old brokers: "write SERVERS TOPIC RELEASE", and "read SERVERS TOPIC RELEASE GROUP".

The client sends no ApiVersions request, and uses `broker.version.fallback` instead. The writer sends numbers
to three partitions in turn, and prints "ack N" when number N is acknowledged. The reader prints each record
as "r PARTITION VALUE". Without GROUP the reader assigns itself the partitions, since brokers before 0.9 have
no groups.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

PARTITIONS = 3


def settings(servers: str, release: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "api.version.request": False,
        "broker.version.fallback": release,
        **more,
    }


def write(servers: str, topic: str, release: str) -> None:
    options = {"max.in.flight": 1, "message.send.max.retries": 1000, "request.required.acks": -1}
    producer = Producer(settings(servers, release, **options))
    for number in itertools.count():
        done: list[Any] = []
        while not done or done[0] is not None:
            done.clear()
            producer.produce(
                topic,
                b"%d" % number,
                partition=number % PARTITIONS,
                on_delivery=lambda error, _, done=done: done.append(error),
            )
            while not done:
                producer.poll(0.5)
        print("ack", number, flush=True)


def read(servers: str, topic: str, release: str, group: str) -> None:
    options = {"group.id": group or "none", "auto.offset.reset": "earliest", "session.timeout.ms": 10_000}
    consumer = Consumer(settings(servers, release, **options, **{"enable.auto.commit": bool(group)}))
    if group:
        consumer.subscribe([topic])
    else:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    while True:
        message = consumer.poll(1)
        if message is not None:
            if message.error():
                print("again", KafkaException(message.error()), file=sys.stderr, flush=True)
            else:
                print("r", message.partition(), message.value().decode(), flush=True)


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
