"""Tests of passwords, tokens, certificates and CAs whose files are replaced while clients run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from penstock import Admin, Consumer, Producer
from penstock.broker.security.throwaway import Security
from penstock.client.security.options import parse_security
from penstock.client.security.rotation import Logins, SecurityFiles, is_same_login, paths_of, presume_accepted
from penstock.client.security.settings import SecuritySettings
from penstock.errors import AuthenticationError, LoginPendingError
from penstock.security.oauth import base64url
from penstock.testing import KafkaBroker
from security_certificates import authority, issue

SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "ann"}


def write(path: Path, text: str) -> None:
    """Replace a file atomically by a rename, as Kubernetes does."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    users = {"admin": "of the admin", "ann": "first"}
    security = Security("SASL_PLAINTEXT", users=users, mechanisms=["SCRAM-SHA-256"])
    with KafkaBroker(security=security) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
def password(broker: KafkaBroker, tmp_path: Path) -> Path:
    """Return a file with ann's password ``first``, which the broker accepts."""
    set_password(broker, "first")
    path = tmp_path / "password"
    write(path, "first\n")
    return path


def set_password(broker: KafkaBroker, text: str) -> None:
    with Admin(config=broker.client_settings("admin")) as admin:
        admin.set_password("ann", text, ["SCRAM-SHA-256"])


def settings_of(broker: KafkaBroker, path: Path) -> dict[str, str]:
    servers = broker.client_settings("admin")["bootstrap.servers"]
    return {**SCRAM, "bootstrap.servers": servers, "sasl.password": f"${{file:{path}}}"}


def test_a_producer_goes_on_with_the_password_that_its_file_has_now(
    broker: KafkaBroker, password: Path
) -> None:
    with Producer(config=settings_of(broker, password)) as producer:
        first = producer.send("t", b"0").result(30)
        set_password(broker, "second")
        broker.expire_sessions("ann")
        waiting = producer.send("t", b"1")
        with pytest.raises(TimeoutError):
            waiting.result(0.3)  # between the change at the broker and that of the file no login succeeds
        write(password, "second\n")
        assert waiting.result(30).offset == first.offset + 1


def test_a_consumer_and_its_group_go_on(broker: KafkaBroker, password: Path) -> None:
    settings = settings_of(broker, password)
    with Producer(config=settings) as producer:
        offset = producer.send("t", b"x").result(30).offset
        group = {"group.id": f"g-{offset}", "auto.offset.reset": "earliest"}
        with Consumer(config={**settings, **group}) as consumer:
            consumer.subscribe(["t"])
            while not any(record.offset == offset for record in consumer.poll(10_000)):
                pass
            set_password(broker, "third")
            write(password, "third\n")
            broker.expire_sessions("ann")
            producer.send("t", b"y").result(30)
            found = [record.offset for record in consumer.poll(20_000)]
    assert found == [offset + 1]


def test_a_wrong_password_that_was_never_accepted_is_told_at_once(
    broker: KafkaBroker, password: Path
) -> None:
    write(password, "wrong")
    begun = time.monotonic()
    with (
        pytest.raises(AuthenticationError, match="is the password right"),
        Admin(config=settings_of(broker, password)) as admin,
    ):
        admin.list_topics()
    assert time.monotonic() - begun < 20


def test_a_refusal_is_told_when_patience_is_over(broker: KafkaBroker, password: Path) -> None:
    settings = {**settings_of(broker, password), "penstock.login.patience.ms": "150"}
    with Producer(config=settings) as producer:
        producer.send("t", b"0").result(30)
        set_password(broker, "other")
        broker.expire_sessions("ann")
        with pytest.raises(AuthenticationError, match="is the password right"):
            producer.send("t", b"1").result(30)
        write(password, "other")
        sent_once_accepted(producer)


# --- what is looked at


def test_every_file_of_the_settings_is_looked_at(tmp_path: Path) -> None:
    ca = authority()
    certificate, key = issue(ca, client=True).write(tmp_path, "client")
    trusted = tmp_path / "ca.pem"
    trusted.write_text(ca.certificate_pem)
    (tmp_path / "pair").write_text("user=ann\npassword=secret\n")
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="${{file:{tmp_path}/pair:user}}" password="${{file:{tmp_path}/pair:password}}";'
    )
    tls = {"ssl.ca.location": str(trusted), "ssl.certificate.location": certificate, "ssl.key.location": key}
    plain = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    found = parse_security({**plain, **tls, "sasl.jaas.config": jaas})
    assert found is not None
    assert (found.username, found.password and found.password.reveal()) == ("ann", "secret")
    login, rest = paths_of(found)
    assert (login, set(rest)) == ([f"{tmp_path}/pair"], {str(trusted), certificate, key})
    (tmp_path / "jaas").write_text(jaas)
    whole = parse_security({**plain, **tls, "sasl.jaas.config": f"${{file:{tmp_path}/jaas}}"})
    assert whole is not None
    assert paths_of(whole)[0] == [f"{tmp_path}/jaas", f"{tmp_path}/pair"]
    assert is_same_login(found, whole)


def settled(*paths: Path) -> None:
    """Set the modification time of files to a minute ago."""
    for path in paths:
        os.utime(path, (time.time() - 60, time.time() - 60))


def test_a_file_that_is_half_written_changes_nothing_until_it_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ca = authority()
    certificate, key = (Path(each) for each in issue(ca, client=True).write(tmp_path, "client"))
    trusted = tmp_path / "ca.pem"
    trusted.write_text(ca.certificate_pem)
    settled(certificate, key, trusted)
    settings = parse_security(
        {
            "security.protocol": "SSL",
            "ssl.ca.location": str(trusted),
            "ssl.certificate.location": str(certificate),
            "ssl.key.location": str(key),
        }
    )
    assert settings is not None
    files = SecurityFiles(settings)
    assert not files.have_changed()
    fresh = issue(ca, client=True)
    certificate.write_text(fresh.certificate_pem)
    assert files.have_changed()
    assert files.read(settings) is None
    assert "the private key does not belong to the certificate" in caplog.text
    settled(certificate)
    assert files.read(settings) is None
    assert not files.have_changed(), "what cannot be used is not read again and again"
    key.write_text(fresh.key_pem)
    assert files.have_changed()
    assert files.read(settings) is not None
    key.unlink()
    assert files.have_changed()
    assert files.read(settings) is None


def test_a_second_write_within_one_tick_of_the_file_system_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "password"
    path.write_text("first")
    a_moment_later_ns = path.stat().st_mtime_ns + 1
    monkeypatch.setattr("penstock.client.security.rotation.time.time_ns", lambda: a_moment_later_ns)
    settings = parse_security({**SCRAM, "sasl.password": f"${{file:{path}}}"})
    assert settings is not None
    files = SecurityFiles(settings)
    assert files.have_changed(), "it has just been written: another write might leave no trace"
    found = files.read(settings)
    assert found is not None
    assert is_same_login(found[0], settings)


# --- how long a refusal is waited out


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def of_file(path: Path) -> tuple[SecuritySettings, SecurityFiles]:
    path.write_text("secret")
    settled(path)
    settings = parse_security({**SCRAM, "sasl.password": f"${{file:{path}}}"})
    assert settings is not None
    return settings, SecurityFiles(settings)


def test_a_login_is_waited_out_only_where_it_was_accepted_before(tmp_path: Path) -> None:
    _, files = of_file(tmp_path / "password")
    clock, error = Clock(), AuthenticationError("no")
    logins = Logins(clock)
    assert logins.judge("one", error, 10, files) is error
    logins.accept("one")
    assert isinstance(logins.judge("one", error, 10, files), LoginPendingError)
    clock.now = 9.9
    assert isinstance(logins.judge("one", error, 10, files), LoginPendingError)
    clock.now = 10
    assert logins.judge("one", error, 10, files) is error
    logins.accept("one")
    assert isinstance(logins.judge("one", error, 10, files), LoginPendingError)
    logins.presume("other")
    assert isinstance(logins.judge("other", error, 10, files), LoginPendingError)
    clock.now += 10
    logins.presume("other")
    assert logins.judge("other", error, 10, files) is error, "what is known is not presumed anew"


def test_a_secret_that_stands_in_the_settings_is_not_waited_for() -> None:
    settings = parse_security({**SCRAM, "sasl.password": "secret"})
    assert settings is not None
    logins, error = Logins(), AuthenticationError("no")
    logins.accept("one")
    assert logins.judge("one", error, 10, SecurityFiles(settings)) is error


def test_what_is_remembered_of_logins_is_bounded() -> None:
    logins = Logins()
    for number in range(2_000):
        logins.accept(number)
    assert len(logins._refused_since) == 256
    presume_accepted("nowhere", None)


# --- certificates


def test_certificates_and_cas_are_taken_from_their_files_again(tmp_path: Path) -> None:
    security = Security("SSL", users=["ann"], client_certificates=True)
    with KafkaBroker(security=security) as broker:
        broker.create_topic("t")
        settings = broker.client_settings("ann")
        certificate, trusted = tmp_path / "client.pem", tmp_path / "ca.pem"
        right, ca = Path(settings["ssl.certificate.location"]).read_text(), Path(security.ca_file).read_text()
        foreign = authority()
        wrong = issue(foreign, "ann", client=True)
        write(certificate, right)
        write(trusted, ca)
        settings["ssl.ca.location"] = str(trusted)
        settings["ssl.certificate.location"] = settings["ssl.key.location"] = str(certificate)
        with Producer(config=settings) as producer:
            producer.send("t", b"0").result(30)
            write(certificate, wrong.key_pem + wrong.certificate_pem)
            broker.faults.close("Produce", times=1)
            with pytest.raises(AuthenticationError, match="does not know the CA of this side's"):
                producer.send("t", b"lost").result(30)
            write(certificate, right)
            sent_once_accepted(producer)
            write(trusted, foreign.certificate_pem)
            broker.faults.close("Produce", times=1)
            with pytest.raises(AuthenticationError, match="is signed by an unknown CA"):
                producer.send("t", b"lost").result(30)
            write(trusted, ca)
            sent_once_accepted(producer)


GARBAGE = {
    "nothing": b"",
    "other bytes": bytes(range(256)) * 8,
    "no base64": "-----BEGIN CERTIFICATE-----\nÄÖÜ\n-----END CERTIFICATE-----\n".encode(),
    "half a file": None,
    "no file": None,
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_in_place_of_certificates_ends_neither_side(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    security = Security("SSL", users=["ann"], client_certificates=True)
    with KafkaBroker(security=security) as broker:
        broker.create_topic("t")
        settings = broker.client_settings("ann")
        files = {
            "client": tmp_path / "client.pem",
            "client's CA": tmp_path / "ca.pem",
            "server": security.directory / "server.pem",
            "server's CA": Path(security.ca_file),
        }
        write(files["client"], Path(settings["ssl.certificate.location"]).read_text())
        write(files["client's CA"], files["server's CA"].read_text())
        settings["ssl.ca.location"] = str(files["client's CA"])
        settings["ssl.certificate.location"] = settings["ssl.key.location"] = str(files["client"])
        with Producer(config=settings) as producer:
            sent = [producer.send("t", b"before").result(30).offset]
            for path in files.values():
                right = path.read_bytes()
                path.unlink()
                if kind != "no file":
                    path.write_bytes(
                        right[: len(right) // 2] if kind == "half a file" else GARBAGE[kind] or b""
                    )
                broker._call(lambda server: server.renew_certificates())
                for _ in range(2):  # the files are looked at when a connection is opened
                    broker.faults.close("Produce", times=1)
                    sent.append(producer.send("t", b"meanwhile").result(30).offset)
                path.write_bytes(right)
                broker._call(lambda server: server.renew_certificates())
                broker.faults.close("Produce", times=1)
                sent.append(producer.send("t", b"afterwards").result(30).offset)
            broker.rotate_certificate()
            broker.faults.close("Produce", times=1)
            sent.append(producer.send("t", b"with another certificate").result(30).offset)
    assert sent == list(range(14))
    said = [record.getMessage() for record in caplog.records]
    assert sum("keeps its certificate" in each for each in said) == 2
    assert sum("cannot be used now, going on as before" in each for each in said) >= 2
    assert not [record for record in caplog.records if record.exc_info]


def sent_once_accepted(producer: Producer) -> None:
    """Send a record, retrying while connection attempts from before the file's change fail."""
    deadline = time.monotonic() + 30
    while True:
        try:
            producer.send("t", b"again").result(30)
            return
        except AuthenticationError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


# --- tokens


KEY = ec.generate_private_key(ec.SECP256R1())


def token(life_s: float, subject: str = "ann") -> str:
    claims = {"sub": subject, "iat": time.time() - 1, "exp": time.time() + life_s, "jti": os.urandom(4).hex()}
    head = {"alg": "ES256", "kid": "e"}
    signed = f"{base64url(json.dumps(head).encode())}.{base64url(json.dumps(claims).encode())}"
    halves = decode_dss_signature(KEY.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{base64url(b''.join(half.to_bytes(32, 'big') for half in halves))}"


@pytest.fixture
def of_tokens(tmp_path: Path) -> Iterator[Any]:
    """Run a broker that accepts OAUTHBEARER tokens.

    Yields it with the settings of a client whose token is in a file.
    """
    numbers = KEY.public_key().public_numbers()
    x, y = (base64url(each.to_bytes(32, "big")) for each in (numbers.x, numbers.y))
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [{"kty": "EC", "kid": "e", "crv": "P-256", "x": x, "y": y}]}))
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
        "listener.name.sasl_plaintext.sasl.oauthbearer.clock.skew.seconds": "0",
    }
    with KafkaBroker(config=settings) as broker:
        broker.create_topic("t")
        path = tmp_path / "token"
        yield (
            broker,
            path,
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": f"file://{path}",
            },
        )


def test_a_token_is_what_its_file_has_now(of_tokens: Any) -> None:
    broker, path, settings = of_tokens
    write(path, token(600))
    with Producer(config=settings) as producer:
        assert producer.send("t", b"0").result(30).offset == 0
        broker.advance(601)  # the session is over, and the file still has the old token
        waiting = producer.send("t", b"1")
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        write(path, token(3600))
        assert waiting.result(30).offset == 1
        # A token that is replaced long before its end, as after a theft, is not shown again.
        broker.expire_sessions("ann")
        write(path, token(3600, "bob"))
        assert producer.send("t", b"2").result(30).offset == 2
        assert broker.expire_sessions("ann") == 0
