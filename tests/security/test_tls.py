"""Tests of Penstock's TLS client and server against each other, byte by byte: all kinds of failures.

Handshakes that succeed are tested as well.
"""

from __future__ import annotations

import random
import ssl
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import AuthenticationError, ConfigError
from penstock.security.secrets import Secret
from penstock.security.tls import INTERNAL_ERROR_ALERT, SLICE_BYTES, TlsConnection, TlsError
from penstock.security.tls_context import (
    TlsSettings,
    client_context,
    openssl_cipher,
    own_certificate,
    server_context,
)
from security_certificates import Pair, authority, issue, self_signed

CA = authority()
SERVER = issue(CA)
CLIENT = issue(CA, "ann", client=True)


def of_server(pair: Pair = SERVER, **more: object) -> ssl.SSLContext:
    values: dict[str, object] = {"certificate": pair.certificate_pem, "key": Secret(pair.key_pem)}
    return server_context(TlsSettings(**{**values, **more}))  # type: ignore[arg-type]


def of_client(**more: object) -> ssl.SSLContext:
    return client_context(TlsSettings(**{"ca": CA.certificate_pem, **more}))  # type: ignore[arg-type]


class Wire:
    """A client and a server connection in memory, between which `step` bytes are passed at a time."""

    def __init__(
        self,
        server: ssl.SSLContext | None = None,
        client: ssl.SSLContext | None = None,
        name: str = "localhost",
        step: int = 1 << 20,
    ) -> None:
        self.server = TlsConnection(server or of_server(), is_server=True)
        self.client = TlsConnection(client or of_client(), is_server=False, server_name=name)
        self.step = step
        self.to_server = bytearray()
        self.to_client = bytearray()
        self.at_server = bytearray()
        self.at_client = bytearray()
        self.server_error: TlsError | None = None
        self.client_error: TlsError | None = None

    def _collect(self) -> None:
        for chunk in self.client.to_send():
            self.to_server += chunk
        for chunk in self.server.to_send():
            self.to_client += chunk

    @staticmethod
    def _deliver(end: TlsConnection, data: bytearray, out: bytearray, step: int) -> TlsError | None:
        part, data[:step] = bytes(data[:step]), b""
        try:
            end.receive(part)
            buffer = bytearray(5000)
            while count := end.read_into(buffer):
                out += buffer[:count]
        except TlsError as error:
            return error
        return None

    def run(self) -> Wire:
        """Pass bytes between the two connections until neither has more to send."""
        self._collect()
        while self.to_server or self.to_client:
            if self.to_server:
                self.server_error = self.server_error or self._deliver(
                    self.server, self.to_server, self.at_server, self.step
                )
            self._collect()
            if self.to_client:
                self.client_error = self.client_error or self._deliver(
                    self.client, self.to_client, self.at_client, self.step
                )
            self._collect()
        return self

    def shake(self) -> Wire:
        self.client.start()
        return self.run()


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize("versions", [("TLSv1.2",), ("TLSv1.3",), ()])
def test_data_pass_both_ways_in_pieces_of_any_size(step: int, versions: tuple[str, ...]) -> None:
    wire = Wire(client=of_client(versions=versions), step=step)
    wire.client.start()
    wire.client.write(b"early, ")
    wire.run()
    assert wire.client.is_ready
    assert wire.server.is_ready
    assert wire.client.version == (versions or ("TLSv1.3",))[0] == wire.server.version
    assert wire.client.cipher == wire.server.cipher
    assert wire.client.cipher is not None
    wire.client.write(memoryview(b"then late"))
    wire.server.write(b"x" * 40_000)
    wire.run()
    assert wire.at_server == b"early, then late"
    assert wire.at_client == b"x" * 40_000
    assert wire.client.peer_certificate() is not None
    assert wire.server.peer_certificate() is None
    wire.client.close()
    wire.run()
    assert wire.server.is_ended
    assert not wire.client.is_ended


@settings(max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 100_000)), max_size=6), st.integers(1, 70_000))
def test_any_writes_in_any_order_arrive_as_they_were_written(
    writes: list[tuple[bool, int]], step: int
) -> None:
    wire = Wire(SERVER_CONTEXT, CLIENT_CONTEXT, step=step)
    wire.client.start()
    sent = {True: b"", False: b""}
    for number, (by_client, size) in enumerate(writes):
        data = bytes([number + 1]) * size
        sent[by_client] += data
        (wire.client if by_client else wire.server).write(data)
    wire.run()
    assert wire.at_server == sent[True]
    assert wire.at_client == sent[False]


SERVER_CONTEXT, CLIENT_CONTEXT = of_server(), of_client()


@for_each(
    [
        (pair, name, why, versions)
        for versions in [("TLSv1.2",), ("TLSv1.3",)]
        for pair, name, why in [
            (issue(authority("other")), "localhost", "unknown CA.*ssl.ca.location"),
            (self_signed(), "localhost", "unknown CA"),
            (issue(CA, expired=True), "localhost", "has expired"),
            (issue(CA, future=True), "localhost", "not yet valid"),
            (
                issue(CA, hosts=("b1.example", "10.0.0.1")),
                "localhost",
                "not valid for 'localhost'.*b1.example.*10.0.0.1",
            ),
            (issue(CA, hosts=("localhost",)), "127.0.0.1", "not valid for '127.0.0.1'"),
            (CLIENT, "localhost", "not made for a server|not valid for"),
        ]
    ]
)
def test_a_server_that_is_not_trusted_is_told_so_by_an_alert(
    pair: Pair, name: str, why: str, versions: tuple[str, ...]
) -> None:
    wire = Wire(of_server(pair, versions=versions), name=name).shake()
    with pytest.raises(AuthenticationError, match=why):
        raise wire.client_error or AssertionError("accepted")
    assert wire.server_error is not None  # the alert has come
    assert "peer" in str(wire.server_error)
    assert not wire.at_server


@pytest.mark.parametrize(
    "pair", [None, issue(authority("other"), "eve", client=True), issue(CA, client=True, expired=True)]
)
@pytest.mark.parametrize("versions", [("TLSv1.2",), ("TLSv1.3",)])
def test_a_client_that_is_not_trusted_learns_it_even_after_its_handshake(
    pair: Pair | None, versions: tuple[str, ...]
) -> None:
    own: dict[str, object] = {}
    if pair is not None:
        own = {"certificate": pair.certificate_pem, "key": Secret(pair.key_pem)}
    server = of_server(client_auth="required", ca=CA.certificate_pem, versions=versions)
    wire = Wire(server, of_client(**own)).shake()
    assert wire.server_error is not None
    assert wire.client_error is not None
    assert "certificate" in str(wire.server_error)
    assert "certificate" in str(wire.client_error) or "know the CA" in str(wire.client_error)


@pytest.mark.parametrize("mode", ["requested", "required"])
def test_a_client_certificate_is_shown_to_the_server(mode: str) -> None:
    server = of_server(client_auth=mode, ca=CA.certificate_pem)
    own = of_client(certificate=CLIENT.certificate_pem, key=Secret(CLIENT.key_pem))
    wire = Wire(server, own).shake()
    from cryptography.hazmat.primitives.serialization import Encoding

    assert wire.server.peer_certificate() == CLIENT.certificate.public_bytes(Encoding.DER)


def test_none_is_fine_where_a_certificate_is_only_requested() -> None:
    wire = Wire(of_server(client_auth="requested", ca=CA.certificate_pem)).shake()
    assert wire.server.is_ready
    assert wire.server.peer_certificate() is None


def test_tls_below_1_2_is_refused_with_an_alert() -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    wire = Wire(client=old).shake()
    assert "1.2 or newer is needed" in str(wire.server_error)
    assert "refuses the versions" in str(wire.client_error)
    with pytest.raises(ConfigError, match="too old"):
        of_client(versions=("TLSv1.1", "SSLv3"))
    with pytest.raises(ConfigError, match="not known"):
        of_client(versions=("TLSv9",))


@pytest.mark.parametrize(
    ("beginning", "why"),
    [
        (b"\0\0\0\x14\0\x12", "speaks Kafka without TLS"),
        (b"GET / HTTP/1.1", "HTTP"),
        (b"\xff\xff", "does not speak TLS"),
    ],
)
def test_a_client_without_tls_gets_the_alert_that_apache_kafka_sends(beginning: bytes, why: str) -> None:
    server = TlsConnection(SERVER_CONTEXT, is_server=True)
    with pytest.raises(TlsError, match=why):
        server.receive(beginning)
    assert b"".join(server.to_send()) == INTERNAL_ERROR_ALERT


@pytest.mark.parametrize(
    ("beginning", "why"), [(b"\0\0\0\x08", "does not speak TLS"), (b"HTTP/1.1 400", "HTTP")]
)
def test_a_client_tells_a_server_without_tls(beginning: bytes, why: str) -> None:
    client = TlsConnection(CLIENT_CONTEXT, is_server=False, server_name="localhost")
    client.start()
    with pytest.raises(TlsError, match=why):
        client.receive(beginning)


def test_the_alert_for_plaintext_is_understood_by_a_client_of_ours() -> None:
    client = TlsConnection(CLIENT_CONTEXT, is_server=False, server_name="localhost")
    client.start()
    with pytest.raises(TlsError, match="error of its own"):
        client.receive(INTERNAL_ERROR_ALERT)


def test_ends_in_the_middle_and_at_the_end() -> None:
    wire = Wire()
    wire.client.start()
    hello = b"".join(wire.client.to_send())
    wire.server.receive(hello[:20])
    with pytest.raises(TlsError, match="in the middle"):
        wire.server.receive_end()
    silent = TlsConnection(CLIENT_CONTEXT, is_server=False, server_name="localhost")
    silent.start()
    silent.receive_end()
    assert silent.is_ended
    done = Wire().shake()
    done.client.receive_end()
    assert done.client.read_into(bytearray(10)) == 0
    assert done.client.is_ended


@settings(max_examples=60)
@given(st.integers(0, 3000), st.integers(1, 255), st.booleans())
def test_a_changed_byte_anywhere_raises_nothing_but_tls_errors(at: int, change: int, of_client: bool) -> None:
    wire = Wire(SERVER_CONTEXT, CLIENT_CONTEXT)
    wire.client.start()
    wire._collect()
    for _ in range(4):
        data = wire.to_server if of_client else wire.to_client
        if at < len(data):
            data[at] ^= change
        for end, queue in ((wire.server, wire.to_server), (wire.client, wire.to_client)):
            if queue and Wire._deliver(end, queue, bytearray(), 1 << 20):
                return
            wire._collect()


@settings(max_examples=100)
@given(st.binary(max_size=400), st.booleans())
def test_random_bytes_raise_nothing_but_tls_errors(data: bytes, handshake: bool) -> None:
    server = TlsConnection(SERVER_CONTEXT, is_server=True)
    body = b"\x16\x03\x01" + len(data).to_bytes(2, "big") + data if handshake else data
    try:
        server.receive(body)
        server.read_into(bytearray(100))
        server.receive_end()
    except TlsError:
        return


def test_a_damaged_record_comes_after_what_was_before_it() -> None:
    wire = Wire().shake()
    wire.server.write(b"before")
    wire.run()
    wire.server.write(b"good")
    good = b"".join(wire.server.to_send())
    wire.server.write(b"evil")
    bad = bytearray(b"".join(wire.server.to_send()))
    bad[-1] ^= 1
    wire.client.receive(good + bad)
    buffer = bytearray(100)
    assert wire.client.read_into(buffer) == 4
    with pytest.raises(TlsError, match="damaged or forged"):
        wire.client.read_into(buffer)


def test_a_first_record_that_cannot_be_read_may_be_the_alert_of_a_broker_that_wants_a_certificate() -> None:
    wire = Wire().shake()
    wire.server.write(b"alert")
    bad = bytearray(b"".join(wire.server.to_send()))
    bad[-1] ^= 1
    wire.client.receive(bad)
    with pytest.raises(TlsError, match="is a client certificate wanted"):
        wire.client.read_into(bytearray(10))


def test_hosts_are_compared_without_a_last_dot_and_not_at_all_when_told_so() -> None:
    assert Wire(name="localhost.").shake().client.is_ready
    assert Wire(client=of_client(verify_host=False), name="elsewhere").shake().client.is_ready
    trusting = client_context(TlsSettings(verify=False))
    assert Wire(client=trusting, name="elsewhere").shake().client.is_ready
    stranger = Wire(client=of_client(verify_host=False, ca=authority("o").certificate_pem)).shake()
    assert "unknown CA" in str(stranger.client_error)


def test_an_intermediate_ca_in_the_chain_and_as_the_only_trusted_one() -> None:
    middle = authority("middle", signer=CA)
    leaf = issue(middle)
    assert Wire(of_server(leaf)).shake().client.is_ready
    from cryptography.hazmat.primitives.serialization import Encoding

    only = middle.certificate.public_bytes(Encoding.PEM).decode()
    assert Wire(of_server(leaf), of_client(ca=only)).shake().client.is_ready


def test_pem_by_path_in_a_directory_on_one_line_and_in_one_file(tmp_path: Path) -> None:
    certificate, key = CLIENT.write(tmp_path, "client")
    ca, _ = CA.write(tmp_path / "ca", "ca")
    both = tmp_path / "both.pem"
    both.write_text("about it\n" + CLIENT.key_pem + CLIENT.certificate_pem)
    server = of_server(client_auth="required", ca=CA.certificate_pem)
    folded = CA.certificate_pem.replace("\n", " ")
    escaped = CA.certificate_pem.replace("\n", "\\n")
    for more in (
        {"ca": ca, "certificate": certificate, "key": Secret(key)},
        {"ca": folded, "certificate": CLIENT.certificate_pem, "key": Secret(CLIENT.key_pem)},
        {"ca": escaped, "keystore": str(both)},
        {"ca": None, "truststore": ca, "keystore": str(both)},
    ):
        wire = Wire(server, of_client(**more)).shake()
        assert wire.server.is_ready, (wire.server_error, wire.client_error)


def test_encrypted_keys_ask_for_their_password_in_the_error_only(tmp_path: Path) -> None:
    encrypted = Secret(CLIENT.encrypted_key_pem("open sesame"))
    certificate = CLIENT.certificate_pem
    of_client(certificate=certificate, key=encrypted, key_password=Secret("open sesame"))
    with pytest.raises(ConfigError, match=r"encrypted; set ssl\.key\.password"):
        of_client(certificate=certificate, key=encrypted)
    with pytest.raises(ConfigError, match="does not open") as caught:
        of_client(certificate=certificate, key=encrypted, key_password=Secret("wrong canary"))
    assert "canary" not in str(caught.value)


@for_each(
    [
        ({"ca": "/nowhere/ca.pem"}, r"/nowhere/ca\.pem cannot be read: No such file"),
        ({"ca": "-----BEGIN CERTIFICATE-----"}, "no certificate"),
        ({"ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"}, "cannot be used"),
        ({"ca": "-----BEGIN CERTIFICATE-----\nÄÄ==\n-----END CERTIFICATE-----"}, "that are not pem"),
        ({"truststore": "-----BEGIN CERTIFICATE-----\nÄÄ==\n-----END CERTIFICATE-----"}, "that are not pem"),
        ({"key": Secret("x")}, "without its certificate"),
        ({"certificate": SERVER.certificate_pem}, "no private key"),
        ({"certificate": SERVER.certificate_pem, "key": Secret(CLIENT.key_pem)}, "does not belong"),
        ({"keystore": "/nowhere/k"}, "keystore /nowhere/k cannot be read"),
        ({"crl": "/nowhere/c"}, "revocation list"),
        ({"ciphers": "NONSENSE"}, "has none of these"),
        ({"curve": "nonsense"}, "one name of a curve"),
    ]
)
def test_what_cannot_be_used_is_an_error_that_names_it(more: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        of_client(**more)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes of a file truncated, overwritten in places, or replaced with other data."""
    found = bytearray(data)
    at = rng.randrange(len(found))
    kind = rng.randrange(5)
    if kind == 0:
        del found[at:]
    elif kind == 1:
        found[at : at + rng.randint(1, 300)] = rng.randbytes(rng.randint(0, 300))
    elif kind == 2:
        for _ in range(rng.randint(1, 8)):
            found[rng.randrange(len(found))] = rng.randrange(256)
    elif kind == 3:
        found[at:at] = rng.choice((b"-----END CERTIFICATE-----", b"-----BEGIN PRIVATE KEY-----", b"\0", b"="))
    else:
        found[:] = rng.randbytes(rng.randrange(3000))
    return bytes(found)


def test_garbage_in_place_of_pem_files_raises_nothing_but_config_errors(tmp_path: Path) -> None:
    path, rng, refused = tmp_path / "file", random.Random(16), 0
    pair = (SERVER.key_pem + SERVER.certificate_pem).encode()
    for _ in range(120):
        for right, of_files in (
            (pair, TlsSettings(certificate=str(path), key=Secret(str(path)))),
            (CA.certificate_pem.encode(), TlsSettings(ca=str(path))),
            (CA.certificate_pem.encode(), TlsSettings(truststore=str(path))),
        ):
            path.write_bytes(damaged(right, rng))
            try:
                client_context(of_files)
                own_certificate(of_files)
            except ConfigError:
                refused += 1
    assert refused > 180


def test_a_listener_without_certificate_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a certificate"):
        server_context(TlsSettings())


def test_cipher_suites_of_java_and_of_openssl() -> None:
    java = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    assert openssl_cipher(java) == "ECDHE-ECDSA-AES128-GCM-SHA256"
    assert openssl_cipher("TLS_RSA_WITH_AES_256_CBC_SHA256") == "AES256-SHA256"
    assert openssl_cipher("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256") == "ECDHE-RSA-CHACHA20-POLY1305"
    wire = Wire(client=of_client(ciphers=java)).shake()
    assert wire.client.version == "TLSv1.2"
    assert wire.client.cipher == "ECDHE-ECDSA-AES128-GCM-SHA256"
    assert (
        Wire(client=of_client(ciphers="TLS_AES_256_GCM_SHA384", curve="prime256v1")).shake().client.is_ready
    )


def test_what_a_connection_keeps_after_megabytes_is_little() -> None:
    wire = Wire(SERVER_CONTEXT, CLIENT_CONTEXT).shake()
    wire.server.write(bytes(1 << 20))
    data = b"".join(wire.server.to_send())
    buffer = bytearray(1 << 20)
    wire.client.receive(data)
    tracemalloc.start()
    read = 0
    while count := wire.client.read_into(memoryview(buffer)[read:]):
        read += count
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read == 1 << 20
    assert peak < 4 * SLICE_BYTES  # what Python allocates; OpenSSL's own buffers are bounded by the slices
