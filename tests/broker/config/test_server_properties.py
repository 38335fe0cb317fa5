"""Tests of `server.properties` files from Kafka's distributions, and of every way to write listeners."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.definition import BOOLEAN, CLASS
from penstock.broker.config.kafka_keys import known_settings
from penstock.broker.config.security_settings import KEYS, base_name
from penstock.broker.config.server_properties import read_properties, remarks
from penstock.broker.config.values import BrokerConfig
from penstock.broker.network.listeners import listeners_of, listening_at
from penstock.errors import ConfigError

KRAFT = """
# A node of a cluster, as the distribution of Apache Kafka has it.
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
offsets.topic.replication.factor=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

OLDER = """
broker.id=0
port=9092
#host.name=localhost
log.dirs=/tmp/kafka-logs
num.partitions=1
log.cleaner.enable=false
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=6000
"""


def read(tmp_path: Path, text: str) -> tuple[BrokerConfig, list[str]]:
    path = tmp_path / "server.properties"
    path.write_text(text)
    reading = read_properties(str(path))
    config = BrokerConfig(reading.settings)
    return config, [remark.removeprefix(f"{path}:") for remark in remarks(config.unheeded, reading.places)]


def test_a_file_of_the_distribution(tmp_path: Path) -> None:
    config, remarks = read(tmp_path, KRAFT)
    assert listening_at(config) == ("", 9092)
    assert listeners_of(config)[0].advertised == ("localhost", 9092)
    assert config.data_dir == "/tmp/kraft-combined-logs"
    assert len(remarks) == 1
    assert "without effect" in remarks[0]
    assert "num.network.threads" in remarks[0]


def test_a_file_from_2014(tmp_path: Path) -> None:
    config, remarks = read(tmp_path, OLDER)
    assert listening_at(config) == ("", 9092)
    assert listeners_of(config)[0].advertised is None
    assert config.node_id == 0
    assert "zookeeper.connect, zookeeper.connection.timeout.ms" in remarks[0]


def test_unknown_names_are_told_with_the_nearest(tmp_path: Path) -> None:
    config, remarks = read(tmp_path, "num.partition=3\nnum.partitions=2\nmy.own.thing=1\n")
    assert config.integer("num.partitions") == 2
    assert remarks == [
        "1: unknown setting num.partition, passed over; did you mean num.partitions?",
        "3: unknown setting my.own.thing, passed over",
    ]


def test_a_name_that_there_is_not_is_listed_by_kafka_and_here(tmp_path: Path) -> None:
    config, _ = read(tmp_path, "my.own.thing=1\n")
    assert config.settings["my.own.thing"] == "1"


@pytest.mark.parametrize(
    "line",
    [
        "ssl.clent.auth=required",
        "listener.name.internal.ssl.clent.auth=required",
        "sasl.enabled.mechanism=PLAIN",
        "security.inter.broker.protocl=SSL",
        "sasl.server.callback.handler.class=x",
        "listener.name.internal.plain.sasl.server.callback.handler.class=x",
        "principal.builder.class=x",
        "ssl.engine.factory.class=x",
    ],
)
def test_protection_that_is_not_there_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"protect"):
        read(tmp_path, line)


@pytest.mark.parametrize(
    "line",
    [
        "principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "sasl.login.callback.handler.class=x",
        "ssl.secure.random.implementation=SHA1PRNG",
        "ssl.provider=SunJSSE",
    ],
)
def test_what_weakens_nothing_is_without_effect(tmp_path: Path, line: str) -> None:
    """These settings choose a provider of cryptography, or concern connections to other brokers.

    The broker ignores them and logs that they have no effect; ignoring them does not make it less secure.
    """
    _, remarks = read(tmp_path, line)
    assert remarks == [f"without effect in a single process: {line.partition('=')[0]}"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_properties(str(tmp_path / "missing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read"):
        read_properties(str(tmp_path / "binary"))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("127.0.0.1", 9092)),
        ({"listeners": "PLAINTEXT://:19092"}, ("", 19092)),
        ({"listeners": "plaintext://0.0.0.0:0"}, ("0.0.0.0", 0)),
        ({"listeners": "PLAINTEXT://[::1]:9092"}, ("::1", 9092)),
        ({"listeners": "CLIENTS://a:1", "listener.security.protocol.map": "CLIENTS:PLAINTEXT"}, ("a", 1)),
        ({"listeners": "C://a:1,PLAINTEXT://b:2", "controller.listener.names": "C"}, ("b", 2)),
        ({"port": "7", "host.name": "h"}, ("h", 7)),
        ({"port": "7", "listeners": "PLAINTEXT://x:8"}, ("x", 8)),
    ],
)
def test_where_to_listen(settings: dict[str, str], expected: tuple[str, int]) -> None:
    assert listening_at(BrokerConfig(settings)) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"advertised.listeners": "PLAINTEXT://kafka:29092"}, ("kafka", 29092)),
        ({"advertised.host.name": "kafka", "port": "5"}, ("kafka", 5)),
        ({"advertised.host.name": "kafka", "advertised.port": "6", "port": "5"}, ("kafka", 6)),
    ],
)
def test_what_clients_are_told(settings: dict[str, str], expected: tuple[str, int] | None) -> None:
    assert listeners_of(BrokerConfig(settings))[0].advertised == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "not understood"),
        ("PLAINTEXT://host", "not understood"),
        ("PLAINTEXT://host:70000", "not understood"),
        ("OTHER://host:1", "no security protocol"),
        ("PLAINTEXT://a:1,PLAINTEXT://b:2", "twice"),
        ("PLAINTEXT://a:1,SSL://b:1", "port of its own"),
        ("", "none for clients"),
    ],
)
def test_listeners_that_will_not_do(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        listening_at(BrokerConfig({"listeners": text}))


@pytest.mark.parametrize("name", sorted(known_settings()))
def test_every_name_of_kafkas_is_known(tmp_path: Path, name: str) -> None:
    key = known_settings()[name].key
    text = key.default or next(iter(key.choices), f"{key.at_least or 1:.0f}")
    if key.type in (BOOLEAN, CLASS):
        text = "true" if key.type == BOOLEAN else key.default or ""
    config, remarks = read(tmp_path, f"{name}={text}\n")
    if base_name(name) in KEYS:
        assert remarks == []
    else:
        assert remarks == [f"without effect in a single process: {name}"]
    assert config.settings[name] == text


def test_the_newest_and_the_oldest_are_among_them() -> None:
    """The known settings include keys that Apache Kafka no longer lists, and keys of very old releases."""
    assert {"group.coordinator.background.threads", "log.initial.task.delay.ms", "metric.reporters"} <= {
        *known_settings()
    }
    assert {"replica.lag.max.messages", "zookeeper.sync.time.ms", "log.roll.hours.per.topic"} <= {
        *known_settings()
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("group.share.max.size", "1001"),
        ("group.streams.heartbeat.interval.ms", "0"),
        ("group.consumer.migration.policy", "sometimes"),
        ("group.coordinator.rebalance.protocols", "classic,eager"),
        ("background.threads", "x"),
        ("controlled.shutdown.enable", "yes"),
        ("log.cleaner.min.cleanable.ratio", "1.5"),
        ("listener.name.internal.max.connections", "-1"),
        ("delegation.token.max.lifetime.ms", "0"),
    ],
)
def test_values_are_those_that_kafka_takes(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {text}|Invalid value eager") as caught:
        BrokerConfig({name: text})
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("group.min.session.timeout.ms", "0"),
        ("group.consumer.migration.policy", "Disabled"),
        ("listener.name.internal.max.connections", "7"),
        ("controlled.shutdown.enable", " TRUE "),
    ],
)
def test_values_that_kafka_takes_are_taken(name: str, text: str) -> None:
    assert BrokerConfig({name: text}).settings[name] == text


@pytest.mark.parametrize("name", [key.name for key in BROKER_KEYS.values() if not key.has_effect])
def test_a_key_without_effect_is_told(tmp_path: Path, name: str) -> None:
    _, remarks = read(tmp_path, f"{name}={BROKER_KEYS[name].default or ''}\n")
    assert f"without effect in a single process: {name}" in remarks[0]
    assert BROKER_KEYS[name].doc.partition("No effect: ")[2]
