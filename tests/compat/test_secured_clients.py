"""Third-party clients and Apache Kafka's tools at a Penstock broker with TLS, SASL and an authorizer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.peers import LEAKY_CLIENTS, PATIENCE_S, java, maven_classpath, need_module
from compat.places import ONE, THREE, made_secure
from penstock import Admin
from penstock.broker.security.throwaway import Security
from penstock.cli.client_config import read_config
from penstock.testing import KafkaBroker, KafkaCluster

Served = KafkaBroker | KafkaCluster
pytestmark = [pytest.mark.compat, pytest.mark.timeout(600), *LEAKY_CLIENTS]

PROTOCOLS = ("SASL_SSL", "SASL_PLAINTEXT")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(
    scope="module",
    params=[
        *((ONE, protocol) for protocol in PROTOCOLS),
        *(pytest.param((THREE, protocol), marks=pytest.mark.soak) for protocol in PROTOCOLS),
    ],
    ids=" ".join,
)
def broker(request: pytest.FixtureRequest) -> Iterator[Served]:
    place, protocol = request.param
    security = Security(protocol, users={"admin": "a,=pw", "ann": "b-pw"}, super_users=["admin"])
    config = {"delegation.token.secret.key": "for-tokens"}
    with made_secure(place, security, config) as made:
        yield made


def python_settings(broker: Served, mechanism: str, password: str = "a,=pw") -> dict[str, Any]:
    settings = broker.client_settings("admin")
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": settings["security.protocol"],
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "admin",
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(broker: Served, mechanism: str) -> None:
    kafka = need_module("kafka")
    topic = f"kp-{mechanism}"
    settings = python_settings(broker, mechanism)
    settings["ssl_cafile"] = broker.client_settings("admin").get("ssl.ca.location")
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, b"x").get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, auto_offset_reset="earliest", group_id=topic, consumer_timeout_ms=1000 * PATIENCE_S, **settings
    )
    assert next(iter(consumer)).value == b"x"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(broker: Served, mechanism: str) -> None:
    aiokafka = need_module("aiokafka")

    async def go() -> None:
        settings = python_settings(broker, mechanism)
        ca = broker.client_settings("admin").get("ssl.ca.location")
        settings["ssl_context"] = ssl.create_default_context(cafile=ca) if ca else None
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(f"aio-{mechanism}", b"y")

    asyncio.run(go())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(broker: Served, mechanism: str) -> None:
    confluent = need_module("confluent_kafka")
    settings = dict(broker.client_settings("admin", mechanism))
    topic = f"ck-{mechanism}"
    producer = confluent.Producer(settings)
    producer.produce(topic, b"z" * 100_000)
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_S)
    assert message is not None
    assert message.error() is None
    assert message.value() == b"z" * 100_000
    consumer.close()


@pytest.fixture(scope="module", params=[PROTOCOLS[0], pytest.param(PROTOCOLS[1], marks=pytest.mark.soak)])
def unsecured(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    """Provide a broker that accepts unsigned OAUTHBEARER tokens, and gives rights to user alice only."""
    security = Security(request.param, users=["alice"], super_users=["alice"], unsecured_tokens=True)
    with KafkaBroker(security=security) as made:
        yield made


@pytest.mark.parametrize("principal", ["alice", "bob"])
def test_librdkafka_with_tokens_without_a_signature(unsecured: KafkaBroker, principal: str) -> None:
    confluent = need_module("confluent_kafka")
    settings = {
        **unsecured.client_settings("alice"),
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": f"principal={principal} scope=a,b lifeSeconds=60",
    }
    outcomes: list[Any] = []
    producer = confluent.Producer(settings)
    producer.produce("ck-tokens", b"x", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(PATIENCE_S) == 0
    (error,) = outcomes
    assert error is None if principal == "alice" else error.name() == "TOPIC_AUTHORIZATION_FAILED"


def test_java_with_tokens_without_a_signature(unsecured: KafkaBroker, tmp_path: Path) -> None:
    settings = unsecured.client_settings("alice")
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    lines = [
        f"security.protocol={settings['security.protocol']}",
        "sasl.mechanism=OAUTHBEARER",
        f'sasl.jaas.config={module} unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_level="7"'
        ' unsecuredLoginListClaim_scope="|a|b" unsecuredLoginExtension_traceId="123";',
    ]
    if "ssl.ca.location" in settings:
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={settings['ssl.ca.location']}"]
    path = tmp_path / "client.properties"
    path.write_text("\n".join(lines))
    server = "--bootstrap-server", unsecured.bootstrap_servers, "--command-config", str(path)
    main = "org.apache.kafka.tools.TopicCommand"
    java(maven_classpath("kafka-4.3.0"), main, *server, "--create", "--topic", "java-tokens", check=True)
    with Admin(config={"bootstrap.servers": unsecured.bootstrap_servers, **read_config(str(path))}) as admin:
        assert "java-tokens" in admin.list_topics()


def test_tools_of_apache_kafka(broker: Served, tmp_path: Path) -> None:
    settings = broker.client_settings("admin")
    path = tmp_path / "client.properties"
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    lines = [
        f"security.protocol={settings['security.protocol']}",
        "sasl.mechanism=SCRAM-SHA-512",
        f'sasl.jaas.config={login} username="admin" password="a,=pw";',
    ]
    if "ssl.ca.location" in settings:
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={settings['ssl.ca.location']}"]
    path.write_text("\n".join(lines))
    server = "--bootstrap-server", broker.bootstrap_servers, "--command-config", str(path)

    def run(main: str, *words: str) -> str:
        done = java(maven_classpath("kafka-4.3.0"), main, *server, *words, check=True)
        return str(done.stdout)

    acls = "org.apache.kafka.tools.AclCommand"
    rule = "--topic", "t", "--resource-pattern-type", "prefixed"
    run(acls, "--add", "--allow-principal", "User:ann", "--operation", "Read", *rule)
    assert "(principal=User:ann, host=*, operation=READ, permissionType=ALLOW)" in run(acls, "--list")
    run(acls, "--remove", "--force", *rule)
    assert "User:ann" not in run(acls, "--list")
    configs = "kafka.admin.ConfigCommand"
    change = "--alter", "--add-config", "SCRAM-SHA-256=[password=zz]", "--entity-type", "users"
    run(configs, *change, "--entity-name", "zed")
    told = run(configs, "--describe", "--entity-type", "users")
    assert "user-principal 'zed' are SCRAM-SHA-256=iterations=4096" in told
    tokens = "org.apache.kafka.tools.DelegationTokenCommand"
    made = run(tokens, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:ann")
    token_id, code = next(line for line in made.splitlines() if "User:admin" in line).split()[:2]
    jaas = f'{login} username="{token_id}" password="{code}" tokenauth="true";'
    secured = {**settings, "sasl.jaas.config": jaas}
    del secured["sasl.username"], secured["sasl.password"]
    with Admin(config=secured) as admin:
        admin.list_topics()
