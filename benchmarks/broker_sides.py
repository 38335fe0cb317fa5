"""The two brokers that benchmarks compare, as processes: Penstock, and Apache Kafka from Maven."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.protocol.framing import encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

KAFKA_VERSION = "4.4.0"
KAFKA_HEAP_MB = 512

# Raw, so that nothing but the broker is measured: ApiVersions v3 with empty tags and software a/b.
API_VERSIONS = bytes.fromhex("00000011 0012 0003 00000001 0001 78 00 0261 0262 00")


class Side:
    """A running broker that a benchmark measures, with the resource usage of its process."""

    def __init__(self, name: str, pid: int, port: int, answered_seconds: float) -> None:
        self.name = name
        self.pid = pid
        self.port = port
        self.answered_seconds = answered_seconds
        """Seconds from the start of the process to the first ApiVersions answer."""

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @property
    def cpu_seconds(self) -> float:
        """User and system CPU seconds of all threads of the process.

        On Linux the figure is exact to the nanosecond.
        """
        if sys.platform == "linux":
            return time.clock_gettime(~self.pid << 3 | 2)
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert match is not None
        return int(match[1]) * 1024

    def create(self, name: str, partitions: int) -> None:
        """Make a topic, and wait until every partition can be written to."""
        with self.connect() as connection:
            topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            ask(connection, CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
            while not self._is_ready(connection, name, partitions):
                time.sleep(0.01)

    def _is_ready(self, connection: socket.socket, name: str, partitions: int) -> bool:
        from penstock.protocol.api import API_TABLE, ApiKey
        from penstock.protocol.codec import codec_for

        data = ask(connection, MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 5)
        found = codec_for(API_TABLE[ApiKey.METADATA].response, 5).decode(memoryview(data), 4)[0]
        ready = [p for topic in found.topics for p in topic.partitions if not p.error_code]
        return len(ready) == partitions


def receive(connection: socket.socket) -> bytes:
    """Receive one frame from a connection; return it without its size."""
    data = connection.recv(1 << 16)
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = connection.recv(1 << 20)
        if not more:
            raise ConnectionError("the broker has closed the connection")
        data += more
    return data[4:]


def ask(connection: socket.socket, request: Message, version: int) -> bytes:
    """Send one request; return the bytes of its response, including the header."""
    connection.sendall(b"".join(map(bytes, encode_request(request, version, 1, "bench"))))
    return receive(connection)


@contextmanager
def penstock_side(*options: str, on_disk: bool = True, source: Path | None = None) -> Iterator[Side]:
    """Run Penstock's broker.

    `options` are command line options; `source` is another work tree to run it from.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        command = [sys.executable, "-m", "penstock.broker", *(options or ("--port", "0"))]
        if on_disk:
            command += ["--data-dir", directory]
        # Without compiled modules on disk, start-up would measure the compiler.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        if source is not None:
            environment["PYTHONPATH"] = str(source / "src")
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        try:
            assert process.stdout is not None
            match = re.search(r"listening on \S+:(\d+)", process.stdout.readline())
            if match is None:
                raise RuntimeError("the broker did not start")
            name = "Penstock" if source is None else f"Penstock at {source.name}"
            yield _answering(name, process.pid, int(match[1]), begin)
        finally:
            process.terminate()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def kafka_side(
    settings: Mapping[str, object] | None = None, *, plain_port: int | None = None
) -> Iterator[Side]:
    """Run Apache Kafka on a formatted directory, with the default thread settings.

    If `settings` contain listeners, `plain_port` is the port of a listener without TLS and SASL.
    """
    from compat import peers

    classpath = peers.maven_classpath(f"kafka-{KAFKA_VERSION}")
    with tempfile.TemporaryDirectory(prefix="kafka-bench-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        port, controller_port = peers.free_ports(2)
        port = plain_port or port
        merged: dict[str, object] = peers._settings(KAFKA_VERSION, port, controller_port, directory)
        merged |= {"num.network.threads": 3, "num.io.threads": 8, **(settings or {})}
        file = peers._properties(directory / "server.properties", merged)
        tool = ("format", "-t", peers.CLUSTER_ID, "-c", file)
        peers.java(classpath, "kafka.tools.StorageTool", *tool, check=True)
        options = [f"-Xmx{KAFKA_HEAP_MB}M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        command = ["java", *options, *peers.JAVA_OPTIONS[1:], "-cp", classpath, "kafka.Kafka", str(file)]
        begin = time.perf_counter()
        with (directory / "server.log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield _answering(f"Apache Kafka {KAFKA_VERSION}", process.pid, port, begin)
        finally:
            process.kill()
            process.wait()


def _answering(name: str, pid: int, port: int, begin: float) -> Side:
    """Wait until the broker answers ApiVersions for the first time."""
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(API_VERSIONS)
            if receive(connection):
                return Side(name, pid, port, time.perf_counter() - begin)
        if time.perf_counter() - begin > 300:
            raise RuntimeError(f"{name} did not start")
        time.sleep(0.005)


async def idle_ms(
    target: Side, beats: Sequence[Callable[[], Awaitable[object]]], interval_s: float, seconds: float
) -> float:
    """Return the broker's CPU ms per second while each heartbeat is sent once per interval."""

    async def go_on(beat: Callable[[], Awaitable[object]], delay: float) -> None:
        await asyncio.sleep(delay)
        while True:
            await beat()
            await asyncio.sleep(interval_s)

    tasks = [
        asyncio.create_task(go_on(beat, interval_s * number / len(beats)))
        for number, beat in enumerate(beats)
    ]
    await asyncio.sleep(interval_s)
    cpu, start = target.cpu_seconds, time.perf_counter()
    await asyncio.sleep(seconds)
    used = (target.cpu_seconds - cpu) / (time.perf_counter() - start)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return used * 1000
