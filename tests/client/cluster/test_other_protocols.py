"""Tests of connecting to ports that do not speak Kafka: the error names the protocol and what to do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from penstock.client.addresses import Address
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.other_protocols import HTTP, TLS, expects_tls, known_beginning
from penstock.client.config import ClientConfig
from penstock.errors import AuthenticationError, NetworkError

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def refuse_as_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close the connection without a word, as a TLS server does when it gets plain text.

    A TLS ClientHello is answered with an alert.
    """
    beginning = await reader.read(5)
    if beginning[:1] == b"\x16":
        writer.write(b"\x15\x03\x01\x00\x02\x02\x28")  # handshake_failure: it knows no such client
        await writer.drain()
    writer.close()


async def alert(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer anything with a TLS alert, as other TLS servers do with plain text, and close the connection."""
    await reader.read(5)
    writer.write(b"\x15\x03\x01\x00\x02\x02\x46")
    await writer.drain()
    writer.close()


async def answer_in_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(5)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()
    writer.close()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(5)
    writer.close()


@asynccontextmanager
async def listening(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[Address]:
    """Run a server for the length of a block and yield its address; then close its connections."""
    writers: list[asyncio.StreamWriter] = []

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError):
            await serve(reader, writer)

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0, ssl=context)
    async with server:
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            for writer in writers:
                writer.transport.abort()
            for _ in range(5):  # turns of the loop until transports are gone
                await asyncio.sleep(0)


def error_at(serve: Serve) -> str:
    """Return the error message of a client that connects to this server as to a broker."""

    async def play() -> str:
        async with listening(serve) as address:
            config = ClientConfig.parse({"bootstrap.servers": str(address)}, {})
            async with AsyncClient(config) as client:
                with pytest.raises((NetworkError, AuthenticationError)) as caught:
                    await client.refresh()
                return str(caught.value)

    return asyncio.run(play())


@pytest.mark.parametrize("serve", [refuse_as_tls, alert])
def test_a_port_for_tls_is_told_as_one(serve: Serve) -> None:
    assert TLS in error_at(serve)


def test_a_web_server_is_told_as_one() -> None:
    assert HTTP in error_at(answer_in_http)


def test_anything_else_is_not_guessed_at() -> None:
    said = error_at(hang_up)
    assert "is it a Kafka broker?" in said
    assert "TLS" not in said


CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgUBwK6USYkgp7uOmY
UaHNPXfOu9PW8PaCj/vAu26+2QahRANCAATpj8wo1lVzO92PsJjNpB46C4FzzVR2
dYjd48MvjjeGkDUKMjltR8DUbgom3cUcnlxbOHvxiV66eXTIrhR+p/4C
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUBTzeOWrtKRX779sj6za6rop/ykwwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjIxOTA3MTVaGA8yMTI2MTAyOTE5MDcx
NVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOmP
zCjWVXM73Y+wmM2kHjoLgXPNVHZ1iN3jwy+ON4aQNQoyOW1HwNRuCibdxRyeXFs4
e/GJXrp5dMiuFH6n/gKjUzBRMB0GA1UdDgQWBBT92EL0dcmEZgihPWnao8Y/bPrF
NTAfBgNVHSMEGDAWgBT92EL0dcmEZgihPWnao8Y/bPrFNTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIQCvhCbUg41NJYy8Y1CKfqnbw56t3AY9CsWZ
gpaRIw9wAwIgMReUvKyMFUc2/YP6ea/2FyVSXMQLxdc89oOoFFJsIeA=
-----END CERTIFICATE-----
"""
"""A self-signed certificate for this test, with its private key."""


def test_a_real_tls_server_is_recognised(tmp_path: Path) -> None:
    async def play() -> bool:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        file = tmp_path / "certificate.pem"
        file.write_text(CERTIFICATE)
        context.load_cert_chain(file)
        async with listening(hang_up, context) as address:
            return await expects_tls(address)

    assert asyncio.run(play())


def test_a_peer_that_keeps_silent_does_not_speak_tls() -> None:
    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def play() -> bool:
        async with listening(keep_silent) as address:
            return await expects_tls(address, 0.05)

    assert not asyncio.run(play())


def test_frames_of_kafka_are_not_mistaken() -> None:
    assert known_beginning(b"\0\0\0\x20") is None
