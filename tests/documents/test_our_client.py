"""Tests of the bytes that Penstock's producer and consumer send to a 0.8 broker.

Requests are decoded by the grammar of "A Guide To The Kafka Protocol".
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from documents.raw import (
    FETCH,
    METADATA,
    OFFSETS,
    PRODUCE,
    Raw,
    Reader,
    array,
    data,
    i16,
    i32,
    i64,
    message,
    message_set,
    messages_in,
    string,
)
from penstock import Consumer, Producer, TopicPartition

TOPIC, CLIENT = "t", "größe"
OLD = {"api_version_request": False, "client_id": CLIENT}


class Scripted:
    """A fake 0.8 broker with one topic and one message, which records the requests it receives."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.seen: list[tuple[int, Reader]] = []
        """The API key and the body of each request that the broker has received."""
        self.correlations: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def of(self, api: int) -> Reader:
        """Return the body of the first request of an API."""
        return next(body for key, body in self.seen if key == api)

    def all_of(self, api: int, count: int) -> list[Reader]:
        """Wait until `count` requests of an API have arrived, and return the bodies of all of them."""
        deadline = time.monotonic() + 20
        while len(found := [body for key, body in self.seen if key == api]) < count:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return found

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        raw = Raw.__new__(Raw)
        raw.socket = accepted
        with raw:
            while (frame := raw.frame()) is not None:
                head = Reader(frame)
                key, version, correlation, client = head.i16(), head.i16(), head.i32(), head.name()
                assert (version, client) == (0, CLIENT)
                body = Reader(frame[head.at :])
                self.seen.append((key, body))
                self.correlations.append(correlation)
                answer = self._answer(key, body)
                if answer is not None:
                    accepted.sendall(data(i32(correlation) + answer))

    def _answer(self, key: int, body: Reader) -> bytes | None:
        of_topic = array([string(TOPIC) + i32(1) + i32(0)])
        if key == METADATA:
            partition = i16(0) + i32(0) + i32(1) + array([i32(1)]) + array([i32(1)])
            brokers = array([i32(1) + string("127.0.0.1") + i32(self.port)])
            return brokers + array([i16(0) + string(TOPIC) + array([partition])])
        if key == PRODUCE:
            return of_topic + i16(0) + i64(0) if body.body[:2] != i16(0) else None
        if key == FETCH:
            return of_topic + i16(0) + i64(1) + data(message_set(message(b"v", b"k")))
        assert key == OFFSETS
        return of_topic + i16(0) + array([i64(0)])


@pytest.fixture
def broker() -> Iterator[Scripted]:
    made = Scripted()
    yield made
    made.close()


@pytest.mark.parametrize("acks", [0, 1, -1, 2])
def test_what_is_produced(broker: Scripted, acks: int) -> None:
    with Producer(bootstrap_servers=f"127.0.0.1:{broker.port}", acks=acks, **OLD) as producer:
        for key, value in ((b"k", b"v"), (b"gone", None)):
            producer.send(TOPIC, value, key=key)
            producer.flush()
    rows = []
    for body in broker.all_of(PRODUCE, 2):
        assert body.i16() == acks
        assert body.i32() > 0
        assert (body.i32(), body.name(), body.i32(), body.i32()) == (1, TOPIC, 1, 0)
        found, rest = messages_in(body.data() or b"")
        body.end()
        assert rest == b""
        rows += [row[2:] for row in found]
    assert rows == [(b"k", b"v"), (b"gone", None)]
    assert len(set(broker.correlations)) == len(broker.correlations)


def test_what_is_fetched(broker: Scripted) -> None:
    with Consumer(
        bootstrap_servers=f"127.0.0.1:{broker.port}", auto_offset_reset="earliest", **OLD
    ) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        rows = []
        while not rows:
            rows = [(row.key, row.value) for row in consumer.poll(timeout_ms=200)]
    assert rows == [(b"k", b"v")]
    asked = broker.of(OFFSETS)
    assert (asked.i32(), asked.i32(), asked.name(), asked.i32(), asked.i32()) == (-1, 1, TOPIC, 1, 0)
    assert (asked.i64(), asked.i32()) == (-2, 1)
    asked.end()
    body = broker.of(FETCH)
    assert body.i32() == -1
    assert body.i32() >= 0
    assert body.i32() >= 0
    assert (body.i32(), body.name(), body.i32(), body.i32(), body.i64()) == (1, TOPIC, 1, 0, 0)
    assert body.i32() > 0
    body.end()
