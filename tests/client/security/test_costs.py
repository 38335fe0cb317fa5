"""Tests that unused security code costs nothing, and of the memory that an idle TLS connection uses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]

ROOMS = ("penstock.security", "penstock.client.security", "penstock.client.cluster.secured", "cryptography")
SECURITY = f"[name for name in sys.modules if name.startswith({ROOMS!r})]"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "code",
    [
        "import penstock, penstock.client, penstock.client.cluster.client, penstock.cli.options",
        "from penstock import Broker, Admin\n"
        "broker = Broker().start()\n"
        "with Admin(broker.bootstrap_servers, {'security.protocol': 'PLAINTEXT'}) as admin:\n"
        "    admin.create_topic('t'); admin.list_topics()\n"
        "broker.close()",
    ],
)
def test_nothing_of_it_is_imported_before_it_is_used(code: str) -> None:
    found = run(f"import sys\n{code}\nprint(*{SECURITY})").split()
    # Handlers of ACLs are registered when a broker starts; the module holds codes and names.
    light = ("penstock.security", "penstock.security.secrets", "penstock.security.acls")
    assert [name for name in found if name not in light] == []


def test_an_idle_connection_keeps_a_tenth_of_what_asyncio_keeps() -> None:
    """A TLS connection of asyncio keeps 280 KiB.

    A separate process measures the memory of 500 connections, both sides included.
    """
    code = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from security_certificates import authority, issue
from penstock.security.secrets import Secret
from penstock.security.tls import TlsConnection
from penstock.security.tls_context import TlsSettings, client_context, server_context
ca = authority()
pair = issue(ca)
settings = TlsSettings(certificate=pair.certificate_pem, key=Secret(pair.key_pem))
server_side, client_side = server_context(settings), client_context(TlsSettings(ca=ca.certificate_pem))
def memory():
    return int(open('/proc/self/statm').read().split()[1]) * 4096
def talk(ends, count):
    for _ in range(count):
        for one, other in (ends, ends[::-1]):
            if data := b''.join(one.to_send()):
                other.receive(data)
                other.read_into(bytearray(1000))
def connected():
    client = TlsConnection(client_side, is_server=False, server_name='localhost')
    server = TlsConnection(server_side, is_server=True)
    client.start()
    talk((client, server), 3)
    assert client.is_ready and server.is_ready
    client.write(bytes(200)), server.write(bytes(200))
    talk((client, server), 1)
    return client, server
connected()
before = memory()
kept = [connected() for _ in range(500)]
print((memory() - before) // (2 * len(kept)))
"""
    assert int(run(code)) < 28 << 10
