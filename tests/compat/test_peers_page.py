"""The facts in docs/reference/peers.md are true of the third-party packages that are installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import aiokafka
import aiokafka.admin
import confluent_kafka
import confluent_kafka.admin
import confluent_kafka.aio
import pytest

from penstock import Broker, Producer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of its own way to read files
    import kafka

pytestmark = pytest.mark.compat

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "peers.md").read_text(encoding="utf-8")


def kcat(*words: str) -> bytes:
    return subprocess.run(["kcat", *words], capture_output=True, timeout=180).stdout


@pytest.mark.parametrize("name", ["confluent-kafka", "aiokafka", "kafka-python"])
def test_versions_are_those_that_are_installed(name: str) -> None:
    assert f"{name} {version(name)}" in PAGE
    assert f"| {name} {version(name)} |" in PAGE


def test_the_version_of_kcat() -> None:
    said = kcat("-V")
    assert b"Version 1.7.1 " in said
    assert b"librdkafka 2.0.2" in said
    assert "kcat 1.7.1 (Debian 12, librdkafka 2.0.2)" in PAGE


def _is_typed(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "py.typed").exists()


def _takes_the_new_protocol() -> bool:
    confluent_kafka.Consumer({"group.id": "g", "group.protocol": "consumer"}).close()
    return True


ADMINS = {
    "confluent-kafka": confluent_kafka.admin.AdminClient,
    "aiokafka": aiokafka.admin.AIOKafkaAdminClient,
    "kafka-python": kafka.KafkaAdminClient,
}

CLAIMS: dict[str, Callable[[], bool]] = {
    "confluent-kafka takes group.protocol=consumer": _takes_the_new_protocol,
    "aiokafka and kafka-python do not": lambda: (
        "group_protocol" not in kafka.KafkaConsumer.DEFAULT_CONFIG
        and "group_protocol" not in aiokafka.AIOKafkaConsumer.__init__.__code__.co_varnames
    ),
    "confluent-kafka has share consumers, the others not": lambda: (
        hasattr(confluent_kafka, "ShareConsumer")
        and not hasattr(kafka, "KafkaShareConsumer")
        and not hasattr(aiokafka, "AIOKafkaShareConsumer")
    ),
    "confluent-kafka has a schema registry": lambda: (
        importlib.util.find_spec("confluent_kafka.schema_registry") is not None
    ),
    "confluent-kafka has both faces": lambda: hasattr(confluent_kafka.aio, "AIOProducer"),
    "all have transactions": lambda: (
        hasattr(confluent_kafka.Producer, "begin_transaction")
        and hasattr(aiokafka.AIOKafkaProducer, "begin_transaction")
        and hasattr(kafka.KafkaProducer, "begin_transaction")
    ),
    "confluent-kafka is typed": lambda: _is_typed("confluent_kafka"),
    "aiokafka and kafka-python are not typed": lambda: not _is_typed("aiokafka") and not _is_typed("kafka"),
    "ACLs: not aiokafka": lambda: (
        [name for name, one in ADMINS.items() if hasattr(one, "create_acls")]
        == ["confluent-kafka", "kafka-python"]
    ),
    "SCRAM users: not aiokafka": lambda: (
        [name for name, one in ADMINS.items() if any("scram" in call for call in dir(one))]
        == ["confluent-kafka", "kafka-python"]
    ),
    "no quotas in any": lambda: not any("quota" in call for one in ADMINS.values() for call in dir(one)),
    "hanging transactions: kafka-python only": lambda: (
        [name for name, one in ADMINS.items() if hasattr(one, "find_hanging_transactions")]
        == ["kafka-python"]
    ),
    "aiokafka sets no offsets of groups": lambda: (
        not hasattr(ADMINS["aiokafka"], "alter_consumer_group_offsets")
    ),
    "kafka-python has a command line": lambda: (
        b"usage: python -m kafka.consumer"
        in subprocess.run([sys.executable, "-m", "kafka.consumer", "-h"], capture_output=True).stdout
    ),
    "kcat has neither Parquet nor quotas": lambda: (
        not any(word in kcat("-h").lower() for word in (b"parquet", b"quota"))
    ),
    "kcat reads no JSON": lambda: b"-J" not in kcat("-h").partition(b"Consumer options:")[0],
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_claims_about_peers(claim: str) -> None:
    assert CLAIMS[claim]()


def test_json_of_kcat_with_bytes_beyond_utf8_is_no_json() -> None:
    with Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"\xff\xfe").result()
        line = kcat("-b", broker.bootstrap_servers, "-C", "-t", "t", "-e", "-q", "-J")
    with pytest.raises(UnicodeDecodeError):
        line.decode()
