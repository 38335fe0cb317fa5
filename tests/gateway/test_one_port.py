"""Tests of all brokers behind one port of a gateway, distinguished by the TLS server name (SNI)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.test_gateway import consume
from penstock.client import Producer
from penstock.errors import ConfigError
from penstock.gateway import Gateway
from penstock.gateway.addresses import ServerNames
from penstock.testing import KafkaCluster
from security_certificates import Pair, authority, issue

NAMES = "b{id}.kafka.example"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, num_partitions=6, default_replication_factor=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ca() -> Pair:
    return authority()


@pytest.fixture
def files(ca: Pair, tmp_path: Path) -> tuple[str, str, str]:
    """Write a certificate for all brokers; return the paths of the certificate, its key and the CA."""
    pair = issue(ca, "gateway", ("*.kafka.example", "kafka.example"))
    (tmp_path / "ca.pem").write_text(ca.certificate_pem)
    return *pair.write(tmp_path, "gateway"), str(tmp_path / "ca.pem")


@pytest.fixture
def names_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve all host names below kafka.example to 127.0.0.1."""
    real = socket.getaddrinfo

    def look(host: Any, *more: Any, **options: Any) -> Any:
        is_ours = isinstance(host, str) and host.endswith("kafka.example")
        return real("127.0.0.1" if is_ours else host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look)


def one_port(cluster: KafkaCluster, files: tuple[str, str, str]) -> Gateway:
    certificate, key, _ = files
    return Gateway(
        to=cluster.bootstrap_servers,
        tls_cert=certificate,
        tls_key=key,
        advertised_host=NAMES,
        one_port=True,
    )


@pytest.mark.usefixtures("names_are_here")
def test_brokers_are_found_by_their_names(cluster: KafkaCluster, files: tuple[str, str, str]) -> None:
    config = {"security.protocol": "SSL", "ssl.ca.location": files[2]}
    with one_port(cluster, files) as gateway:
        servers = f"kafka.example:{gateway.port}"
        with Producer(bootstrap_servers=servers, config=config) as producer:
            for number in range(60):
                producer.send("one", b"%d" % number, partition=number % 6)
        assert consume(servers, "one", 60, config=config) == list(range(60))
        assert {(each.node_id, each.port) for each in gateway.node_ports} == {
            (node.node_id, gateway.port) for node in gateway.node_ports
        }
        assert len(gateway.node_ports) == 3
    # Had a request come to another broker than its leader, an error would have been answered.


@pytest.mark.parametrize(
    "name", ["b2.kafka.example", "B2.Kafka.Example", "kafka.example", "b99.kafka.example"]
)
def test_a_connection_is_that_to_the_broker_of_its_name(
    cluster: KafkaCluster, files: tuple[str, str, str], name: str
) -> None:
    context = ssl.create_default_context(cafile=files[2])
    with (
        one_port(cluster, files) as gateway,
        socket.create_connection(("127.0.0.1", gateway.port), 30) as plain,
        context.wrap_socket(plain, server_hostname=name) as client,
    ):
        client.sendall(bytes.fromhex("0000000b0012000000000001000163"))  # ApiVersions 0
        size = int.from_bytes(client.recv(4), "big")
        assert size > 100
        assert gateway._server is not None
        [home] = {each.relay.home for each in gateway._server.clients if each.relay is not None}
    expected = {"b2.kafka.example": 2, "kafka.example": None, "b99.kafka.example": 99}
    assert home == expected[name.lower()]


def test_names_of_brokers() -> None:
    names = ServerNames("B{id}.kafka.example")
    assert [names.node_of(f"b{number}.kafka.example") for number in (0, 1, 20, 2**31 - 1)] == [
        0,
        1,
        20,
        2**31 - 1,
    ]
    others = (None, "", "b.kafka.example", "b1.kafka.examples", "xb1.kafka.example", "b1xkafka.example")
    for other in (*others, f"b{2**31}.kafka.example", "b-1.kafka.example", "b٣.kafka.example"):
        assert names.node_of(other) is None
    assert names.node_of("b7.kafka.example.") == 7


@pytest.mark.parametrize(
    "given",
    [
        {"advertised_host": NAMES},
        {"tls_cert": "c.pem"},
        {"tls_cert": "c.pem", "advertised_host": "kafka.example"},
        {"tls_cert": "c.pem", "advertised_host": NAMES, "ports": [9093]},
    ],
    ids=range(4),
)
def test_arguments_that_do_not_fit(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="one_port"):
        Gateway(to="a:1", one_port=True, **given)
