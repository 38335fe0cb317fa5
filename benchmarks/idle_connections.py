"""Measure the broker's memory for each idle connection, plaintext and with TLS.

The broker is a separate process. Its resident memory is read before and after 800 clients connect; each of
them sends an ApiVersions request and receives the response.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

from harness import print_table

CONNECTIONS = 800
WARM = 100
REQUEST = bytes.fromhex("0000000b0012000000000001000163")
"""The frame of an ApiVersions v0 request with the client id ``c``, including its size."""

SERVER = """
import sys, time
from penstock import Broker
with Broker(security=None if sys.argv[1] == "PLAINTEXT" else sys.argv[1]) as broker:
    print(broker.port, broker.client_settings().get("ssl.ca.location", "-"), flush=True)
    time.sleep(600)
"""


def resident_kib(process: int) -> int:
    """Return the resident memory of a process in KiB, as /proc reports it."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise OSError(f"process {process} has no VmRSS")


def connect(port: int, context: ssl.SSLContext | None) -> socket.socket:
    """Open a connection, send one request and read its response; return the connection."""
    connection = socket.create_connection(("127.0.0.1", port))
    if context is not None:
        connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(REQUEST)
    left = int.from_bytes(connection.recv(4), "big")
    while left > 0:
        left -= len(connection.recv(left))
    return connection


def measure(protocol: str) -> float:
    """Return the KiB of broker memory per additional idle connection."""
    command = [sys.executable, "-c", SERVER, protocol]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port, ca = server.stdout.readline().split()
            context = None if ca == "-" else ssl.create_default_context(cafile=ca)
            held = [connect(int(port), context) for _ in range(WARM)]
            time.sleep(1.5)
            before = resident_kib(server.pid)
            held += [connect(int(port), context) for _ in range(CONNECTIONS)]
            time.sleep(2.5)
            return (resident_kib(server.pid) - before) / CONNECTIONS
        finally:
            server.kill()


if __name__ == "__main__":
    rows = [(protocol, f"{measure(protocol):.1f}") for protocol in ("PLAINTEXT", "SSL")]
    print_table("An idle connection", ("", "KiB of the broker"), rows)
