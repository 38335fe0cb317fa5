"""The application that tests record and replay: it writes ten orders and reads them in a group."""

from __future__ import annotations

import json
from functools import cache

from penstock import Consumer, Producer
from testing.replay.talks import tapped

COUNT = 10


def order(number: int) -> bytes:
    return json.dumps({"n": number, "customer": {"email": f"a{number % 3}@x.org"}}).encode()


def write_orders(servers: str, count: int = COUNT, topic: str = "orders") -> None:
    with Producer(servers, config={"client.id": "shop"}) as producer:
        for number in range(count):
            producer.send(topic, order(number), key=b"k%d" % number, headers=[("trace", b"t-%d" % number)])


def read_orders(servers: str, count: int = COUNT) -> list[bytes | None]:
    settings = {"client.id": "desk"}
    with Consumer(servers, group_id="desk", auto_offset_reset="earliest", config=settings) as consumer:
        consumer.subscribe(["orders"])
        rows: list[bytes | None] = []
        while len(rows) < count:
            rows += [row.value for row in consumer.poll(timeout_ms=10_000)]
        consumer.commit()
    return rows


@cache
def capture() -> bytes:
    """Run the application with a broker, and return the capture of their traffic."""
    with tapped() as (tap, servers):
        write_orders(servers)
        assert len(read_orders(servers)) == COUNT
        return tap.capture()
