"""kafka-python 0.9, of 2015: "write SERVERS TOPIC" until it is killed, and "read SERVERS TOPIC GROUP".

The writer sends numbers to three partitions in turn, and prints "ack N" when number N is acknowledged. The
reader prints each record as "r PARTITION VALUE". The library uses the name ``async``, which is now a Python
keyword, so the name is changed when the library is loaded.
"""

from __future__ import annotations

import importlib.machinery
import itertools
import re
import sys
import time
from typing import Any

PARTITIONS = 3


class Renaming(importlib.machinery.SourceFileLoader):
    """A module loader that replaces ``async`` with ``async_`` in the source of kafka-python."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        return super().source_to_code(re.sub(rb"\basync\b", b"async_", bytes(data)), path)


class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
        spec = super().find_spec(fullname, path, target)
        if spec is not None and fullname.startswith("kafka") and spec.origin is not None:
            spec.loader = Renaming(fullname, spec.origin)
        return spec


def write(servers: str, topic: str) -> None:
    from kafka import KafkaClient, SimpleProducer
    from kafka.common import KafkaError

    def connected() -> Any:
        client = KafkaClient(servers, timeout=20)
        client.ensure_topic_exists(topic)
        return client, SimpleProducer(client, req_acks=-1, ack_timeout=10_000)

    client, producer = connected()
    for number in itertools.count():
        while True:
            try:
                [response] = producer._send_messages(topic.encode(), number % PARTITIONS, b"%d" % number)
                assert response.error == 0, response
                break
            except (KafkaError, AssertionError) as error:
                print("again", repr(error), file=sys.stderr, flush=True)
                time.sleep(0.2)
                client.close()
                while True:
                    try:
                        client, producer = connected()
                        break
                    except Exception as error:
                        print("away", repr(error), file=sys.stderr, flush=True)
                        time.sleep(0.5)
        print("ack", number, flush=True)


def read(servers: str, topic: str, group: str) -> None:
    from kafka import KafkaClient, SimpleConsumer

    while True:
        try:
            client = KafkaClient(servers, timeout=20)
            client.ensure_topic_exists(topic)
            consumer = SimpleConsumer(
                client,
                group.encode(),
                topic.encode(),
                auto_commit_every_n=50,
                auto_offset_reset="smallest",
                max_buffer_size=1 << 22,
            )
            consumer.provide_partition_info()
            while True:
                found = consumer.get_message(block=True, timeout=1)
                if found is not None:
                    partition, message = found
                    print("r", partition, message.message.value.decode(), flush=True)
        except Exception as error:
            print("again", repr(error), file=sys.stderr, flush=True)
            time.sleep(0.5)


if __name__ == "__main__":
    sys.meta_path.insert(0, Finder)
    {"write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
