"""Compare the broker with Apache Kafka: start-up, memory, one-record requests, latency, bulk, many topics.

Both brokers run at the same time and get the same load, in turn, from raw sockets, from confluent-kafka
(librdkafka), and with ``--java`` from Apache Kafka's own perf tools. CPU is the broker process's, user and
system. Without Java, or with ``--alone``, only Penstock is measured.

On a virtual machine, the first write to a never-used page of memory costs several times as much as all other
work. Before every bulk run a file is therefore written and deleted, so that used pages are free. Other load
on the machine changes rates more than CPU figures; compare figures of one run only.
"""

from __future__ import annotations

import resource
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from broker_sides import API_VERSIONS, KAFKA_VERSION, Side, ask, kafka_side, penstock_side, receive
from harness import arguments, print_table
from penstock.protocol.framing import encode_request
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import encode_batch

CONNECTIONS = 16
PARTITIONS = 4

Sides = Sequence[Side]


def start_up(rounds: int, beside: bool) -> None:
    """Measure the time from the start of the process to the first ApiVersions answer, and the idle memory."""
    rows = []
    contestants: list[tuple[str, Callable[[], object], int]] = [
        ("Penstock, in memory", lambda: penstock_side(on_disk=False), rounds),
        ("Penstock, new directory", lambda: penstock_side(), rounds),
    ]
    if beside:
        contestants.append((f"Apache Kafka {KAFKA_VERSION}, formatted directory", lambda: kafka_side(), 1))
    for name, start, count in contestants:
        answered, cpu, resident = [], [], []
        for _ in range(count):
            with start() as side:  # type: ignore[attr-defined]
                answered.append(side.answered_seconds)
                cpu.append(side.cpu_seconds)
                resident.append(side.resident_bytes)
        times = (f"{statistics.median(each) * 1000:,.0f}" for each in (answered, cpu))
        rows.append((name, *times, f"{statistics.median(resident) / 1e6:,.1f}"))
    print_table("Start-up, median", ("", "first answer ms", "CPU ms", "idle MB"), rows)


def one_record(sides: Sides, seconds: float, rounds: int) -> None:
    """Measure requests that write or read one record of 100 bytes, from 16 connections."""
    rows = []
    for side in sides:
        side.create("one", CONNECTIONS)
        hammer(side, produce_frame, 8, seconds)
    for name, frame, depth in (
        ("Produce, 1 in flight", produce_frame, 1),
        ("Produce, 32 in flight", produce_frame, 32),
        ("Fetch, 1 in flight", fetch_frame, 1),
    ):
        found: dict[str, list[tuple[float, float]]] = {side.name: [] for side in sides}
        for _ in range(rounds):
            for side in sides:
                found[side.name].append(hammer(side, frame, depth, seconds))
        for who, figures in found.items():
            rate, cpu = map(statistics.median, zip(*figures, strict=True))
            rows.append((f"{name}, {who}", f"{rate:,.0f}", f"{cpu * 1e6:.1f}"))
    print_table("One-record requests, 16 connections", ("", "requests/s", "CPU µs/request"), rows)


def produce_frame(partition: int) -> bytes:
    batch = encode_batch([(b"key", b"v" * 100, (), int(time.time() * 1000))])
    data = PartitionProduceData(index=partition, records=batch)
    topic = TopicProduceData(name="one", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
    return b"".join(map(bytes, encode_request(request, 9, 1, "bench")))


def fetch_frame(partition: int) -> bytes:
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1)
    topic = FetchTopic(topic="one", partitions=[asked])
    request = FetchRequest(min_bytes=1, max_wait_ms=1000, max_bytes=1, session_epoch=-1, topics=[topic])
    return b"".join(map(bytes, encode_request(request, 12, 1, "bench")))


def hammer(side: Side, frame_of: Callable[[int], bytes], depth: int, seconds: float) -> tuple[float, float]:
    """Keep `depth` requests in flight on every connection; return requests/s and CPU seconds per request."""
    connections: dict[int, tuple[socket.socket, bytes]] = {}
    poller = select.epoll()
    for index in range(CONNECTIONS):
        frame = frame_of(index)
        connection = side.connect()
        connections[connection.fileno()] = (connection, frame)
        connection.sendall(frame)
        answer_bytes = 4 + len(receive(connection))
        poller.register(connection.fileno(), select.EPOLLIN)
    partial = dict.fromkeys(connections, 0)
    for connection, frame in connections.values():
        connection.sendall(frame * depth)
    done, cpu, begin = 0, side.cpu_seconds, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds:
        for number, _ in poller.poll(1):
            connection, frame = connections[number]
            count, partial[number] = divmod(partial[number] + len(connection.recv(1 << 16)), answer_bytes)
            done += count
            if count:
                connection.sendall(frame * count)
    cpu = side.cpu_seconds - cpu
    for connection, _ in connections.values():
        connection.close()
    return done / elapsed, cpu / done


def latency(sides: Sides, count: int) -> None:
    """Measure confluent-kafka's time until a record is acknowledged (acks=all), and until it is consumed."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    rows = []
    for side in sides:
        side.create("late", 1)
        producer = Producer({"bootstrap.servers": side.bootstrap, "acks": "all", "linger.ms": 0})
        consumer = Consumer(
            {
                "bootstrap.servers": side.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )
        acknowledged, arrived = [], []
        for number in range(count + 50):
            begin = time.perf_counter()
            producer.produce("late", b"v" * 100, partition=0)
            producer.flush()
            if number >= 50:
                acknowledged.append(time.perf_counter() - begin)
        consumer.assign([TopicPartition("late", 0, count + 50)])
        for number in range(count + 50):
            begin = time.perf_counter()
            producer.produce("late", b"v" * 100, partition=0)
            producer.poll(0)
            while consumer.poll(1.0) is None:
                pass
            if number >= 50:
                arrived.append(time.perf_counter() - begin)
        producer.flush()
        consumer.close()
        for what, times in (("acknowledged", acknowledged), ("with a consumer", arrived)):
            cuts = statistics.quantiles(times, n=100)
            rows.append((f"{what}, {side.name}", f"{cuts[49] * 1000:.3f}", f"{cuts[98] * 1000:.3f}"))
    print_table("One record by confluent-kafka", ("", "p50 ms", "p99 ms"), sorted(rows))


def recycle(size: float) -> None:
    """Write and delete a file of `size` bytes, so that the kernel has used pages of memory to hand out."""
    with tempfile.TemporaryFile() as file:
        for _ in range(int(size) >> 20):
            file.write(bytes(1 << 20))


def bulk(sides: Sides, total_bytes: float, rounds: int) -> None:
    """Measure confluent-kafka writing and reading records, and the broker's CPU per GB of values.

    A first round does not count, since a JVM compiles its code meanwhile.
    """
    rows = []
    for size in (100, 1_000, 10_000):
        count = int(total_bytes / size / (4 if size == 100 else 1))
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for side in sides:
            side.create(f"bulk{size}", PARTITIONS)
        for turn in range(rounds + 1):
            for side in sides:
                recycle(3 * count * size)
                written = write_bulk(side, size, count)
                read = read_bulk(side, size, count, turn * (count // PARTITIONS))
                if turn:
                    found.setdefault(("in", side.name), []).append(written)
                    found.setdefault(("out", side.name), []).append(read)
        for (way, name), figures in sorted(found.items()):
            rate, cpu = map(statistics.median, zip(*figures, strict=True))
            row = f"{rate / 1e3:,.0f}", f"{rate * size / 1e6:,.0f}", f"{cpu / (count * size) * 1e9:.2f}"
            rows.append((f"{size:,} B {way}, {name}", *row))
    head = ("", "k records/s", "MB/s", "CPU s/GB")
    print_table("Bulk with confluent-kafka, acks=all, 4 partitions", head, rows)


def write_bulk(
    side: Side, size: int, count: int, *, topic: str | None = None, more: Mapping[str, object] | None = None
) -> tuple[float, float]:
    """Return records/s and the broker's CPU seconds for writing. `more` overrides producer settings."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": side.bootstrap,
            "acks": "all",
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            **(more or {}),
        }
    )
    topic = topic or f"bulk{size}"
    value, cpu, begin = b"v" * size, side.cpu_seconds, time.perf_counter()
    for index in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=index % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()
    return count / (time.perf_counter() - begin), side.cpu_seconds - cpu


def read_bulk(
    side: Side,
    size: int,
    count: int,
    first: int,
    *,
    topic: str | None = None,
    more: Mapping[str, object] | None = None,
) -> tuple[float, float]:
    """Return records/s and the broker's CPU seconds for reading from offset `first` on.

    `more` overrides consumer settings.
    """
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": side.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "queued.min.messages": 10_000_000,
            "fetch.queue.backoff.ms": 1,
            "fetch.message.max.bytes": 8 << 20,
            "check.crcs": False,
            **(more or {}),
        }
    )
    topic = topic or f"bulk{size}"
    cpu, begin = side.cpu_seconds, time.perf_counter()
    consumer.assign([TopicPartition(topic, index, first) for index in range(PARTITIONS)])
    found = 0
    while found < count:
        found += len(consumer.consume(10_000, 1.0))
    result = count / (time.perf_counter() - begin), side.cpu_seconds - cpu
    consumer.close()
    return result


def java_tools(sides: Sides, total_bytes: float) -> None:
    """Run Apache Kafka's perf tools with records of 1 KB; print their figures and the broker's CPU."""
    from compat import peers

    classpath = peers.maven_classpath(f"kafka-{KAFKA_VERSION}")
    count, rows = int(total_bytes / 1000), []
    for side in sides:
        side.create("java", PARTITIONS)
        servers = f"bootstrap.servers={side.bootstrap}"
        produce = ["--topic", "java", "--num-records", count, "--record-size", 1000, "--throughput", -1]
        produce += ["--producer-props", servers, "acks=all", "batch.size=1000000", "linger.ms=20"]
        consume = ["--topic", "java", "--bootstrap-server", side.bootstrap]
        consume += ["--num-records", count, "--timeout", 60_000]
        for way, main, options in (
            ("in", "org.apache.kafka.tools.ProducerPerformance", produce),
            ("out", "org.apache.kafka.tools.ConsumerPerformance", consume),
        ):
            cpu, begin = side.cpu_seconds, time.perf_counter()
            peers.java(classpath, main, *options, check=True)
            rate = count / (time.perf_counter() - begin)
            row = f"{rate / 1e3:,.0f}", f"{(side.cpu_seconds - cpu) / (count * 1000) * 1e9:.2f}"
            rows.append((f"{way}, {side.name}", *row))
    head = ("", "k records/s, JVM start included", "CPU s/GB")
    print_table("Bulk with the Java perf tools, 1 KB", head, sorted(rows))


def many(sides: Sides) -> None:
    """Measure creating a thousand topics in one request, and the memory of a thousand idle connections."""
    rows = []
    for side in sides:
        before = side.resident_bytes
        idle = [side.connect() for _ in range(1000)]
        for connection in idle:
            connection.sendall(API_VERSIONS)
            receive(connection)
        each = (side.resident_bytes - before) / 1000
        for connection in idle:
            connection.close()
        rows.append((f"an idle connection, {side.name}", f"{each / 1e3:.1f} kB", ""))
    for side in sides:
        with side.connect() as connection:
            topics = [
                CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=1) for n in range(1000)
            ]
            cpu, begin = side.cpu_seconds, time.perf_counter()
            ask(connection, CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)
            ask(connection, MetadataRequest(topics=None), 5)
            seconds = time.perf_counter() - begin
        row = f"{seconds:.2f} s", f"{side.cpu_seconds - cpu:.2f} s"
        rows.append((f"1,000 topics created and described, {side.name}", *row))
    print_table("Many", ("", "", "CPU"), rows)


def has_java() -> bool:
    """Return True if Java and Maven are installed, which running Apache Kafka requires."""
    java = shutil.which("java")
    found = java is not None and shutil.which("mvn") is not None
    return found and not subprocess.run(["java", "-version"], capture_output=True, check=False).returncode


def main() -> None:
    flags = {flag for flag in ("--alone", "--java") if flag in sys.argv}
    sys.argv = [word for word in sys.argv if word not in flags]
    options = arguments("The broker", rounds=3, quick_rounds=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    beside = "--alone" not in flags and has_java()
    rounds, quick = options.rounds, options.quick
    start_up(2 * rounds + 1, beside)
    with ExitStack() as stack:
        sides = [stack.enter_context(penstock_side())]
        if beside:
            sides.append(stack.enter_context(kafka_side()))
        one_record(sides, 1.0 if quick else 3.0, rounds)
        latency(sides, 500 if quick else 3000)
        bulk(sides, 1e8 if quick else 6e8, rounds)
        if "--java" in flags and beside:
            java_tools(sides, 2e8 if quick else 1e9)
        many(sides)


if __name__ == "__main__":
    main()
