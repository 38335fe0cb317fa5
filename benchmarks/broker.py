"""The broker as a process: start-up, idle memory, one-record requests, bulk in and out, many topics.

Load comes from raw sockets and from confluent-kafka. CPU is the broker's own, user and system, as the
operating system counts it. Put a file larger than the memory through the page cache first if you want
the bulk figures of a busy server: pages that were never used cost extra when they are first written.
"""

from __future__ import annotations

import os
import re
import resource
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import arguments, print_table
from penstock.protocol.framing import encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import encode_batch

CONNECTIONS = 16
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PARTITIONS = 4

# Raw, so that nothing but the broker is measured: ApiVersions v3 with empty tags and software a/b.
API_VERSIONS = struct.pack(">ihhih", 17, 18, 3, 1, 1) + b"x\0\2a\2b\0"


class BrokerProcess:
    """A broker that is ready, and what it has used."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "penstock.broker", "--port", "0", *options]
        # Without compiled modules on disk, start-up would measure the compiler.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.started = time.perf_counter()
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        self.ready_seconds = time.perf_counter() - self.started
        match = re.search(r"listening on (\S+):(\d+)", line)
        if match is None:
            raise RuntimeError(f"the broker did not start: {line!r}")
        self.port = int(match[2])

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    @property
    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.popen.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert match is not None
        return int(match[1]) * 1024


@contextmanager
def broker_process(*options: str, on_disk: bool = True) -> Iterator[BrokerProcess]:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        broker = BrokerProcess(*(["--data-dir", directory] if on_disk else []), *options)
        try:
            yield broker
        finally:
            broker.popen.terminate()
            broker.popen.wait(30)
            assert broker.popen.stdout is not None
            broker.popen.stdout.close()


def receive(connection: socket.socket) -> bytes:
    """One frame without its size."""
    data = connection.recv(1 << 16)
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = connection.recv(1 << 20)
        if not more:
            raise ConnectionError("the broker has closed the connection")
        data += more
    return data[4:]


def ask(connection: socket.socket, request: Message, version: int) -> bytes:
    connection.sendall(b"".join(map(bytes, encode_request(request, version, 1, "bench"))))
    return receive(connection)


def start_up(rounds: int) -> None:
    """From the start of the process to the first answered ApiVersions; memory when idle after it."""
    rows = []
    for name, on_disk in (("in memory", False), ("new data directory", True)):
        ready, answered, resident = [], [], []
        for _ in range(rounds):
            with broker_process(on_disk=on_disk) as broker:
                with broker.connect() as connection:
                    connection.sendall(API_VERSIONS)
                    receive(connection)
                    answered.append(time.perf_counter() - broker.started)
                ready.append(broker.ready_seconds)
                resident.append(broker.resident_bytes)
        rows.append(
            (
                name,
                f"{statistics.median(ready) * 1000:.0f}",
                f"{statistics.median(answered) * 1000:.0f}",
                f"{statistics.median(resident) / 1e6:.1f}",
            )
        )
    print_table("Start-up, median", ("", "ready ms", "first answer ms", "idle MB"), rows)


def one_record(seconds: float) -> None:
    """Produce requests with one record of 100 bytes, from 16 connections."""
    rows = []
    for name, on_disk, depth in (
        ("in memory, 1 in flight", False, 1),
        ("on disk, 1 in flight", True, 1),
        ("on disk, 32 in flight", True, 32),
    ):
        with broker_process("--config", f"num.partitions={CONNECTIONS}", on_disk=on_disk) as broker:
            rate, cpu = hammer(broker, depth, seconds)
        rows.append((name, f"{rate:,.0f}", f"{cpu * 1e6:.1f}"))
    print_table("One-record Produce, 16 connections", ("", "requests/s", "CPU µs/request"), rows)


def hammer(broker: BrokerProcess, depth: int, seconds: float) -> tuple[float, float]:
    """Keep `depth` requests in flight on every connection; return requests/s and CPU seconds each."""
    batch = encode_batch([(b"key", b"v" * 100, (), int(time.time() * 1000))])
    connections: dict[int, tuple[socket.socket, bytes]] = {}
    poller = select.epoll()
    for index in range(CONNECTIONS):
        data = PartitionProduceData(index=index, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
        )
        frame = b"".join(map(bytes, encode_request(request, 9, 1, "bench")))
        connection = broker.connect()
        ask(connection, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 5)
        connections[connection.fileno()] = (connection, frame)
        connection.sendall(frame)
        answer_bytes = 4 + len(receive(connection))
        poller.register(connection.fileno(), select.EPOLLIN)
    partial = dict.fromkeys(connections, 0)
    for connection, frame in connections.values():
        connection.sendall(frame * depth)
    done, cpu, begin = 0, broker.cpu_seconds, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds:
        for number, _ in poller.poll(1):
            connection, frame = connections[number]
            count, partial[number] = divmod(partial[number] + len(connection.recv(1 << 16)), answer_bytes)
            done += count
            if count:
                connection.sendall(frame * count)
    cpu = broker.cpu_seconds - cpu
    for connection, _ in connections.values():
        connection.close()
    return done / elapsed, cpu / done


def bulk(total_bytes: float, rounds: int) -> None:
    """confluent-kafka writes and reads records; the broker's CPU per GB of values."""
    rows = []
    for size in (100, 1_000, 10_000):
        with broker_process("--config", f"num.partitions={PARTITIONS}") as broker:
            count = int(total_bytes / size / (4 if size == 100 else 1))
            written = [write_bulk(broker, size, count) for _ in range(rounds)]
            read = [read_bulk(broker, size, count) for _ in range(rounds)]
        for name, figures in (("in", written), ("out", read)):
            rates, cpus = zip(*figures, strict=True)
            rows.append(
                (
                    f"{size:,} B {name}",
                    f"{statistics.median(rates) / 1e3:,.0f}",
                    f"{statistics.median(rates) * size / 1e6:,.0f}",
                    f"{statistics.median(cpus) / (count * size) * 1e9:.2f}",
                )
            )
    print_table(
        "Bulk with confluent-kafka, acks=all, 4 partitions", ("", "k records/s", "MB/s", "CPU s/GB"), rows
    )


def write_bulk(broker: BrokerProcess, size: int, count: int) -> tuple[float, float]:
    """Return records/s and the broker's CPU seconds."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "acks": "all",
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    value, cpu, begin = b"v" * size, broker.cpu_seconds, time.perf_counter()
    for index in range(count):
        while True:
            try:
                producer.produce("t", value, partition=index % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()
    return count / (time.perf_counter() - begin), broker.cpu_seconds - cpu


def read_bulk(broker: BrokerProcess, size: int, count: int) -> tuple[float, float]:
    """Return records/s and the broker's CPU seconds."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "group.id": "unused",
            "enable.auto.commit": False,
            "queued.min.messages": 10_000_000,
            "fetch.queue.backoff.ms": 1,
            "fetch.message.max.bytes": 8 << 20,
            "check.crcs": False,
        }
    )
    consumer.assign([TopicPartition("t", index, 0) for index in range(PARTITIONS)])
    found, cpu, begin = 0, broker.cpu_seconds, time.perf_counter()
    while found < count:
        found += len(consumer.consume(10_000, 1.0))
    result = count / (time.perf_counter() - begin), broker.cpu_seconds - cpu
    consumer.close()
    return result


def many() -> None:
    """A thousand topics in one request; a thousand connections that do nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    rows = []
    with broker_process() as broker:
        with broker.connect() as connection:
            topics = [
                CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=1) for n in range(1000)
            ]
            cpu, begin = broker.cpu_seconds, time.perf_counter()
            ask(connection, CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5)
            ask(connection, MetadataRequest(topics=None), 5)
            seconds = time.perf_counter() - begin
        rows.append(
            ("1,000 topics created and described", f"{seconds:.2f} s", f"{broker.cpu_seconds - cpu:.2f} s")
        )
    with broker_process() as broker:
        with broker.connect() as connection:
            connection.sendall(API_VERSIONS)
            receive(connection)
        before = broker.resident_bytes
        idle = [broker.connect() for _ in range(1000)]
        for connection in idle:
            connection.sendall(API_VERSIONS)
            receive(connection)
        rows.append(("an idle connection", f"{(broker.resident_bytes - before) / 1000 / 1e3:.1f} kB", ""))
        for connection in idle:
            connection.close()
    print_table("Many", ("", "", "CPU"), rows)


def main() -> None:
    options = arguments("The broker", rounds=7)
    start_up(options.rounds)
    one_record(1.0 if options.quick else 4.0)
    bulk(1e8 if options.quick else 6e8, 1 if options.quick else 3)
    many()


if __name__ == "__main__":
    main()
