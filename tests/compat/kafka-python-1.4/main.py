"""kafka-python 1.4, of 2019: "write SERVERS TOPIC" until it is killed, and "read SERVERS TOPIC GROUP".

The writer sends numbers to three partitions in turn, and prints "ack N" when number N is acknowledged. The
reader prints each record as "r PARTITION VALUE".
"""

from __future__ import annotations

import itertools
import sys

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

PARTITIONS = 3


def write(servers: str, topic: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=servers, acks="all", retries=1000, max_in_flight_requests_per_connection=1
    )
    for number in itertools.count():
        while True:
            try:
                producer.send(topic, b"%d" % number, partition=number % PARTITIONS).get(60)
                break
            except KafkaError as error:
                print("again", repr(error), file=sys.stderr, flush=True)
        print("ack", number, flush=True)


def read(servers: str, topic: str, group: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
    )
    for record in consumer:
        print("r", record.partition, record.value.decode(), flush=True)


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
