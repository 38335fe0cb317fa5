"""Penstock's client against an Apache Kafka with listeners of every security protocol.

The tests cover TLS, client certificates, PLAIN, SCRAM, and the texts of errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import Admin, Consumer, Producer
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.errors import (
    AuthenticationError,
    AuthorizationError,
    ClusterAuthorizationError,
    GroupAuthorizationError,
    KafkaError,
    TopicAuthorizationError,
)
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from penstock.security.oauth import Token, unsecured_token
from penstock.security.scram import salted_password
from security_certificates import Pair, authority, issue

from .peers import PATIENCE_S, free_ports, real_kafka, until

pytestmark = pytest.mark.compat

PASSWORD = 'ann-secret, "quoted" = canary'
"""A password with the characters that JAAS configurations and SCRAM must escape."""

JAAS_PASSWORD = PASSWORD.replace('"', '\\"')
STORE_PASSWORD = "store-canary"
"""The password of the broker's key stores and trust stores."""

AT_ONCE_S = 45
"""Seconds within which an error without retries appears, even on a busy machine.

An error after retries takes a minute or more.
"""

SESSION_S = 6
"""The lifetime in seconds of the broker's sessions and of the provider's tokens."""

FLOW_S = 14
"""Seconds for which records are sent while clients reauthenticate: more than two session lifetimes."""

CA = authority()


class Secured(NamedTuple):
    """A running secured broker: its release, its addresses by listener, and files for clients."""

    version: str
    addresses: dict[str, str]
    ca: str
    certificate: str
    key: str


def _store(pair: Pair, path: Path) -> Path:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"server",
            pair.key,
            pair.certificate,
            [CA.certificate],
            BestAvailableEncryption(STORE_PASSWORD.encode()),
        )
    )
    return path


def _settings(version: str, directory: Path, ports: list[int]) -> dict[str, object]:
    """Return settings of a broker with a listener of each kind.

    The first port is PLAINTEXT, for its controller and for creating users.
    """
    names = ["PLAINTEXT", "SSL", "MTLS", "SASL_PLAINTEXT", "SASL_SSL", "EXPIRED", "ELSEWHERE"]
    protocols = ["PLAINTEXT", "SSL", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "SSL", "SSL"]
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=False))
    (directory / "ca.pem").write_text(CA.certificate_pem)
    stores = {
        "": _store(issue(CA, rsa_key=True), directory / "server.p12"),
        "listener.name.expired.": _store(issue(CA, expired=True, rsa_key=True), directory / "expired.p12"),
        "listener.name.elsewhere.": _store(
            issue(CA, hosts=("b1.example",), rsa_key=True), directory / "elsewhere.p12"
        ),
    }
    settings: dict[str, object] = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{ports[-1]}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@127.0.0.1:{ports[-1]}",
        "listener.security.protocol.map": ",".join(
            ["CONTROLLER:PLAINTEXT", *(f"{n}:{p}" for n, p in zip(names, protocols, strict=True))]
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": directory / "ca.pem",
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "connections.max.reauth.ms": 1000 * SESSION_S,
        "connection.failed.authentication.delay.ms": 50,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:ann;User:b,o=b;User:CN=ann",
    }
    if version < "3":  # with ZooKeeper
        del settings["controller.quorum.voters"]
        settings["listeners"] = listeners
        settings["authorizer.class.name"] = "kafka.security.authorizer.AclAuthorizer"
    for prefix, path in stores.items():
        settings |= {
            f"{prefix}ssl.keystore.type": "PKCS12",
            f"{prefix}ssl.keystore.location": path,
            f"{prefix}ssl.keystore.password": STORE_PASSWORD,
            f"{prefix}ssl.key.password": STORE_PASSWORD,
        }
    package = "org.apache.kafka.common.security"
    # Without a validator of its own, the broker takes tokens without signature: enough to see the protocol.
    settings |= {
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": (
            f'{package}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        escaped = JAAS_PASSWORD.replace("\\", "\\\\")  # once more, for the property file
        settings |= {
            f"{prefix}.plain.sasl.jaas.config": (
                f'{package}.plain.PlainLoginModule required user_ann="{escaped}";'
            ),
            f"{prefix}.scram-sha-256.sasl.jaas.config": f"{package}.scram.ScramLoginModule required;",
            f"{prefix}.scram-sha-512.sasl.jaas.config": f"{package}.scram.ScramLoginModule required;",
        }
    return settings


async def _add_scram_users(bootstrap: str) -> None:
    """Create SCRAM users: ``ann`` with both hashes, ``only512`` with SHA-512, the others with SHA-256."""
    async with AsyncClient(ClientConfig.parse({"bootstrap.servers": bootstrap}, {})) as client:
        await client.bootstrap()
        for user, codes in (
            ("ann", (1,)),
            ("ann", (2,)),
            ("b,o=b", (1,)),
            ("only512", (2,)),
            ("limited", (1,)),
        ):
            for code in codes:
                name = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}[code]
                salted = salted_password(name, PASSWORD, b"salt", 4096)
                upsertion = ScramCredentialUpsertion(
                    name=user, mechanism=code, iterations=4096, salt=b"salt", salted_password=salted
                )
                request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
                answer = await client.request(request, -2)
                assert [each.error_code for each in answer.results] == [0]


@pytest.fixture(scope="module", params=["4.3", "3.9", "2.8"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    names = ["PLAINTEXT", "SSL", "MTLS", "SASL_PLAINTEXT", "SASL_SSL", "EXPIRED", "ELSEWHERE"]
    certificate, key = issue(CA, "ann", client=True).write(directory, "ann")
    ports = free_ports(len(names) + 1)
    settings = _settings(request.param, directory, ports)
    with real_kafka(request.param, settings, first_port=ports[0]) as bootstrap:
        asyncio.run(_add_scram_users(bootstrap))
        addresses = {name: f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=False)}
        made = Secured(request.param, addresses, str(directory / "ca.pem"), certificate, key)
        until(lambda: _is_known(made, "limited"), "the broker hears of the user that was added last")
        yield made


def _is_known(kafka: Secured, user: str) -> bool:
    """Return True if a user's login succeeds.

    The broker answers the request that creates a user before the user can log in.
    """
    with contextlib.suppress(AuthenticationError), Admin(config=scram(kafka, user)) as admin:
        admin.list_topics()
        return True
    return False


def scram(
    kafka: Secured, user: str = "ann", password: str = PASSWORD, name: str = "SCRAM-SHA-256"
) -> dict[str, object]:
    return {
        "bootstrap.servers": kafka.addresses["SASL_SSL"],
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": kafka.ca,
        "sasl.mechanism": name,
        "sasl.username": user,
        "sasl.password": password,
    }


def java(kafka: Secured, module: str, mechanism: str) -> dict[str, object]:
    return {
        "bootstrap.servers": kafka.addresses["SASL_SSL"],
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": kafka.ca,
        "ssl.truststore.type": "PEM",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="ann" '
        f'password="{JAAS_PASSWORD}";',
    }


def ways(kafka: Secured) -> dict[str, dict[str, object]]:
    """Return client settings with which a login succeeds, by name."""
    plain = {
        "bootstrap.servers": kafka.addresses["SASL_PLAINTEXT"],
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": PASSWORD,
    }
    tls = {"security.protocol": "SSL", "ssl.ca.location": kafka.ca}
    return {
        "ssl": {**tls, "bootstrap.servers": kafka.addresses["SSL"]},
        "ssl with certificate": {
            **tls,
            "bootstrap.servers": kafka.addresses["MTLS"],
            "ssl.certificate.location": kafka.certificate,
            "ssl.key.location": kafka.key,
        },
        "ssl 1.2": {**tls, "bootstrap.servers": kafka.addresses["SSL"], "ssl.enabled.protocols": "TLSv1.2"},
        "expired but not verified": {
            "bootstrap.servers": kafka.addresses["EXPIRED"],
            "security.protocol": "SSL",
            "enable.ssl.certificate.verification": "false",
        },
        "elsewhere but host not verified": {
            **tls,
            "bootstrap.servers": kafka.addresses["ELSEWHERE"],
            "ssl.endpoint.identification.algorithm": "",
        },
        "plain": plain,
        "scram 256": scram(kafka),
        "scram 512": scram(kafka, name="SCRAM-SHA-512"),
        "scram of a name with comma": scram(kafka, "b,o=b"),
        "java's plain": java(kafka, "plain.PlainLoginModule", "PLAIN"),
        "java's scram": java(kafka, "scram.ScramLoginModule", "SCRAM-SHA-512"),
    }


WAYS = (
    "ssl",
    "ssl with certificate",
    "ssl 1.2",
    "expired but not verified",
    "elsewhere but host not verified",
    "plain",
    "scram 256",
    "scram 512",
    "scram of a name with comma",
    "java's plain",
    "java's scram",
)


@pytest.mark.parametrize("way", WAYS)
def test_records_there_and_back(kafka: Secured, way: str) -> None:
    settings = ways(kafka)[way]
    topic = "t-" + "".join(letter if letter.isalnum() else "-" for letter in way)
    values = [b"%d" % number + b"x" * (number * 997 % 100_000) for number in range(200)]
    with Admin(config=settings) as admin:
        admin.create_topic(topic, partitions=1)
    with Producer(config=settings) as producer:
        for value in values:
            producer.send(topic, value)
    with Consumer(config={**settings, "auto.offset.reset": "earliest", "group.id": topic}) as consumer:
        consumer.subscribe([topic])
        got: list[bytes | None] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(got) < len(values) and time.monotonic() < deadline:
            got += [record.value for record in consumer.poll(1_000)]
    assert got == values


def failures(kafka: Secured) -> dict[str, tuple[dict[str, object], str]]:
    """Return client settings with which a login fails, by name, each with a part of the error's text."""
    tls = {"security.protocol": "SSL", "ssl.ca.location": kafka.ca}
    at = kafka.addresses
    plain = ways(kafka)["plain"]
    return {
        "wrong password": ({**plain, "sasl.password": "wrong-canary"}, "Invalid username or password"),
        "wrong scram password": (scram(kafka, password="wrong-canary"), "does user 'ann' exist"),
        "unknown scram user": (scram(kafka, "eve"), "does user 'eve' exist"),
        "scram of the other hash": (scram(kafka, "only512"), "credential for SCRAM-SHA-256"),
        "mechanism not enabled": (
            {
                **plain,
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.mechanisms": None,
                "sasl.username": None,
                "sasl.password": None,
                "sasl.oauthbearer.token.provider": lambda: "token",
            },
            "not enabled there; set sasl.mechanism to one of: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        "unknown ca": (
            {"bootstrap.servers": at["SSL"], "security.protocol": "SSL"},
            "signed by an unknown CA.*ssl.ca.location",
        ),
        "expired": ({**tls, "bootstrap.servers": at["EXPIRED"]}, "certificate has expired"),
        "wrong host": (
            {**tls, "bootstrap.servers": at["ELSEWHERE"]},
            "not valid for '127.0.0.1'.*DNS:b1.example.*connect by a name in it",
        ),
        "no certificate": (
            {**tls, "bootstrap.servers": at["MTLS"]},
            "client certificate|requires one and got none",
        ),
        "plaintext at tls": ({"bootstrap.servers": at["SSL"]}, "expects TLS: set security.protocol=SSL"),
        "sasl_plaintext at sasl_ssl": ({**plain, "bootstrap.servers": at["SASL_SSL"]}, "expects TLS"),
        "tls at plaintext": ({**tls, "bootstrap.servers": at["PLAINTEXT"]}, "does not speak TLS: set"),
        "tls at sasl_plaintext": ({**tls, "bootstrap.servers": at["SASL_PLAINTEXT"]}, "does not speak TLS"),
        "plaintext at sasl": (
            {"bootstrap.servers": at["SASL_PLAINTEXT"]},
            "requires clients to authenticate: set security.protocol=SASL_PLAINTEXT.*PLAIN, SCRAM",
        ),
        "ssl at sasl_ssl": (
            {**tls, "bootstrap.servers": at["SASL_SSL"]},
            "requires clients to authenticate: set security.protocol=SASL_SSL.*PLAIN, SCRAM",
        ),
        "sasl at plaintext": ({**plain, "bootstrap.servers": at["PLAINTEXT"]}, "this listener has no SASL"),
    }


FAILURES = (
    "wrong password",
    "wrong scram password",
    "unknown scram user",
    "scram of the other hash",
    "mechanism not enabled",
    "unknown ca",
    "expired",
    "wrong host",
    "no certificate",
    "plaintext at tls",
    "sasl_plaintext at sasl_ssl",
    "tls at plaintext",
    "tls at sasl_plaintext",
    "plaintext at sasl",
    "ssl at sasl_ssl",
    "sasl at plaintext",
)


@pytest.mark.parametrize("kind", ["admin", "producer", "consumer"])
@pytest.mark.parametrize("failure", FAILURES)
def test_every_failure_is_told_at_once_in_one_line(kafka: Secured, failure: str, kind: str) -> None:
    settings, why = failures(kafka)[failure]
    before = time.monotonic()
    with pytest.raises(AuthenticationError, match=why) as caught:
        _use(kind, settings)
    assert time.monotonic() - before < AT_ONCE_S
    text = str(caught.value)
    assert "\n" not in text
    assert "canary" not in text


def _use(kind: str, settings: dict[str, object]) -> None:
    if kind == "admin":
        with Admin(config=settings) as admin:
            admin.list_topics()
    elif kind == "producer":
        with Producer(config=settings) as producer:
            producer.send("t", b"x").result(PATIENCE_S)
    else:
        with Consumer(config={**settings, "group.id": "g"}) as consumer:
            consumer.subscribe(["t"])
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                consumer.poll(1_000)


def test_sessions_are_renewed_under_load_and_no_request_is_lost(kafka: Secured) -> None:
    """Each client sends records beyond the end of two sessions over a single connection."""
    settings = scram(kafka)
    with Admin(config=settings) as admin:
        admin.create_topic("sessions", partitions=1)
    sent = 0
    with Producer(config={**settings, "retries": 0, "enable.idempotence": False}) as producer:
        deadline = time.monotonic() + FLOW_S
        while time.monotonic() < deadline:
            futures = [producer.send("sessions", b"%d" % (sent + each)) for each in range(50)]
            for future in futures:
                future.result(PATIENCE_S)
            sent += 50
            time.sleep(0.01)
    with Consumer(config={**settings, "auto.offset.reset": "earliest", "group.id": "sessions"}) as consumer:
        consumer.subscribe(["sessions"])
        got = []
        deadline = time.monotonic() + PATIENCE_S
        while len(got) < sent and time.monotonic() < deadline:
            got += [record.value for record in consumer.poll(1_000)]
    assert got == [b"%d" % number for number in range(sent)]


@pytest.mark.parametrize(
    ("use", "kind", "why"),
    [
        ("create", TopicAuthorizationError, "TOPIC_AUTHORIZATION_FAILED.*ACL"),
        ("produce", TopicAuthorizationError, "'denied'.*TOPIC_AUTHORIZATION_FAILED.*WRITE to produce"),
        ("consume", TopicAuthorizationError, "'denied'.*TOPIC_AUTHORIZATION_FAILED.*READ to consume"),
        ("commit", GroupAuthorizationError, "'g'.*GROUP_AUTHORIZATION_FAILED.*READ on the group"),
        ("join", GroupAuthorizationError, "'g'.*READ on the group"),
        ("configure", ClusterAuthorizationError, "CLUSTER_AUTHORIZATION_FAILED.*on the cluster"),
    ],
)
def test_what_is_not_allowed_is_told_at_once_with_what_to_do(
    kafka: Secured, use: str, kind: type[KafkaError], why: str
) -> None:
    settings = scram(kafka, "limited")
    before = time.monotonic()
    with pytest.raises(kind, match=why) as caught:
        _use_denied(use, settings)
    assert isinstance(caught.value, AuthorizationError)
    assert not caught.value.retriable
    assert time.monotonic() - before < AT_ONCE_S
    assert "\n" not in str(caught.value)


def _use_denied(use: str, settings: dict[str, object]) -> None:
    if use == "create":
        with Admin(config=settings) as admin:
            admin.create_topic("denied")
    elif use == "configure":
        with Admin(config=settings) as admin:
            admin.describe_config(broker=1)
    elif use == "produce":
        with Producer(config=settings) as producer:
            producer.send("denied", b"x").result(PATIENCE_S)
    elif use == "consume":
        with Consumer(config={**settings, "auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([("denied", 0)])
            consumer.poll(1000 * PATIENCE_S)
    elif use == "join":
        with Consumer(config={**settings, "group.id": "g"}) as consumer:
            consumer.subscribe(["denied"])
            consumer.poll(1000 * PATIENCE_S)
    else:
        with Admin(config=settings) as admin:
            admin.list_group_offsets("g")


def bearer(kafka: Secured, provider: object, **more: object) -> dict[str, object]:
    return {
        "bootstrap.servers": kafka.addresses["SASL_SSL"],
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": kafka.ca,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": provider,
        **more,
    }


def test_tokens_that_end_are_renewed_without_losing_a_request(kafka: Secured) -> None:
    made: list[Token] = []

    async def provider() -> Token:
        made.append(unsecured_token({"sub": "ann"}, time.time(), SESSION_S))
        return made[-1]

    settings = bearer(kafka, provider)
    with Admin(config=settings) as admin:
        admin.create_topic("tokens")
    with Producer(config={**settings, "retries": 0, "enable.idempotence": False}) as producer:
        deadline, sent = time.monotonic() + FLOW_S, 0
        while time.monotonic() < deadline:
            assert producer.send("tokens", b"x").result(PATIENCE_S).offset == sent
            sent += 1
            time.sleep(0.02)
    assert len(made) >= 4  # one of the admin; the producer's first and two more


@pytest.mark.parametrize(
    ("claims", "extensions", "why"),
    [
        ({"sub": ""}, {}, "invalid_token.*is the token still valid"),
        ({"sub": "ann"}, {"auth": "x"}, "extension 'auth' cannot be sent"),
    ],
)
def test_tokens_that_are_refused(
    kafka: Secured, claims: dict[str, str], extensions: dict[str, str], why: str
) -> None:
    token = unsecured_token(claims, time.time(), 60)._replace(extensions=extensions)
    with pytest.raises(AuthenticationError, match=why):
        _use("admin", bearer(kafka, lambda: token))


@pytest.mark.parametrize(
    "more",
    [
        {
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                'unsecuredLoginStringClaim_sub="ann" unsecuredLoginListClaim_scope="|a|b" '
                'unsecuredLoginNumberClaim_level="7" unsecuredLoginLifetimeSeconds="60";'
            )
        },
        {
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": "principal=ann scope=a,b lifeSeconds=60",
        },
    ],
)
def test_a_token_without_signature_by_the_names_of_java_and_librdkafka(
    kafka: Secured, more: dict[str, object]
) -> None:
    _use("admin", bearer(kafka, None, **more))
