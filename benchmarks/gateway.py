"""Measure a gateway's cost: added microseconds per request, and gigabytes per second that a core forwards.

    python benchmarks/gateway.py [--quick] [--rounds N]

The broker and the gateway in front of it are separate processes. A raw socket sends requests to one and the
other in turn. Latency is measured with one request at a time, CPU (the gateway process's) with 50 requests in
flight. Bulk requests carry batches of 1 MB: Produce with five in flight, and Fetch 11 and 17 with 50 MB.
Fetch 17 responses may contain broker addresses, so the gateway must parse them.
"""

from __future__ import annotations

import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from broker_sides import Side, ask, penstock_side, receive
from harness import arguments, print_table
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch

IN_FLIGHT = 50
BULK_IN_FLIGHT = 5
BATCH_BYTES = 1_000_000
FETCH_BYTES = 50 << 20


@contextmanager
def gateway_to(broker: Side, *options: str) -> Iterator[Side]:
    """Run a gateway in front of a broker; `options` are further ones of its command line."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "gateway", "--to", broker.bootstrap, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        match = re.search(r"gateway at \S+:(\d+)", process.stdout.readline())
        if match is None:
            raise RuntimeError("the gateway did not start")
        yield Side("gateway", process.pid, int(match[1]), time.perf_counter() - begin)
    finally:
        process.kill()
        process.communicate()


class Asker:
    """A client connection that sends encoded requests."""

    def __init__(self, side: Side) -> None:
        self._socket = side.connect()
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(1 << 20))

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def skip(self, count: int = 1) -> int:
        """Read `count` responses without parsing them; return their size in bytes."""
        total, left, head = 0, 0, b""
        while count:
            if not left:
                while len(head) < 4:
                    head += self._socket.recv(4 - len(head))
                left, head = int.from_bytes(head, "big"), b""
                total += left
            left -= self._socket.recv_into(self._buffer, min(left, len(self._buffer)))
            if not left:
                count -= 1
        return total

    def close(self) -> None:
        self._socket.close()


def made(message: Message, version: int) -> bytes:
    return b"".join(map(bytes, encode_request(message, version, 1, "bench")))


def produce(topic: str, size: int, version: int) -> bytes:
    now_ms = int(time.time() * 1000)  # older records would be deleted while they are read
    batch = encode_batch([(None, bytes(size), (), now_ms)])
    part = PartitionProduceData(index=0, records=batch)
    named = TopicProduceData(name=topic, partition_data=[part])
    return made(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[named]), version)


def fetch(version: int, topic_id: bytes) -> bytes:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    topic = FetchTopic(topic="bulk" if version < 13 else "", topic_id=topic_id, partitions=[part])
    return made(FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=FETCH_BYTES, topics=[topic]), version)


def latency_us(asker: Asker, request: bytes, count: int) -> float:
    """Return the median time of a request in microseconds, with one request at a time."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        asker.send(request)
        asker.skip()
        found.append(time.perf_counter() - begin)
    return statistics.median(found) * 1e6


def pipelined(asker: Asker, request: bytes, count: int, in_flight: int) -> int:
    """Send requests with `in_flight` of them pending; return the size of all responses in bytes."""
    for _ in range(in_flight):
        asker.send(request)
    total = 0
    for number in range(count):
        total += asker.skip()
        if number < count - in_flight:
            asker.send(request)
    return total


def small(broker: Side, gateway: Side, requests: dict[str, bytes], rounds: int, count: int) -> None:
    rows = []
    for name, request in requests.items():
        direct, through, alone_cpu, cpu = [], [], [], []
        for _ in range(rounds):
            for side, found in ((broker, direct), (gateway, through)):
                asker = Asker(side)
                latency_us(asker, request, 50)
                before = gateway.cpu_seconds
                found.append(latency_us(asker, request, count))
                if side is gateway:
                    alone_cpu.append((gateway.cpu_seconds - before) / count * 1e6)
                asker.close()
            asker = Asker(gateway)
            pipelined(asker, request, IN_FLIGHT, IN_FLIGHT)
            before = gateway.cpu_seconds
            pipelined(asker, request, count, IN_FLIGHT)
            cpu.append((gateway.cpu_seconds - before) / count * 1e6)
            asker.close()
        alone, with_it = statistics.median(direct), statistics.median(through)
        rows.append(
            (
                name,
                f"{alone:.0f}",
                f"{with_it:.0f}",
                f"{with_it - alone:.0f}",
                f"{statistics.median(alone_cpu):.1f}",
                f"{statistics.median(cpu):.1f}",
            )
        )
    head = (
        "request",
        "direct µs",
        "gateway µs",
        "added µs",
        "CPU µs alone",
        f"CPU µs of {IN_FLIGHT} in flight",
    )
    print_table("One request", head, rows)


def bulk(broker: Side, gateway: Side, works: dict[str, Callable[[Asker], int]], rounds: int) -> None:
    rows = []
    for name, work in works.items():
        direct, through, a_core = [], [], []
        for _ in range(rounds):
            for side, found in ((broker, direct), (gateway, through)):
                asker = Asker(side)
                work(asker)
                cpu, begin = gateway.cpu_seconds, time.perf_counter()
                size = work(asker)
                found.append(size / (time.perf_counter() - begin) / 1e6)
                if side is gateway:
                    a_core.append(size / (gateway.cpu_seconds - cpu) / 1e9)
                asker.close()
        figures = (statistics.median(direct), statistics.median(through))
        rows.append((name, *(f"{each:,.0f}" for each in figures), f"{statistics.median(a_core):.2f}"))
    print_table("Bulk", ("work", "direct MB/s", "gateway MB/s", "GB/s a core of the gateway"), rows)


def idle(gateway: Side, count: int) -> None:
    """Open idle connections that have sent one request, and print the gateway's memory for each."""
    asked = made(ApiVersionsRequest(), 0)
    first = Asker(gateway)
    pipelined(first, asked, 1, 1)
    before = gateway.resident_bytes
    connections = [first._socket]
    for _ in range(count):
        connection = gateway.connect()
        connection.sendall(asked)
        receive(connection)
        connections.append(connection)
    each = (gateway.resident_bytes - before) / count
    print_table("Idle connections", ("connections", "bytes each"), [(str(count), f"{each:,.0f}")])
    for connection in connections:
        connection.close()


def main() -> None:
    options = arguments(__doc__ or "", rounds=5, quick_rounds=2)
    rounds, count = options.rounds, 500 if options.quick else 5_000
    with penstock_side() as broker, gateway_to(broker) as gateway:
        broker.create("t", 1)
        broker.create("bulk", 1)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="bulk")])
        with broker.connect() as connection:
            data = ask(connection, asked, 10)
        codec = codec_for(API_TABLE[ApiKey.METADATA].response, 10)
        topic_id = bytes(codec.decode(memoryview(data), 5)[0].topics[0].topic_id)
        part = ListOffsetsPartition(partition_index=0, timestamp=-1)
        listed = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[part])])
        requests = {
            "ListOffsets 5": made(listed, 5),
            "Produce 9, 100 B": produce("t", 100, 9),
            "Produce 12, 100 B": produce("t", 100, 12),
            "Metadata 9": made(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9),
        }
        small(broker, gateway, requests, rounds, count)
        large = produce("bulk", BATCH_BYTES, 9)
        batches = 50 if options.quick else 200
        works: dict[str, Callable[[Asker], int]] = {
            "Produce 9, 1 MB": lambda asker: (
                pipelined(asker, large, batches, BULK_IN_FLIGHT) * 0 + len(large) * batches
            ),
            "Fetch 11, 50 MB": lambda asker: pipelined(asker, fetch(11, topic_id), 8, 2),
            "Fetch 17, 50 MB": lambda asker: pipelined(asker, fetch(17, topic_id), 8, 2),
        }
        bulk(broker, gateway, works, rounds)
        idle(gateway, 200 if options.quick else 400)


if __name__ == "__main__":
    main()
