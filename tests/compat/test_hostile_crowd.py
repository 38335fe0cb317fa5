"""Clients that violate the protocol do not disturb librdkafka, and the broker's memory stays bounded."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from broker.bench_node import batch_of, produce_request
from broker.test_process import process
from broker.wire_client import WireClient
from compat.peers import PATIENCE_S
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.compat

REQUEST_BYTES = 64 << 20
GROWTH_BYTES_MAX = REQUEST_BYTES + (96 << 20)
"""The limit in bytes for the growth of the broker's memory.

It is the sum of the limit for requests that are being received, as much again for queued requests, and 32
MiB of spare buffers.
"""

RATE_MIN = 50
"""Records per second that the well-behaved client must write and read on an otherwise idle machine."""

MISERY = "misery"
"""The topic that the hostile clients use; the well-behaved client uses another one."""

Trick = Callable[[int, random.Random], None]


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def garbage(port: int, rng: random.Random) -> None:
    with connected(port) as peer:
        peer.sendall(rng.randbytes(rng.randrange(1, 5000)))


def wild_sizes(port: int, rng: random.Random) -> None:
    with connected(port) as peer:
        peer.sendall(struct.pack(">i", rng.choice([-1, 0, 1, 3, 100 << 20, (100 << 20) + 1, (1 << 31) - 1])))
        peer.sendall(rng.randbytes(50))
        peer.settimeout(0.05)
        peer.recv(1)


def random_bodies(port: int, rng: random.Random) -> None:
    """Send a valid request header of a random API, followed by random bytes."""
    with connected(port) as peer:
        key = rng.choice([0, 1, 2, 8, 9, 10, 11, 12, 13, 14, 18, 22, 23, 32, 37, 60, 75])
        body = struct.pack(">hhih", key, rng.randrange(18), 1, -1) + rng.randbytes(rng.randrange(200))
        peer.sendall(struct.pack(">i", len(body)) + body)
        peer.settimeout(0.05)
        peer.recv(100)


def damaged_produce(port: int, rng: random.Random) -> None:
    with WireClient(port, timeout_s=5) as client:
        data = bytearray(client.bytes_of(produce_request(batch_of(b"v" * 2000), topic=MISERY), 9))
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        client.socket.sendall(data[: rng.randrange(5, len(data) + 1)])
        client.socket.settimeout(0.05)
        client.socket.recv(100)


def large_frames_that_stall(port: int, rng: random.Random) -> None:
    with connected(port) as peer:
        peer.sendall(struct.pack(">i", 90 << 20))
        for _ in range(rng.randrange(100)):
            peer.sendall(bytes(1 << 18))
        time.sleep(0.2)


def answers_nobody_reads(port: int, rng: random.Random) -> None:
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 26)
    request = FetchRequest(
        min_bytes=1, max_wait_ms=100, topics=[FetchTopic(topic=MISERY, partitions=[place])]
    )
    with WireClient(port, timeout_s=5) as client:
        client.socket.sendall(client.bytes_of(request, 12) * rng.randrange(1, 200))
        time.sleep(0.3)


def endless_waits(port: int, rng: random.Random) -> None:
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = FetchTopic(topic=MISERY + "2", partitions=[place] * rng.randrange(1, 100_000))
    with WireClient(port, timeout_s=5) as client:
        client.send(FetchRequest(min_bytes=1 << 30, max_wait_ms=(1 << 31) - 1, topics=[topic]), 4)
        time.sleep(0.3)


def half_open(port: int, rng: random.Random) -> None:
    """Open connections that send nothing or an incomplete frame size; close some of them with a reset."""
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            peer = stack.enter_context(connected(port))
            if rng.random() < 0.5:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.sendall(b"\0\0\1"[: rng.randrange(4)])
        time.sleep(0.2)


TRICKS: list[Trick] = [
    garbage,
    wild_sizes,
    random_bodies,
    damaged_produce,
    large_frames_that_stall,
    answers_nobody_reads,
    endless_waits,
    half_open,
]


def misbehave(trick: Trick, port: int, stopping: threading.Event) -> None:
    rng = random.Random(trick.__name__)
    while not stopping.is_set():
        # Being thrown out is what the crowd is here for.
        with contextlib.suppress(OSError):
            trick(port, rng)


class GoodClient:
    """A well-behaved client: librdkafka's idempotent producer and a consumer, with the errors they report."""

    def __init__(self, port: int) -> None:
        self.noticed: list[str] = []
        self.acknowledged: list[int] = []
        self.read: list[int] = []
        common = {"bootstrap.servers": f"127.0.0.1:{port}", "error_cb": self._notice, "log_level": 0}
        self._producer = Producer({**common, "enable.idempotence": True, "linger.ms": 1})
        self._consumer = Consumer({**common, "group.id": "good", "auto.offset.reset": "earliest"})
        self._consumer.assign([TopicPartition("good", 0, 0)])

    def _notice(self, error: KafkaError) -> None:
        self.noticed.append(str(error))

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._notice(error)
        self.acknowledged.append(int(message.value()))

    def work(self, seconds: float) -> None:
        """Write and read records for `seconds`, and longer until RATE_MIN records per second were read."""
        number, began = 0, time.monotonic()
        while (took_s := time.monotonic() - began) < seconds or len(self.read) < RATE_MIN * seconds:
            assert took_s < seconds + PATIENCE_S, f"{len(self.read)} records in {took_s:.0f} s"
            for _ in range(10):
                self._producer.produce("good", b"%d" % number, partition=0, on_delivery=self._delivered)
                number += 1
            self._producer.poll(0.01)
            self._take()
        assert self._producer.flush(PATIENCE_S) == 0
        while len(self.read) < number:
            self._take()
        self._consumer.close()

    def _take(self) -> None:
        for message in self._consumer.consume(1000, 0.01):
            if message.error():
                self._notice(message.error())
            else:
                self.read.append(int(message.value()))


def resident_bytes(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def stand(tmp_path: Path, seconds: float) -> None:
    settings = ["--config", f"queued.max.request.bytes={REQUEST_BYTES}"]
    with process("--data-dir", str(tmp_path), *settings) as broker:
        with WireClient(broker.port) as client:
            names = [MetadataRequestTopic(name=name) for name in ("good", MISERY, MISERY + "2")]
            client.ask(MetadataRequest(topics=names), 4)
            for _ in range(20):
                client.ask(produce_request(batch_of(b"m" * 900_000), topic=MISERY), 9)
        before = resident_bytes(broker.popen.pid)
        stopping = threading.Event()
        crowd = [threading.Thread(target=misbehave, args=(trick, broker.port, stopping)) for trick in TRICKS]
        largest = 0

        def watch() -> None:
            nonlocal largest
            while not stopping.wait(0.05):
                largest = max(largest, resident_bytes(broker.popen.pid))

        crowd.append(threading.Thread(target=watch))
        for thread in crowd:
            thread.start()
        try:
            good = GoodClient(broker.port)
            good.work(seconds)
        finally:
            stopping.set()
            for thread in crowd:
                thread.join(PATIENCE_S)
        assert broker.popen.poll() is None
    assert good.noticed == []
    assert good.acknowledged == list(range(len(good.acknowledged)))
    assert good.read == good.acknowledged
    assert largest - before < GROWTH_BYTES_MAX, f"{before} bytes before, {largest} at most"


def test_a_good_client_notices_nothing(tmp_path: Path) -> None:
    stand(tmp_path, 6)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_for_minutes(tmp_path: Path) -> None:
    stand(tmp_path, 180)
