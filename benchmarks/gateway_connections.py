"""Measure a gateway's memory and service with 5,000 connections, of which 200 belong to slow readers.

    python benchmarks/gateway_connections.py [--quick]

The broker and the gateway in front of it are separate processes. All clients connect and send one request.
Then 200 of them request 8 MB of records without reading the response; meanwhile another client must be
served. At last the slow readers read everything, 16 KiB at a time. More slow readers would fill the kernel's
memory for socket buffers. A process may need two descriptors per connection: ``ulimit -n 20000``.
"""

from __future__ import annotations

import resource
import selectors
import socket
import statistics
import sys
import time
import urllib.request

from broker_sides import Side, penstock_side, receive
from free_ports import free_ports
from gateway import Asker, fetch, gateway_to, latency_us, made, produce
from harness import arguments, print_table
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest

CONNECTIONS, QUICK_CONNECTIONS = 5_000, 200
SLOW_READERS, QUICK_SLOW_READERS = 200, 10
BATCH_BYTES = 1_000_000
ASKED_BYTES = 8 * BATCH_BYTES
RECEIVE_BYTES = 16 << 10
STALL_S = 20.0
"""Seconds for which the slow readers read nothing, at most.

They begin earlier if the gateway's buffered bytes have not grown for a second.
"""


class Reader:
    """A client with a small receive buffer, which reads slowly."""

    def __init__(self, side: Side) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self.socket.connect(("127.0.0.1", side.port))
        self.read = 0

    def ask(self, request: bytes) -> None:
        self.socket.sendall(request)

    def take(self) -> int:
        """Read up to 16 KiB; return the number of bytes, 0 at the end of the connection."""
        data = self.socket.recv(RECEIVE_BYTES)
        self.read += len(data)
        return len(data)


def mib(size: float) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def held(metrics: str) -> float:
    """Return the number of buffered bytes that the gateway's metrics report."""
    text = urllib.request.urlopen(metrics, timeout=60).read().decode()
    return float(
        next(line.split()[1] for line in text.splitlines() if line.startswith("penstock_gateway_held"))
    )


def read_all(readers: list[Reader], wanted: int) -> int:
    """Read until each reader has `wanted` bytes; return how many readers received all of them."""
    chosen = selectors.DefaultSelector()
    for reader in readers:
        chosen.register(reader.socket, selectors.EVENT_READ, reader)
    whole = 0
    while chosen.get_map():
        ready = chosen.select(30)
        if not ready:
            break
        for key, _ in ready:
            reader = key.data
            try:
                taken = reader.take()
            except OSError:
                taken = 0
            if not taken or reader.read >= wanted:
                whole += reader.read >= wanted
                chosen.unregister(reader.socket)
    return whole


def main() -> None:
    options = arguments(__doc__ or "", rounds=1)
    count = QUICK_CONNECTIONS if options.quick else CONNECTIONS
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most < 2 * count + 500:
        sys.exit(f"{most} descriptors are allowed: ulimit -n {2 * count + 500}")
    [metrics_port] = free_ports(1)
    metrics = f"http://127.0.0.1:{metrics_port}/metrics"
    with penstock_side() as broker, gateway_to(broker, "--metrics-port", str(metrics_port)) as gateway:
        broker.create("t", 1)
        broker.create("bulk", 1)
        with broker.connect() as connection:
            for _ in range(ASKED_BYTES // BATCH_BYTES + 1):
                connection.sendall(produce("bulk", BATCH_BYTES, 9))
                receive(connection)
        asker = Asker(gateway)
        small = produce("t", 100, 9)
        latency_us(asker, small, 200)
        before, rows = gateway.resident_bytes, []

        def note(what: str) -> None:
            spent, kept = gateway.resident_bytes - before, held(metrics)
            served = statistics.median(latency_us(asker, small, 50) for _ in range(3))
            rows.append((what, mib(spent), f"{spent / count / 1024:,.1f} KiB", mib(kept), f"{served:,.0f}"))

        note("no connections")
        versions, ask = made(ApiVersionsRequest(), 0), fetch(11, b"")
        readers = []
        for _ in range(count):
            readers.append(Reader(gateway))
            readers[-1].ask(versions)
            receive(readers[-1].socket)
        note("idle connections")
        slow = readers[: QUICK_SLOW_READERS if options.quick else SLOW_READERS]
        for reader in slow:
            reader.ask(ask)
        end, last = time.monotonic() + STALL_S, -1.0
        while time.monotonic() < end and (now := held(metrics)) != last:
            last = now
            time.sleep(1)
        note("no client reads its response")
        begin = time.perf_counter()
        whole = read_all(slow, ASKED_BYTES)
        elapsed = time.perf_counter() - begin
        note("all responses are read")
        for reader in readers:
            reader.socket.close()
        time.sleep(2)
        note("all connections are closed")
        head = ("connections", "memory of the gateway", "each", "held bytes", "another client's Produce, µs")
        print_table(f"{count:,} connections, 8 MB asked for by {len(slow)}", head, rows)
        print(f"{whole:,} of {len(slow):,} got the whole response, in {elapsed:.1f} s")


if __name__ == "__main__":
    main()
