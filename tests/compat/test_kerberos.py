"""GSSAPI with a real KDC: Penstock's client at Kafka 4.3, and Penstock's broker with several clients.

The tests need ``krb5kdc``, ``kinit`` and the C headers of Kerberos: on Debian krb5-kdc,
krb5-admin-server, krb5-user and libkrb5-dev.
"""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.kerberos import Realm
from compat.peers import (
    LEAKY_CLIENTS,
    free_ports,
    java,
    kerberos_library,
    maven_classpath,
    need_module,
    real_kafka,
)
from penstock import Admin, Broker, Consumer, Producer
from penstock.errors import AuthenticationError, ConfigError

pytestmark = [pytest.mark.compat, *LEAKY_CLIENTS]

REALM = "PENSTOCK.TEST"
SERVICE = "kafka/localhost"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide a directory with keytabs of the service and of user ann, and a running KDC.

    No ticket for ann exists yet.
    """
    kerberos_library()
    made = Realm(REALM, tmp_path_factory.mktemp("realm"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        made.start()
        try:
            for principal, keytab in ((SERVICE, "service"), ("ann", "ann")):
                made.add(made.directory / f"{keytab}.keytab", [principal])
            yield made.directory
        finally:
            made.stop()


def jaas(realm: Path, name: str, principal: str) -> str:
    return (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{realm}/{name}.keytab" principal="{principal}@{REALM}";'
    )


def client_settings(realm: Path, port: int) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": f"ann@{REALM}",
        "sasl.kerberos.keytab": f"{realm}/ann.keytab",
    }


def there_and_back(settings: dict[str, Any], topic: str) -> None:
    with Admin(config=settings) as admin:
        admin.create_topic(topic)
    with Producer(config=settings) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number)
    with Consumer(config={**settings, "auto.offset.reset": "earliest", "group.id": topic}) as consumer:
        consumer.subscribe(topic)
        got: list[bytes | None] = []
        deadline = time.monotonic() + 30
        while len(got) < 20 and time.monotonic() < deadline:
            got += [record.value for record in consumer.poll(500)]
    assert got == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("version", ["4.3", "2.8"])
def test_our_client_and_apache_kafka(realm: Path, version: str, tmp_path: Path) -> None:
    plain, secured, controller = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://localhost:{secured}"
    settings = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "connections.max.reauth.ms": 4000,
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(realm, "service", SERVICE),
    }
    if version < "3":
        del settings["controller.quorum.voters"]
        settings["listeners"] = listeners
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={realm}/krb5.conf")
        with real_kafka(version, settings, first_port=plain):
            check_client(realm, secured)


def check_client(realm: Path, port: int) -> None:
    """Check the client with a keytab, with a ticket, with neither, and with an unknown service name.

    With the keytab it also sends records beyond the end of two sessions.
    """
    settings = client_settings(realm, port)
    there_and_back(settings, "by-keytab")
    with Producer(config={**settings, "retries": 0, "enable.idempotence": False}) as producer:
        deadline, sent = time.monotonic() + 9, 0
        while time.monotonic() < deadline:  # sessions end after 4 s
            assert producer.send("by-keytab", b"x").result(20).offset == 20 + sent
            sent += 1
            time.sleep(0.02)
    del settings["sasl.kerberos.principal"], settings["sasl.kerberos.keytab"]
    with pytest.raises(AuthenticationError, match=r"Kerberos refuses for kafka@localhost.*klist"):
        there_and_back(settings, "none")
    subprocess.run(["kinit", "-k", "-t", f"{realm}/ann.keytab", "ann"], check=True)
    try:
        there_and_back(settings, "by-ticket")
        settings["sasl.kerberos.service.name"] = "other"
        with pytest.raises(AuthenticationError, match="other@localhost"):
            there_and_back(settings, "none")
    finally:
        subprocess.run(["kdestroy"], check=True)


@pytest.fixture
def broker(realm: Path) -> Iterator[Broker]:
    config = {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "advertised.listeners": "SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "GSSAPI",
        "connections.max.reauth.ms": "4000",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(realm, "service", SERVICE),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ann",
    }
    config["listeners"] = config["advertised.listeners"] = f"SASL_PLAINTEXT://localhost:{free_ports(1)[0]}"
    with Broker(config=config) as made:
        yield made


def test_our_client_and_our_broker(realm: Path, broker: Broker) -> None:
    check_client(realm, broker.port)


def test_java_and_our_broker(realm: Path, broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={jaas(realm, 'ann', 'ann')}\n"
    )
    server = "--bootstrap-server", f"localhost:{broker.port}", "--command-config", str(path)
    done = java(
        maven_classpath("kafka-4.3.0"),
        "org.apache.kafka.tools.TopicCommand",
        *server,
        "--create",
        "--topic",
        "by-java",
        options=(f"-Djava.security.krb5.conf={realm}/krb5.conf",),
        check=True,
    )
    assert "Created topic by-java" in done.stdout


def test_aiokafka_and_our_broker(realm: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    aiokafka: Any = need_module("aiokafka")
    # Tests before this one may have imported it before the library could be.
    monkeypatch.setattr(importlib.import_module("aiokafka.conn"), "gssapi", importlib.import_module("gssapi"))

    async def go() -> None:
        settings = {
            "bootstrap_servers": f"localhost:{broker.port}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "GSSAPI",
        }
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait("by-aiokafka", b"y")

    subprocess.run(["kinit", "-k", "-t", f"{realm}/ann.keytab", "ann"], check=True)
    try:
        asyncio.run(go())
    finally:
        subprocess.run(["kdestroy"], check=True)


def test_a_keytab_that_is_not_there_stops_the_start(realm: Path) -> None:
    config = {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(realm, "missing", SERVICE),
    }
    with pytest.raises(ConfigError, match="GSSAPI has no key"), Broker(config=config):
        pass
