"""Attacks before or instead of a login: each is a function that runs against a `LoginTarget`.

The broker has a listener with TLS and SASL and one with SASL only. Most attacks use no valid password. Those
that change the steps of a login use the password of a user without any rights.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from attack.attacks import Attack, Target
from broker.wire_client import WireClient
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.security.scram import ScramClient

CROWD = 10_000
FAILURE_DELAY_S = 0.1
"""The default of `connection.failed.authentication.delay.ms`, in seconds."""

POOR_USER, POOR_PASSWORD = "poor", "poor-password"


class LoginTarget(Target):
    """The attacked broker: `port` is its SASL_PLAINTEXT listener, `tls_port` its SASL_SSL listener."""

    def __init__(self, port: int, tls_port: int, ca: str, rng: random.Random, seconds: float) -> None:
        super().__init__(port, rng, seconds)
        self.tls_port = tls_port
        self.ca = ca

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca)

    @contextlib.contextmanager
    def sockets(self, size: int, port: int) -> Iterator[list[socket.socket]]:
        """Yield `size` open sockets; connecting may take longer than the attack's time."""
        with contextlib.ExitStack() as stack:
            made: list[socket.socket] = []
            while len(made) < size:
                made.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)))
            yield made

    def hello(self) -> bytes:
        """Return the first message of a TLS handshake, ClientHello."""
        outgoing = ssl.MemoryBIO()
        tls = self.context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        return outgoing.read()


def silent_crowd(target: LoginTarget) -> None:
    """Open ten thousand connections that send nothing, half of them to the TLS listener."""
    with target.sockets(CROWD // 2, target.port), target.sockets(CROWD // 2, target.tls_port):
        _hold(target)


def crowd_amid_handshakes(target: LoginTarget) -> None:
    """Open ten thousand connections, each with an unfinished TLS handshake, SASL login or frame."""
    hello = target.hello()
    with WireClient(target.port) as wire:
        sasl = wire.bytes_of(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)
    beginnings = (sasl, sasl[:9], struct.pack(">i", 500_000) + bytes(5_000))
    with target.sockets(CROWD // 2, target.port) as plain:
        for index, each in enumerate(plain):
            with contextlib.suppress(OSError):
                each.sendall(beginnings[index % len(beginnings)])
        with target.sockets(CROWD // 2, target.tls_port) as encrypted:
            for index, each in enumerate(encrypted):
                with contextlib.suppress(OSError):
                    each.sendall(hello if index % 2 else hello[:50])
            _hold(target)


def _hold(target: LoginTarget) -> None:
    """Keep an attack's connections open for a second, or until the attack's time is over if that is later."""
    time.sleep(1)
    while target.goes_on:
        time.sleep(0.1)


def endless_handshakes(target: LoginTarget) -> None:
    """Complete TLS handshakes again and again, and send nothing more on those connections.

    Handshakes cost the broker more CPU time than other requests.
    """
    context = target.context()
    with contextlib.ExitStack() as stack:
        while target.goes_on:
            with contextlib.suppress(OSError):
                raw = stack.enter_context(socket.create_connection(("127.0.0.1", target.tls_port), 5))
                stack.enter_context(context.wrap_socket(raw, server_hostname="127.0.0.1"))


def old_tls(target: LoginTarget) -> None:
    """Send ClientHello messages of TLS 1.1 and older and damaged ones; the broker may accept none."""
    hello = target.hello()
    while target.goes_on:
        version = target.rng.choice((b"\x03\x00", b"\x03\x01", b"\x03\x02"))
        # Without the extension that names versions (43), what the hello itself says counts.
        old = hello[:9] + version + hello[11:].replace(b"\x00\x2b\x00", b"\xfa\xfa\x00")
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", target.tls_port), timeout=5) as peer,
        ):
            peer.sendall(old)
            answer = peer.recv(7)
            assert answer[:1] != b"\x16", f"TLS {version.hex()} is answered with {answer.hex()}"
        spoiled = bytearray(hello)
        spoiled[target.rng.randrange(5, len(hello))] ^= 1 << target.rng.randrange(8)
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", target.tls_port), timeout=0.2) as peer,
        ):
            peer.sendall(bytes(spoiled))
            peer.recv(7)


def guesses(target: LoginTarget) -> None:
    """Send wrong passwords over a hundred connections.

    The broker delays each failure by FAILURE_DELAY_S, and closes the connection.
    """
    while target.goes_on:
        with target.crowd(100) as clients:
            asked: list[tuple[WireClient, float]] = []
            for index, client in enumerate(clients):
                mechanism = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")[index % 3]
                with contextlib.suppress(OSError):
                    assert client.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
                    guess: bytes = b"\0" + POOR_USER.encode() + b"\0guess%d" % index
                    if mechanism != "PLAIN":
                        scram = ScramClient(mechanism, target.rng.choice((POOR_USER, "none")), "guess")
                        first = SaslAuthenticateRequest(auth_bytes=scram.first())
                        guess = scram.final(client.ask(first, 2).auth_bytes)
                    asked.append((client, time.monotonic()))
                    client.send(SaslAuthenticateRequest(auth_bytes=guess), 2)
            for client, since in asked:
                try:
                    answer = client.receive()[1]
                except OSError:
                    continue
                took_s = time.monotonic() - since
                assert answer.error_code == 58, f"a guess is answered with {answer.error_code}"
                assert took_s >= FAILURE_DELAY_S * 0.9, f"a guess took {took_s * 1000:.0f} ms only"
                assert client.is_closed_by_peer(), "a connection goes on after a wrong password"


def _steps(rng: random.Random) -> list[tuple[Any, int]]:
    """Return the requests of a SCRAM login and some others in a random order."""
    scram = ScramClient("SCRAM-SHA-512", POOR_USER, POOR_PASSWORD)
    steps: list[tuple[Any, int]] = [
        (ApiVersionsRequest(), 0),
        (SaslHandshakeRequest(mechanism="PLAIN"), rng.randrange(2)),
        (SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1),
        (SaslAuthenticateRequest(auth_bytes=scram.first()), 2),
        (SaslAuthenticateRequest(auth_bytes=b"\x01"), rng.randrange(3)),
        (SaslAuthenticateRequest(auth_bytes=b"\0poor\0"), rng.randrange(3)),
        (MetadataRequest(topics=None), 1),
    ]
    return [rng.choice(steps) for _ in range(rng.randrange(1, 7))]


def disordered_logins(target: LoginTarget) -> None:
    """Skip, repeat and mix the steps of logins; the broker serves no data without a completed login."""
    while target.goes_on:
        with contextlib.suppress(OSError), WireClient(target.port, timeout_s=5) as client:
            for request, version in _steps(target.rng):
                answer = client.ask(request, version)
                if request.API_KEY == MetadataRequest.API_KEY:
                    # Amid the tokens it is answered as by Apache Kafka: with nothing in it, and an end.
                    is_empty = not (answer.brokers or answer.topics or answer.cluster_id)
                    assert is_empty, "Metadata is served without a login"
                    assert client.is_closed_by_peer(), "a connection goes on after Metadata amid a login"
                    break
                is_token = request.API_KEY == SaslAuthenticateRequest.API_KEY
                assert not is_token or answer.error_code or answer.auth_bytes, "a login without a proof"


def replayed_logins(target: LoginTarget) -> None:
    """Send the bytes of a successful login again over other connections: whole, cut off and doubled."""
    with WireClient(target.port) as client:
        sent = [client.bytes_of(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)]
        client.socket.sendall(sent[0])
        client.receive()
        scram = ScramClient("SCRAM-SHA-512", POOR_USER, POOR_PASSWORD)
        sent.append(client.bytes_of(SaslAuthenticateRequest(auth_bytes=scram.first()), 2))
        client.socket.sendall(sent[1])
        challenge = client.receive()[1].auth_bytes
        sent.append(client.bytes_of(SaslAuthenticateRequest(auth_bytes=scram.final(challenge)), 2))
        client.socket.sendall(sent[2])
        assert client.receive()[1].error_code == 0, "the login that is to be replayed does not work"
        whole = b"".join(sent) + client.bytes_of(MetadataRequest(topics=None), 1)
    while target.goes_on:
        cut = whole[: target.rng.randrange(1, len(whole) + 1)]
        for replay in (whole, cut, sent[0] + sent[2], sent[1] + sent[2], whole + whole):
            received = b""
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", target.port), timeout=5) as peer,
            ):
                peer.sendall(replay)
                peer.shutdown(socket.SHUT_WR)
                while more := peer.recv(1 << 16):
                    received += more
            assert b"good-topic" not in received, "a replayed login is served"


def large_tokens(target: LoginTarget) -> None:
    """Send SASL tokens of the largest permitted size over a hundred connections, most of them incomplete."""
    handshake = SaslHandshakeRequest(mechanism="SCRAM-SHA-512")
    token = SaslAuthenticateRequest(auth_bytes=b"n,,n=poor,r=" + b"x" * 500_000)
    while target.goes_on:
        with target.crowd(100) as clients:
            for index, client in enumerate(clients):
                client.socket.settimeout(1)
                with contextlib.suppress(OSError):
                    client.send(handshake, 1)
                    data = client.bytes_of(token, 2)
                    client.socket.sendall(data if index % 5 == 0 else data[:-1])


def garbage_logins(target: LoginTarget) -> None:
    """Send random bytes before and during a login, with and without TLS."""
    rng, context = target.rng, target.context()
    with WireClient(target.port) as wire:
        handshakes = [
            wire.bytes_of(SaslHandshakeRequest(mechanism=name), 0) for name in ("PLAIN", "SCRAM-SHA-256")
        ]
    while target.goes_on:
        junk = rng.randbytes(rng.randrange(1, 200))
        data = rng.choice((b"", *handshakes)) + rng.choice((b"", struct.pack(">i", len(junk)))) + junk
        target.send_bytes(data, 0.5)
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", target.tls_port), timeout=0.5) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1") as tls,
        ):
            tls.sendall(data)
            raw_again = tls.recv(64)
            assert len(raw_again) <= 64


def unread_refusals(target: LoginTarget) -> None:
    """Send ApiVersions requests of an unknown version before a login, and read no response."""
    with WireClient(target.port) as wire:
        known = wire.bytes_of(ApiVersionsRequest(), 0)
    unknown = (known[:6] + struct.pack(">h", 99) + known[8:]) * 2_000
    while target.goes_on:
        with target.crowd(20) as clients:
            for client in clients:
                client.socket.settimeout(0.05)
                with contextlib.suppress(OSError):
                    for _ in range(20):
                        client.socket.sendall(unknown)
            time.sleep(0.2)


LoginAttack = Callable[[LoginTarget], None]

LOGIN_ATTACKS = tuple(
    Attack(run, times)  # type: ignore[arg-type]
    for run, times in (
        (silent_crowd, 1),
        (crowd_amid_handshakes, 1),
        (endless_handshakes, 1),
        (old_tls, 1),
        (guesses, 1),
        (disordered_logins, 1),
        (replayed_logins, 1),
        (large_tokens, 1),
        (garbage_logins, 1),
        (unread_refusals, 1),
    )
)
