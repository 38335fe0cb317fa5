"""Tests of a gateway whose devices log in with their own users.

The cluster behind it has accounts, ACLs and quotas.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gateway.pacing import paced
from gateway.relays import answers_of, request
from penstock.broker.security.throwaway import Security
from penstock.client import Admin, Consumer, Producer
from penstock.client.addresses import Address
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.connection_pool import Peer
from penstock.errors import AuthenticationError, AuthorizationError, ConfigError, PenstockError
from penstock.gateway import Gateway, Limits
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.testing import KafkaBroker

PATIENCE_S = 30.0

ACCOUNTS = {"admin": "admin-pw", "reader": "reader-pw", "writer": "writer-pw"}
ACLS = [
    "allow writer write topic:t",
    "allow writer create topic:t",
    "allow writer describe topic:t",
    "allow reader read topic:t",
    "allow reader describe topic:t",
    "allow reader read group:g",
]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "too late"
        time.sleep(0.01)


def account(name: str, mechanism: str = "SCRAM-SHA-512", password: str | None = None) -> dict[str, str]:
    secret = ACCOUNTS[name] if password is None else password
    return {"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": secret}


TABLES: dict[str, Any] = {
    "users": {
        "sensor": {"password": "sensor-1", "cluster": account("writer")},
        "screen": {"password": "screen-1", "cluster": account("reader", "PLAIN")},
        "operator": {"password": "operator-1", "cluster": account("admin")},
        "stray": {"password": "stray-1", "cluster": account("reader", password="no longer")},
    },
    "connections.max.reauth.ms": 1500,
}


def device(name: str, mechanism: str = "PLAIN", password: str | None = None) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password or f"{name}-1",
    }


@pytest.fixture(scope="module", params=["SASL_PLAINTEXT", "SASL_SSL"])
def broker(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    security = Security(request.param, users=ACCOUNTS, acls=ACLS)
    with KafkaBroker(security=security, num_partitions=1) as broker:
        yield broker


def transport(broker: KafkaBroker) -> dict[str, str]:
    """Return the client settings for a connection to the broker, without SASL credentials."""
    assert broker.security is not None
    settings = dict(broker.security.client_settings())
    return {name: value for name, value in settings.items() if not name.startswith("sasl.")}


@pytest.fixture(scope="module")
def gateway(broker: KafkaBroker) -> Iterator[Gateway]:
    with Gateway(to=broker.bootstrap_servers, config=transport(broker), accounts=TABLES) as gateway:
        yield gateway


def read(servers: str, config: dict[str, str], offset: int) -> bytes:
    """Consume as a member of a group until a given offset, and return that record's value."""
    end = time.monotonic() + PATIENCE_S
    options = {"group_id": "g", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=servers, config=config, **options) as consumer:
        consumer.subscribe(["t"])
        while True:
            assert time.monotonic() < end, f"no record at offset {offset}"
            for record in consumer.poll(100):
                if record.offset == offset:
                    return bytes(record.value)


def test_each_device_is_an_account_of_its_own(gateway: Gateway) -> None:
    servers = gateway.bootstrap_servers
    with Producer(bootstrap_servers=servers, config=device("sensor", "SCRAM-SHA-256")) as producer:
        offset = producer.send("t", b"1").result(PATIENCE_S).offset
    assert read(servers, device("screen"), offset) == b"1"
    with (
        pytest.raises(AuthorizationError),
        Producer(bootstrap_servers=servers, config=device("screen")) as producer,
    ):
        producer.send("t", b"2").result(PATIENCE_S)
    with (
        pytest.raises(AuthorizationError),
        Admin(bootstrap_servers=servers, config=device("sensor", "SCRAM-SHA-512")) as admin,
    ):
        admin.create_topic("another")


def test_quotas_are_those_of_the_account(gateway: Gateway) -> None:
    servers = gateway.bootstrap_servers
    with Admin(bootstrap_servers=servers, config=device("operator")) as admin:
        admin.set_quotas({"user": "writer"}, {"producer_byte_rate": 100.0})
        try:
            for name, is_throttled in (("operator", False), ("sensor", True)):
                config = device(name) | {"request.timeout.ms": "300"}
                with Producer(bootstrap_servers=servers, config=config) as producer:
                    for _ in range(3):
                        producer.send("t", bytes(2000)).result(PATIENCE_S)
                    brokers = producer.stats().brokers.values()
                    assert any(each.throttle.cnt for each in brokers) == is_throttled, name
                    producer.close(0)
        finally:
            admin.set_quotas({"user": "writer"}, {"producer_byte_rate": None})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", ["sensor", "nobody"])
def test_a_wrong_login_is_refused_by_the_gateway(gateway: Gateway, name: str, mechanism: str) -> None:
    config = device(name, mechanism, "wrong") | {"penstock.login.patience.ms": "0"}
    with (
        pytest.raises(AuthenticationError, match=r"authentication by (PLAIN|SCRAM)"),
        Admin(bootstrap_servers=gateway.bootstrap_servers, config=config) as admin,
    ):
        admin.list_topics()


def test_a_session_is_renewed_at_the_gateway(gateway: Gateway) -> None:
    before = sum(row.requests for row in gateway.clients() if row.api == "ApiVersions")
    with Producer(bootstrap_servers=gateway.bootstrap_servers, config=device("sensor")) as producer:
        for number in paced(4):
            producer.send("t", b"%d" % number).result(PATIENCE_S)
    after = sum(row.requests for row in gateway.clients() if row.api == "ApiVersions")
    assert after - before < 5, "connections have ended with their sessions"


def test_kafka_python_and_librdkafka_log_in(gateway: Gateway) -> None:
    servers = gateway.bootstrap_servers
    kafka = pytest.importorskip("kafka")
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="sensor",
        sasl_plain_password="sensor-1",
    )
    producer.send("t", b"kp").get(PATIENCE_S)
    producer.close()
    confluent = pytest.importorskip("confluent_kafka")
    failures: list[object] = []
    other = confluent.Producer({"bootstrap.servers": servers, **device("sensor")})
    other.produce("t", b"ck", on_delivery=lambda error, _: failures.append(error))
    assert other.flush(PATIENCE_S) == 0
    assert failures == [None]


def exchange(sock: socket.socket, data: bytes) -> bytes:
    sock.sendall(data)
    size = int.from_bytes(received(sock, 4), "big")
    return size.to_bytes(4, "big") + received(sock, size)


def received(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "the connection has ended"
        data += piece
    return bytes(data)


def test_an_old_client_without_headers_around_tokens(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as sock:
        answer = exchange(sock, request(SaslHandshakeRequest(mechanism="PLAIN"), 0))
        assert answers_of(answer, 17, 0)[0][1].error_code == 0
        token = b"\0screen\0screen-1"
        assert exchange(sock, len(token).to_bytes(4, "big") + token) == bytes(4)
        [(_, found)] = answers_of(exchange(sock, request(MetadataRequest(topics=None), 1)), 3, 1)
        assert [(each.node_id, each.port) for each in found.brokers] == [(1, gateway.node_ports[0].port)]


def test_hostile_tokens_end_their_connection_only(gateway: Gateway) -> None:
    with Producer(bootstrap_servers=gateway.bootstrap_servers, config=device("sensor")) as producer:
        producer.send("t", b"a").result(PATIENCE_S)
        for data in (
            b"\x16\x03\x01" + bytes(300),
            (1 << 30).to_bytes(4, "big") + b"\0\x11\0\0" + bytes(100),
            request(SaslHandshakeRequest(mechanism="PLAIN"), 0) + b"\0\0\0\x05aaaaa" + bytes(10),
            request(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            + request(SaslAuthenticateRequest(auth_bytes=b"\0sensor\0no"), 2),
        ):
            with socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as sock:
                sock.sendall(data)
                try:
                    while sock.recv(1 << 16):
                        pass
                except ConnectionResetError:
                    pass
        producer.send("t", b"b").result(PATIENCE_S)
    until(lambda: gateway.held_bytes == 0)


def test_clients_that_are_not_logged_in_cause_one_question_to_a_broker(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    greet = AsyncClient.greet

    async def counted(self: AsyncClient, address: Address) -> Peer:
        asked.append(address)
        return await greet(self, address)

    with Gateway(to=broker.bootstrap_servers, config=transport(broker), accounts=TABLES) as gateway:
        monkeypatch.setattr(AsyncClient, "greet", counted)
        with ExitStack() as stack:
            address = ("127.0.0.1", gateway.port)
            socks = [stack.enter_context(socket.create_connection(address, PATIENCE_S)) for _ in range(30)]
            for sock in socks:
                sock.sendall(request(ApiVersionsRequest(), 0))
            for sock in socks:
                size = int.from_bytes(received(sock, 4), "big")
                received(sock, size)
    assert len(asked) == 1


def test_an_account_that_the_cluster_refuses_is_said_in_the_log(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    config = device("stray") | {"default.api.timeout.ms": "1000", "request.timeout.ms": "1000"}
    with (
        pytest.raises(PenstockError),
        Admin(bootstrap_servers=gateway.bootstrap_servers, config=config) as admin,
    ):
        admin.list_topics()
    assert "the account of user stray: " in caplog.text
    assert "no longer" not in caplog.text


def test_a_client_that_does_not_log_in_is_disconnected(broker: KafkaBroker) -> None:
    limits = Limits(login_ms=100)
    with (
        Gateway(
            to=broker.bootstrap_servers, config=transport(broker), accounts=TABLES, limits=limits
        ) as gateway,
        socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as sock,
    ):
        assert sock.recv(1) == b""


def written(path: Path, users: dict[str, str], default: str = "") -> Path:
    lines = []
    for user, name in [*users.items(), *([("", default)] if default else [])]:
        head = [f"[users.{user}]", f'password = "{user}-1"'] if user else ["[default]"]
        lines += [*head, *(f'cluster.{key} = "{value}"' for key, value in account(name).items())]
    path.write_text("\n".join(lines))
    path.chmod(0o600)
    return path


def test_a_file_is_followed_while_the_gateway_runs(broker: KafkaBroker, tmp_path: Path) -> None:
    path = written(tmp_path / "accounts.toml", {"sensor": "writer", "operator": "admin"})
    with (
        Gateway(to=broker.bootstrap_servers, config=transport(broker), accounts=path) as gateway,
        Producer(bootstrap_servers=gateway.bootstrap_servers, config=device("operator")) as stays,
    ):
        stays.send("t", b"a").result(PATIENCE_S)
        servers = gateway.bootstrap_servers
        server = gateway._server
        assert server is not None

        def connected() -> set[str]:
            logins = [client.relay.login for client in list(server.clients) if client.relay is not None]
            return {login.account.name for login in logins if login is not None and login.account is not None}

        with Producer(bootstrap_servers=servers, config=device("sensor")) as producer:
            producer.send("t", b"b").result(PATIENCE_S)
            assert connected() == {"user operator", "user sensor"}
            written(path, {"operator": "admin"}, default="writer")
            until(lambda: connected() == {"user operator"})
        stays.send("t", b"c").result(PATIENCE_S)
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("t", b"d").result(PATIENCE_S)
        assert set(server._brokers._clients) <= server._book.accounts.live  # type: ignore[union-attr]


def test_the_gateway_may_have_an_account_of_its_own_beside_those_of_devices(broker: KafkaBroker) -> None:
    config = transport(broker) | account("admin")
    with Gateway(to=broker.bootstrap_servers, config=config, accounts=TABLES) as gateway:
        assert len(gateway.node_ports) == 1, "it asks for brokers before any client comes"
        with (
            pytest.raises(AuthorizationError),
            Admin(bootstrap_servers=gateway.bootstrap_servers, config=device("screen")) as admin,
        ):
            admin.create_topic("another")


def test_clients_of_07_do_not_get_past_a_login() -> None:
    for given in ({"accounts": TABLES}, {"tls_cert": "x.pem"}):
        with pytest.raises(ConfigError, match="have another gateway for them"):
            Gateway(to="a:1", v07_port=0, **given)  # type: ignore[arg-type]


def test_accounts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="name users"):
        Gateway(to="a:1", accounts={})


def test_a_device_of_2016_reaches_a_cluster_of_today_as_its_account() -> None:
    kafka = pytest.importorskip("kafka")
    security = Security("SASL_PLAINTEXT", users=ACCOUNTS, mechanisms=["SCRAM-SHA-512"], acls=[])
    tables = {"users": {"device": {"password": "device-1", "cluster": account("admin")}}}
    with (
        KafkaBroker(security=security, as_version="4.0", num_partitions=1) as broker,
        Gateway(to=broker.bootstrap_servers, config=transport(broker), accounts=tables) as gateway,
    ):
        with Admin(bootstrap_servers=gateway.bootstrap_servers, config=device("device")) as admin:
            admin.create_topic("t", partitions=1)
        options = {
            "bootstrap_servers": gateway.bootstrap_servers,
            "api_version": (0, 10, 0),
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "device",
            "sasl_plain_password": "device-1",
        }
        producer = kafka.KafkaProducer(**options)
        for number in range(100):
            producer.send("t", b"%d" % number)
        producer.flush()
        producer.close()
        consumer = kafka.KafkaConsumer("t", **options, group_id="g", auto_offset_reset="earliest")
        found: list[int] = []
        while len(found) < 100:
            for records in consumer.poll(1000).values():
                found += [int(record.value) for record in records]
        consumer.commit()
        consumer.close()
        assert found == list(range(100))
        rows = {(row.api, row.version) for row in gateway.clients()}
        assert ("SaslHandshake", 0) in rows
        assert any(row.api == "Produce" and not row.is_spoken for row in gateway.clients())


def test_the_session_of_an_account_is_renewed_between_requests() -> None:
    security = Security("SASL_PLAINTEXT", users=ACCOUNTS)
    tables = {"users": TABLES["users"]}
    config = {"connections.max.reauth.ms": "1500"}
    with (
        KafkaBroker(security=security, num_partitions=1, config=config) as broker,
        Gateway(to=broker.bootstrap_servers, config=transport(broker), accounts=tables) as gateway,
        Producer(bootstrap_servers=gateway.bootstrap_servers, config=device("sensor")) as producer,
    ):
        for _ in paced(4):
            producer.send("t", b"x").result(PATIENCE_S)
        connected = sum(row.requests for row in gateway.clients() if row.api == "ApiVersions")
        assert connected < 5, "connections have ended with their sessions"


# --- TLS in front


@pytest.fixture(scope="module")
def certificate() -> Security:
    security = Security("SSL")
    security.settings("127.0.0.1", 0)  # makes the certificate
    return security


def test_devices_connect_by_tls(broker: KafkaBroker, certificate: Security) -> None:
    pem = str(certificate.directory / "server.pem")
    trust = {"security.protocol": "SASL_SSL", "ssl.ca.location": certificate.ca_file}
    with Gateway(
        to=broker.bootstrap_servers, config=transport(broker), accounts=TABLES, tls_cert=pem
    ) as gateway:
        config = device("sensor") | trust
        with Producer(bootstrap_servers=gateway.bootstrap_servers, config=config) as producer:
            values = [bytes([number]) * 300_000 for number in range(10)]
            first, *_ = [producer.send("t", value) for value in values]
            producer.flush()
            offset = first.result(PATIENCE_S).offset
        assert read(gateway.bootstrap_servers, device("screen") | trust, offset) == values[0]
        with Consumer(
            bootstrap_servers=gateway.bootstrap_servers, config=device("operator") | trust, group_id="tls"
        ) as consumer:
            [end] = consumer.end_offsets([("t", 0)]).values()
            consumer.assign([("t", 0)])
            consumer.seek(("t", 0), end - 10)
            seen: list[bytes] = []
            stop = time.monotonic() + PATIENCE_S
            while len(seen) < 10:
                assert time.monotonic() < stop
                seen += [bytes(each.value) for each in consumer.poll(50)]
            assert seen == values
        for data in (b"\0\0\0\x10\0\x12\0\0" + bytes(20), b"\x16\x03\x01\0\x05aaaaa", bytes(50)):
            with socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as sock:
                sock.sendall(data)
                try:
                    while sock.recv(1 << 16):
                        pass
                except ConnectionResetError:
                    pass
        until(lambda: gateway.held_bytes == 0)


def test_a_tls_handshake_that_takes_too_long_is_ended(certificate: Security) -> None:
    pem = str(certificate.directory / "server.pem")
    with (
        Gateway(to="127.0.0.1:1", tls_cert=pem, limits=Limits(login_ms=100)) as gateway,
        socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as sock,
    ):
        sock.sendall(b"\x16\x03\x01\x02\x00")
        assert sock.recv(1) == b""


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    for given in ({"tls_cert": str(tmp_path / "none.pem")}, {"tls_key": "x"}, {"tls_cert": ""}):
        with pytest.raises(ConfigError):
            Gateway(to="a:1", **given)  # type: ignore[arg-type]
