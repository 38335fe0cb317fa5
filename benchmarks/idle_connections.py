"""What an idle connection costs the broker in memory, plain and with TLS.

The broker is a process of its own; its resident memory is read before and after 800 connections, each of
which has asked for ApiVersions and been answered.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

CONNECTIONS = 800
WARM = 100
REQUEST = bytes.fromhex("0000000b0012000000000001000163")
"""ApiVersions 0 of a client ``c``, with its size."""

SERVER = """
import sys, time
from penstock import Broker
with Broker(security=None if sys.argv[1] == "PLAINTEXT" else sys.argv[1]) as broker:
    print(broker.port, broker.client_settings().get("ssl.ca.location", "-"), flush=True)
    time.sleep(600)
"""


def resident_kib(process: int) -> int:
    """The resident memory of a process in KiB, as Linux tells it."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise OSError(f"process {process} has no VmRSS")


def connect(port: int, context: ssl.SSLContext | None) -> socket.socket:
    """A connection that has been answered once."""
    connection = socket.create_connection(("127.0.0.1", port))
    if context is not None:
        connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(REQUEST)
    left = int.from_bytes(connection.recv(4), "big")
    while left > 0:
        left -= len(connection.recv(left))
    return connection


def measure(protocol: str) -> float:
    """KiB of the broker for one more idle connection."""
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
    for protocol in ("PLAINTEXT", "SSL"):
        print(f"{protocol}: {measure(protocol):.1f} KiB")
