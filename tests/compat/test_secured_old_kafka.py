"""Penstock's client against old secured Apache Kafka: 0.10.2, with SASL tokens without headers, and 1.1.

SCRAM was introduced in 0.10.2, where SASL tokens have no Kafka header. SaslAuthenticate, whose response
has an error message, was introduced in 1.0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import Consumer, Producer
from penstock.errors import AuthenticationError
from security_certificates import authority, issue

from .peers import free_ports, java, maven_classpath, real_kafka, release

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PASSWORD = "pw canary"
STORE_PASSWORD = "store-canary"
CA = authority()


class Old(NamedTuple):
    """A running old broker: its release, its addresses by listener, and the CA's file."""

    version: str
    addresses: dict[str, str]
    ca: str


LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def keystore(directory: Path) -> Path:
    """Write a PKCS12 key store with an old encryption that every Java release can read; return its path."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import PrivateFormat, pkcs12

    pair = issue(CA, rsa_key=True)
    encryption = (
        PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(2000)
        .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC)
        .hmac_hash(hashes.SHA1())
        .build(STORE_PASSWORD.encode())
    )
    path = directory / "server.p12"
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"server", pair.key, pair.certificate, [CA.certificate], encryption
        )
    )
    return path


@pytest.fixture(scope="module", params=["1.1", "0.10.2"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Old]:
    directory = tmp_path_factory.mktemp("old")
    version = release(request.param)
    ports = free_ports(len(LISTENERS))
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(LISTENERS, ports, strict=True)}
    listeners = ",".join(f"{name}://{address}" for name, address in addresses.items())
    (directory / "ca.pem").write_text(CA.certificate_pem)
    settings: dict[str, object] = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": keystore(directory),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.enabled.protocols": "TLSv1.2",
    }
    settings["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    package = "org.apache.kafka.common.security"
    (directory / "jaas.conf").write_text(
        f"KafkaServer {{\n{package}.scram.ScramLoginModule required;\n"
        f'{package}.plain.PlainLoginModule required user_ann="{PASSWORD}";\n}};\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        option = f"-Djava.security.auth.login.config={directory}/jaas.conf -Dzookeeper.sasl.client=false"
        patch.setenv("JAVA_TOOL_OPTIONS", option)
        with real_kafka(version, settings, directory=directory, first_port=ports[0]):
            add_users(version, directory)
            yield Old(version, addresses, str(directory / "ca.pem"))


def add_users(version: str, directory: Path) -> None:
    lines = (directory / "server.properties").read_text().splitlines()
    keeper = next(line.partition("=")[2] for line in lines if line.startswith("zookeeper.connect="))
    credentials = ",".join(f"SCRAM-SHA-{bits}=[password={PASSWORD}]" for bits in (256, 512))
    change = ("--alter", "--add-config", credentials, "--entity-type", "users", "--entity-name", "ann")
    classpath = maven_classpath(f"kafka-{version}")
    java(classpath, "kafka.admin.ConfigCommand", "--zookeeper", keeper, *change, check=True)
    time.sleep(1)  # brokers hear of it by ZooKeeper


def settings_of(kafka: Old, listener: str, mechanism: str | None) -> dict[str, object]:
    found: dict[str, object] = {"bootstrap.servers": kafka.addresses[listener], "security.protocol": listener}
    if listener.endswith("SSL"):
        found["ssl.ca.location"] = kafka.ca
    if mechanism is not None:
        found |= {"sasl.mechanism": mechanism, "sasl.username": "ann", "sasl.password": PASSWORD}
    return found


WAYS = [("SSL", None)] + [
    (listener, mechanism)
    for listener in ("SASL_PLAINTEXT", "SASL_SSL")
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
]


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_records_there_and_back(kafka: Old, listener: str, mechanism: str | None) -> None:
    settings = settings_of(kafka, listener, mechanism)
    topic = f"t-{listener}-{mechanism}"
    with Producer(config=settings) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number).result(30)
    with Consumer(config={**settings, "auto.offset.reset": "earliest", "group.id": topic}) as consumer:
        consumer.subscribe(topic)
        got: list[bytes | None] = []
        deadline = time.monotonic() + 30
        while len(got) < 20 and time.monotonic() < deadline:
            got += [record.value for record in consumer.poll(500)]
    assert got == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_told_at_once(kafka: Old, mechanism: str) -> None:
    settings = {**settings_of(kafka, "SASL_SSL", mechanism), "sasl.password": "wrong-canary"}
    began = time.monotonic()
    with (
        pytest.raises(AuthenticationError, match=r"password") as caught,
        Producer(config=settings) as producer,
    ):
        producer.send("t", b"x").result(30)
    assert time.monotonic() - began < 10
    assert "canary" not in str(caught.value)
