"""Tests of brokers with TLS and SASL on real sockets, with valid clients and with unauthorized ones."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.wire_client import WireClient
from penstock import Admin, Broker, Consumer, Producer
from penstock.broker.security.throwaway import Security
from penstock.errors import ConfigError, KafkaError, MissingDependencyError, PenstockError
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.security.sasl_server import LoginOutcome
from penstock.testing import KafkaBroker

pytest.importorskip("cryptography")

CA = Security("SASL_SSL")


def settings_of(broker: Broker, *arguments: Any) -> dict[str, Any]:
    return dict(broker.client_settings(*arguments))


def there_and_back(settings: dict[str, Any], topic: str = "t", value: bytes = b"hello") -> bytes | None:
    with Producer(config=settings) as producer:
        producer.send(topic, value)
        producer.flush()
    with Consumer(config={**settings, "auto.offset.reset": "earliest", "group.id": "g"}) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for record in consumer.poll(1_000):
                return record.value
    return None


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL", "SSL"])
def test_one_line_gives_a_secured_broker_and_fitting_settings(protocol: str, tmp_path: Path) -> None:
    with Broker(tmp_path, security=protocol) as broker:
        assert there_and_back(settings_of(broker), value=b"x" * 300_000) == b"x" * 300_000


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_mechanisms(mechanism: str) -> None:
    with Broker(security="SASL_PLAINTEXT") as broker:
        assert there_and_back(settings_of(broker, "user", mechanism)) == b"hello"
        settings = settings_of(broker, "user", mechanism) | {"sasl.password": "wrong"}
        with pytest.raises(PenstockError, match=r"(?i)authenticat|password"), Admin(config=settings) as admin:
            admin.list_topics()


def test_users_and_data_are_there_after_a_restart(tmp_path: Path) -> None:
    security = Security("SASL_SSL", users={"ann": 'p,=w"\\ö'})
    with Broker(tmp_path, security=security) as broker:
        settings = settings_of(broker)
        assert there_and_back(settings) == b"hello"
        broker.stop()
        broker.start()
        assert there_and_back(settings, value=b"again") == b"again"


def test_an_authorizer_refuses_what_no_rule_allows() -> None:
    rules = ["allow user write,read topic:mine", "allow user read group:g"]
    with Broker(security=Security("SASL_PLAINTEXT", acls=rules)) as broker:
        with Admin(config=settings_of(broker, "admin")) as admin:
            admin.create_topics(["mine", "yours"])
        assert there_and_back(settings_of(broker, "user"), "mine") == b"hello"
        with Admin(config=settings_of(broker, "user")) as admin:
            assert list(admin.list_topics()) == ["mine"]


# --- counted logins ----------------------------------------------------------------------------------------


def logins(broker: Broker) -> dict[str, int]:
    """Return the login counts of the metrics page: a dict from outcome to count, without zeros.

    A `+` after the outcome marks re-authentications.
    """
    assert broker.server is not None
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.server.metrics_port}/metrics", timeout=10) as page:
        text = page.read().decode()
    line = re.compile(r'penstock_logins_total\{listener="[A-Z_]+",outcome="(.*)",again="(.*)"\} ([0-9]+)')
    found = [(word + "+" * (again == "true"), int(count)) for word, again, count in line.findall(text)]
    assert len(found) == 6
    return {word: count for word, count in found if count}


def test_logins_are_counted_by_outcome() -> None:
    with Broker(security="SASL_PLAINTEXT", penstock_metrics_port=0) as broker:
        assert logins(broker) == {}
        with Admin(config=settings_of(broker)) as admin:
            admin.list_topics()
        wrong = settings_of(broker) | {"sasl.password": "wrong"}
        with pytest.raises(PenstockError), Admin(config=wrong) as admin:
            admin.list_topics()
        found = logins(broker)
        assert found.keys() == {"successful", "failed"}
        assert min(found.values()) >= 1


def test_handshakes_of_tls_are_counted_where_there_is_no_sasl() -> None:
    security = Security("SSL", client_certificates=True, users=["ann"])
    with Broker(security=security, penstock_metrics_port=0) as broker:
        with Admin(config=settings_of(broker, "ann")) as admin:
            admin.list_topics()
        assert logins(broker).keys() == {"successful"}
        with socket.create_connection(("127.0.0.1", broker.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while stranger.recv(1024):
                pass
        assert logins(broker)["failed"] == 1


# --- certificates ------------------------------------------------------------------------------------------


def test_client_certificates_name_the_principal() -> None:
    security = Security("SSL", client_certificates=True, acls=["allow ann all topic:*"], users=["ann", "bob"])
    with Broker(security=security) as broker:
        with Producer(config=settings_of(broker, "ann")) as producer:
            producer.send("t", b"a")
            producer.flush()
        with Admin(config=settings_of(broker, "bob")) as admin:
            assert list(admin.list_topics()) == []


def context(broker: Broker, **versions: ssl.TLSVersion) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=settings_of(broker).get("ssl.ca.location"))
    for name, version in versions.items():
        setattr(made, name, version)
    return made


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_certificate_is_refused_with_an_alert(
    version: ssl.TLSVersion, caplog: pytest.LogCaptureFixture
) -> None:
    security = Security("SSL", client_certificates=True)
    with Broker(security=security) as broker, caplog.at_level(logging.INFO, "penstock.broker"):
        made = context(broker, maximum_version=version)
        with (
            pytest.raises(ssl.SSLError, match=r"(?i)alert"),
            socket.create_connection(("127.0.0.1", broker.port), 10) as raw,
            made.wrap_socket(raw, server_hostname="localhost") as wrapped,
        ):
            wrapped.recv(1)
    assert "TLS" in caplog.text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_before_1_2_is_refused() -> None:
    with Broker(security="SSL") as broker:
        made = context(broker)
        made.minimum_version, made.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        made.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", broker.port), 10) as raw:
            made.wrap_socket(raw, server_hostname="localhost")


def test_the_end_of_tls_is_answered_and_the_socket_closed() -> None:
    """The broker answers a client's close_notify.

    Clients wait for this answer; asyncio waits for 30 seconds.
    """
    with (
        Broker(security="SSL") as broker,
        socket.create_connection(("127.0.0.1", broker.port), 10) as raw,
    ):
        raw.settimeout(10)
        secured = context(broker).wrap_socket(raw, server_hostname="localhost")
        with secured.unwrap() as plain:
            assert plain.recv(100) == b""


def test_a_plain_client_at_a_tls_port_gets_an_alert_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock.broker")
    with (
        Broker(security="SSL") as broker,
        socket.create_connection(("127.0.0.1", broker.port), 10) as raw,
    ):
        raw.sendall(b"\0\0\0\x0f\0\x12\0\0\0\0\0\1\0\1c")
        assert raw.recv(100) == bytes.fromhex("15030300020250")
        assert raw.recv(100) == b""
    assert "TLS" in caplog.text


def test_a_tls_client_at_a_plain_port_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker, caplog.at_level(logging.INFO, "penstock.broker"):
        made = ssl.create_default_context()
        with (
            pytest.raises((ssl.SSLError, OSError)),
            socket.create_connection(("127.0.0.1", broker.port), 10) as raw,
        ):
            made.wrap_socket(raw, server_hostname="localhost")
    assert "a client with TLS at a listener without TLS" in caplog.text


def served_certificate(broker: Broker) -> bytes | None:
    with (
        socket.create_connection(("127.0.0.1", broker.port), 10) as raw,
        context(broker).wrap_socket(raw, server_hostname="localhost") as wrapped,
    ):
        return wrapped.getpeercert(True)


def test_certificates_change_without_a_restart() -> None:
    with KafkaBroker(security="SASL_SSL") as broker:
        first = served_certificate(broker)
        with Admin(config=settings_of(broker)) as admin:
            admin.list_topics()
            broker.rotate_certificate()
            assert served_certificate(broker) != first
            admin.list_topics()
        broker.rotate_certificate(expired=True)
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            served_certificate(broker)
        broker.rotate_certificate(hosts=["elsewhere.example"])
        with pytest.raises(ssl.SSLCertVerificationError, match=r"(?i)hostname"):
            served_certificate(broker)


def test_a_certificate_that_cannot_be_read_leaves_the_older_in_force(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with KafkaBroker(security="SSL") as broker:
        first = served_certificate(broker)
        assert broker.security is not None
        (broker.security.directory / "server.pem").write_text("no certificate")
        broker._call(lambda server: server.renew_certificates())
        assert served_certificate(broker) == first
    assert "keeps its certificate" in caplog.text


def test_certificates_change_by_a_setting_of_the_listener() -> None:
    from penstock.protocol.messages.config_record import ConfigRecord

    with KafkaBroker(security="SSL") as broker:
        security = broker.security
        assert security is not None
        first = served_certificate(broker)
        made = security.authority.issue("other", ["localhost"])
        path = security.directory / "other.pem"
        path.write_bytes(made.key_pem + made.certificate_pem)
        name = "listener.name.ssl.ssl.keystore.location"
        record = ConfigRecord(resource_type=4, resource_name="1", name=name, value=str(path))
        broker._call(lambda server: server.node.cluster.alter([record], 0))
        broker._call(lambda server: server.renew_certificates())
        assert served_certificate(broker) != first


STRICT = {f"listener.name.ssl.ssl.allow.{what}.changes": "false" for what in ("dn", "san")}


def other_store(broker: KafkaBroker, subject: str, hosts: list[str]) -> str:
    """Write a new key and certificate, signed by the broker's CA; return the path of the file."""
    security = broker.security
    assert security is not None
    made = security.authority.issue(subject, hosts)
    path = security.directory / "other.pem"
    path.write_bytes(made.key_pem + made.certificate_pem)
    return str(path)


HOSTS = ["localhost", "127.0.0.1", "::1"]


@pytest.mark.parametrize(
    ("subject", "hosts", "allowed", "said"),
    [
        ("penstock", [*HOSTS, "more.example"], (), None),
        ("Penstock", HOSTS, (), None),
        ("other", HOSTS, (), "the new certificate is that of 'CN=other'"),
        ("other", HOSTS, ("dn",), None),
        ("other", HOSTS, ("san",), "set ssl.allow.dn.changes=true"),
        ("penstock", ["localhost"], (), "lacks 2 of the host names"),
        ("penstock", ["localhost"], ("dn",), "set ssl.allow.san.changes=true"),
        ("penstock", ["localhost"], ("san",), None),
    ],
)
def test_a_renewed_certificate_is_of_the_same_name_unless_that_is_allowed(
    subject: str,
    hosts: list[str],
    allowed: tuple[str, ...],
    said: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """AlterConfigs refuses a certificate with another name with error 42.

    If only the file changes, the broker keeps its certificate and logs the reason.
    """
    config = STRICT | {f"listener.name.ssl.ssl.allow.{what}.changes": "true" for what in allowed}
    with KafkaBroker(security="SSL", config=config) as broker, Admin(config=settings_of(broker)) as admin:
        first = served_certificate(broker)
        path = other_store(broker, subject, hosts)
        change = {"listener.name.ssl.ssl.keystore.location": path}
        if said is None:
            admin.alter_config(broker=1, set=change)
        else:
            with pytest.raises(KafkaError, match=said) as caught:
                admin.alter_config(broker=1, set=change)
            assert caught.value.code == 42
        broker._call(lambda server: server.renew_certificates())
        assert (served_certificate(broker) == first) == (said is not None)
        if said is not None:
            assert broker.security is not None
            Path(path).replace(broker.security.directory / "server.pem")
            broker._call(lambda server: server.renew_certificates())
            assert served_certificate(broker) == first
            assert said in caplog.text


def test_an_answer_behind_the_end_of_a_tls_connection_is_dropped() -> None:
    """A response may be written between the client's close_notify and the end of the socket."""

    def end_and_answer(server: Any) -> bool:
        (connection,) = server.connections
        connection._transport.close()
        connection._transport.write(b"late")
        return bool(connection._transport.is_closing())

    made = ssl._create_unverified_context()
    with (
        Broker(security="SSL") as broker,
        socket.create_connection(("127.0.0.1", broker.port), 10) as raw,
        made.wrap_socket(raw) as wrapped,
    ):
        data = b"\0\x12\0\0\0\0\0\7\0\1c"
        wrapped.sendall(len(data).to_bytes(4, "big") + data)
        assert wrapped.recv(4)
        assert broker._call(end_and_answer)
        while rest := wrapped.recv(10_000):
            assert b"late" not in rest


# --- logins ------------------------------------------------------------------------------------------------


def test_a_failed_login_is_answered_late_and_closed_while_others_are_served() -> None:
    config = {"listener.name.sasl_plaintext.connection.failed.authentication.delay.ms": "300"}
    with Broker(security="SASL_PLAINTEXT", config=config) as broker, WireClient(broker.port) as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        began = time.monotonic()
        client.send(SaslAuthenticateRequest(auth_bytes=b"\0user\0wrong"), 2)
        with WireClient(broker.port) as other:
            assert other.ask(ApiVersionsRequest(), 0).error_code == 0
        _, response = client.receive()
        assert response.error_code == 58
        assert time.monotonic() - began >= 0.3
        assert client.is_closed_by_peer()


def test_before_authentication_nothing_else_is_served() -> None:
    with Broker(security="SASL_PLAINTEXT") as broker:
        for request in (MetadataRequest(topics=None), SaslAuthenticateRequest(auth_bytes=b"x")):
            with WireClient(broker.port) as client:
                client.send(request, 1)
                assert client.is_closed_by_peer()
        with socket.create_connection(("127.0.0.1", broker.port), 10) as raw:
            raw.sendall((600_000).to_bytes(4, "big"))
            assert raw.recv(1) == b""


def test_connections_that_do_not_log_in_are_closed_and_the_oldest_makes_room() -> None:
    config = {"penstock.unauthenticated.connections.max": "20", "penstock.authentication.timeout.ms": "60000"}
    with KafkaBroker(security="SASL_PLAINTEXT", config=config) as broker:
        idle = [socket.create_connection(("127.0.0.1", broker.port), 10) for _ in range(60)]
        with Admin(config=settings_of(broker)) as admin:
            admin.list_topics()
        open_, evicted = broker._call(lambda server: (len(server.login_limits), server.login_limits.evicted))
        assert open_ <= 20
        assert evicted >= 40
        broker.advance(61)
        assert broker._call(lambda server: len(server.login_limits)) == 0
        assert all(each.recv(1) == b"" for each in idle)
        for each in idle:
            each.close()


def test_sessions_that_expire_are_renewed_without_a_lost_request() -> None:
    config = {"listener.name.sasl_plaintext.connections.max.reauth.ms": "60000"}
    with KafkaBroker(security="SASL_PLAINTEXT", config=config) as broker:
        topic = broker.create_topic()
        with Producer(config=settings_of(broker)) as producer:
            for number in range(5):
                producer.send(topic, b"%d" % number)
                producer.flush()
                assert broker.expire_sessions("admin") >= 1
        end = broker._call(lambda server: server.node.cluster.topic(topic).partition(0).log.end_offset)
        assert end == 5
        [counts] = broker._call(lambda server: [each.logins.counts for each in server.securities.values()])
        assert counts[LoginOutcome.EXPIRED, True] >= 4
        assert counts[LoginOutcome.SUCCESSFUL, False] >= 5
        assert counts[LoginOutcome.FAILED, False] == counts[LoginOutcome.FAILED, True] == 0


def test_a_revoked_user_is_refused() -> None:
    with KafkaBroker(security="SASL_PLAINTEXT") as broker:
        for mechanism in ("PLAIN", "SCRAM-SHA-512"):
            with Admin(config=settings_of(broker, "user", mechanism)) as admin:
                admin.list_topics()
        broker.revoke_user("user")
        for mechanism in ("PLAIN", "SCRAM-SHA-512"):
            with pytest.raises(PenstockError), Admin(config=settings_of(broker, "user", mechanism)) as admin:
                admin.list_topics()


# --- listeners ---------------------------------------------------------------------------------------------


@pytest.fixture
def three() -> Iterator[Broker]:
    """Yield a broker with three listeners: plaintext, SASL_SSL and SSL."""
    security = Security("SASL_SSL")
    given = security.settings("127.0.0.1", 0)
    settings = {
        **given,
        "listeners": "OPEN://127.0.0.1:0,SASL_SSL://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "advertised.listeners": "OUTSIDE://kafka.example:9999",
        "listener.security.protocol.map": "OPEN:PLAINTEXT,SASL_SSL:SASL_SSL,OUTSIDE:SSL",
        "listener.name.outside.ssl.keystore.location": str(security.directory / "server.pem"),
    }
    with Broker(config=settings) as broker:
        yield broker
    security.close()


def test_a_listener_with_a_name_tells_clients_that_name() -> None:
    settings = {
        "listeners": "NAMED://localhost:0,ADDRESSED://127.0.0.1:0,RENAMED://localhost:0",
        "advertised.listeners": "RENAMED://kafka.example:0",
        "listener.security.protocol.map": "NAMED:PLAINTEXT,ADDRESSED:PLAINTEXT,RENAMED:PLAINTEXT",
    }
    with Broker(config=settings) as broker:
        assert broker.server is not None
        ports = {name: port for name, (_, port) in broker.server.addresses.items()}
        hosts = {"NAMED": "localhost", "ADDRESSED": "127.0.0.1", "RENAMED": "kafka.example"}
        for name, port in ports.items():
            with WireClient(port) as client:
                (found,) = client.ask(MetadataRequest(topics=None), 1).brokers
            assert (found.host, found.port) == (hosts[name], port)


def test_each_listener_tells_its_own_address(three: Broker) -> None:
    assert three.server is not None
    addresses = three.server.addresses
    assert set(addresses) == {"OPEN", "SASL_SSL", "OUTSIDE"}
    assert len({port for _, port in addresses.values()}) == 3
    with WireClient(addresses["OPEN"][1]) as client:
        (found,) = client.ask(MetadataRequest(topics=None), 1).brokers
        assert (found.host, found.port) == addresses["OPEN"]
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 34
        versions = client.ask(ApiVersionsRequest(), 0).api_keys
    made = ssl._create_unverified_context()
    with socket.create_connection(addresses["OUTSIDE"], 10) as raw, made.wrap_socket(raw) as wrapped:
        client = WireClient.__new__(WireClient)
        client.__dict__.update(socket=wrapped)
        data = b"\0\x03\0\1\0\0\0\7\0\1c\xff\xff\xff\xff"
        wrapped.sendall(len(data).to_bytes(4, "big") + data)
        assert b"kafka.example" in wrapped.recv(10_000)
    assert versions


@pytest.mark.parametrize(
    "settings",
    [{"listeners": "SSL://127.0.0.1:0"},
     {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": ""},
     {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "CRAM-MD5"},
     {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER"},
     {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": "/missing"},
     {"authorizer.class.name": "other"}, {"listener.name.x.ssl.unknown": "1"}],
)  # fmt: skip
def test_settings_that_protect_nothing_stop_the_start(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        Broker(config=settings).start()


# --- secrets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [{"sasl.enabled.mechanisms": "GSSAPI"}, {}])
def test_kerberos_without_its_library_is_told_with_the_extra(
    named: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the missing extra `penstock[kerberos]`.

    Kerberos is the default mechanism of a listener with SASL, as in Apache Kafka.
    """
    monkeypatch.setitem(sys.modules, "gssapi", None)
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", **named}
    with pytest.raises(MissingDependencyError, match=r"penstock\[kerberos\]"), Broker(config=settings):
        pass


def test_no_secret_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    from penstock.protocol.messages.describe_configs_request import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    password = "planted-secret-1"
    config = {"delegation.token.secret.key": "planted-secret-2", "ssl.key.password": "planted-secret-3"}
    security = Security("SASL_PLAINTEXT", users={"ann": password})
    with caplog.at_level(logging.DEBUG), Broker(security=security, config=config) as broker:
        assert "planted" not in repr(broker)
        assert "planted" not in repr(security)
        with WireClient(broker.port) as client:
            client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            client.ask(SaslAuthenticateRequest(auth_bytes=b"\0ann\0" + password.encode()), 2)
            asked = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
            response = client.ask(DescribeConfigsRequest(resources=[asked], include_synonyms=True), 4)
            (result,) = response.results
            assert "planted" not in repr(response)
            secret = {each.name for each in result.configs if each.is_sensitive and each.value is None}
            assert {"delegation.token.secret.key", "ssl.key.password"} <= secret
            assert "listener.name.sasl_plaintext.plain.sasl.jaas.config" in secret
    assert "planted" not in caplog.text
