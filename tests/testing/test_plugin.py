"""Tests of Penstock's pytest fixtures in another test suite: they are found, and cost nothing until used."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from penstock.testing import KafkaBroker

SUITE = """
import sys

import pytest

from penstock import Admin, Producer
from penstock.errors import AuthenticationError


def test_a_broker_of_its_own(kafka_broker, kafka_topic):
    with Producer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        assert producer.send(kafka_topic, b"v").result(timeout=10).offset == 0


@pytest.mark.kafka(num_partitions=3)
def test_settings_for_one_test(kafka_broker):
    assert kafka_broker.config.integer("num.partitions") == 3
    assert kafka_broker.config.integer("message.max.bytes") == 5000


@pytest.mark.kafka(security="SASL_SSL")
def test_a_secured_broker(kafka_broker, kafka_topic):
    settings = kafka_broker.client_settings("user")
    assert settings["security.protocol"] == "SASL_SSL"
    with Producer(config=settings) as producer:
        assert producer.send(kafka_topic, b"v").result(timeout=10).offset == 0
        assert kafka_broker.expire_sessions("user") >= 1
        assert producer.send(kafka_topic, b"w").result(timeout=10).offset == 1
    kafka_broker.rotate_certificate(expired=True)
    with pytest.raises(AuthenticationError, match="expired"), Admin(config=settings) as admin:
        admin.list_topics()
    kafka_broker.rotate_certificate()
    with Admin(config=settings) as admin:
        assert admin.list_topics()
    kafka_broker.revoke_user("user")
    with pytest.raises(AuthenticationError, match="user"), Admin(config=settings) as admin:
        admin.list_topics()


@pytest.mark.parametrize("run", [1, 2])
def test_topics_on_the_shared_broker(kafka_session_broker, kafka_session_topic, run):
    assert kafka_session_broker.is_running
    SEEN.add((kafka_session_broker.port, kafka_session_topic))
    kafka_session_broker.faults.drop()


def test_faults_do_not_stay(kafka_session_broker):
    assert not kafka_session_broker.faults.active
    assert len(SEEN) == 2 and len({port for port, _ in SEEN}) == 1


SEEN = set()
"""

CONFTEST = """
import pytest


@pytest.fixture(scope="session")
def kafka_settings():
    return {"message_max_bytes": 5000}
"""


def test_a_suite_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_it_is_found_by_its_entry_point() -> None:
    found = [entry for entry in entry_points(group="pytest11") if entry.name == "penstock"]
    assert [entry.value for entry in found] == ["penstock.testing.plugin"]


def test_finding_it_imports_nothing_of_the_broker() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import penstock.testing.plugin;"
        "print(*sorted(name for name in set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "penstock",
        "penstock.common",
        "penstock.common.extras",
        "penstock.common.lazy_names",
        "penstock.common.listening",
        "penstock.common.listening.endings",
        "penstock.common.logs",
        "penstock.errors",
        "penstock.printable",
        "penstock.testing",
        "penstock.testing.ended",
        "penstock.testing.plugin",
        "penstock.version",
    ]


def test_the_fixtures_here(kafka_broker: KafkaBroker, kafka_topic: str) -> None:
    assert kafka_broker.is_running
    assert kafka_topic


def test_unknown_names() -> None:
    import penstock.testing

    with pytest.raises(AttributeError, match="nonsense"):
        _ = penstock.testing.nonsense


def test_modules_are_imported_as_they_are_written() -> None:
    """Otherwise pytest would parse them in threads of brokers, which fails on Python before 3.11.8."""
    import penstock.broker.broker
    import penstock.client

    rooms = ("penstock.broker.", "penstock.client.")
    loaders = {
        type(module.__spec__.loader).__name__
        for name, module in sys.modules.items()
        if name.startswith(rooms) and getattr(module, "__spec__", None) is not None
    }
    assert penstock.broker.broker.__name__ in sys.modules
    assert loaders == {"SourceFileLoader"}
