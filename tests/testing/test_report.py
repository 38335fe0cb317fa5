"""Tests of the report for a failing test: it shows the brokers' contents, limited and without secrets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock import Admin, Producer
from penstock.testing import KafkaBroker, KafkaCluster, report

SUITE = """
import asyncio
import logging

import pytest

from penstock import Admin, Broker, Cluster, Producer
from penstock.testing import KafkaBroker

HEADERS = [("token", b"hush")]


def fill(servers):
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(7):
            sent = producer.send("orders", f"v{number}".encode(), key=b"k\\x1b", headers=HEADERS)
        sent.result(timeout=10)
    with Admin(bootstrap_servers=servers) as admin:
        admin.alter_group_offsets("readers", {("orders", 0): 3})


def test_fixture(kafka_broker):
    fill(kafka_broker.bootstrap_servers)
    kafka_broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="orders")
    logging.getLogger("penstock.broker").warning("a line of the broker")
    assert False


def test_block():
    with KafkaBroker() as broker:
        fill(broker.bootstrap_servers)
        assert False


def test_plain_block():
    with Broker() as broker:
        fill(broker.bootstrap_servers)
        logging.getLogger("penstock.broker").warning("a line of the broker")
        assert False


def test_plain_cluster():
    with Cluster(2) as cluster:
        fill(cluster.bootstrap_servers)
        assert False


def test_asyncio_block():
    async def program():
        async with Broker() as broker:
            await asyncio.to_thread(fill, broker.bootstrap_servers)
            assert False

    asyncio.run(program())


@pytest.fixture
def mine():
    with Broker() as broker:
        yield broker


def test_fixture_of_another_name(mine):
    assert False


def test_cluster(kafka_cluster):
    fill(kafka_cluster.bootstrap_servers)
    assert False


def test_paused(kafka_broker):
    kafka_broker.pause()
    assert False


def test_that_passes(kafka_broker):
    logging.getLogger("penstock.broker").warning("not shown")


def test_without_a_broker():
    assert False


def test_lines_for_the_report_are_no_others(kafka_broker, caplog):
    fill(kafka_broker.bootstrap_servers)
    assert not caplog.records


@pytest.mark.parametrize("logger", [None, "penstock", "penstock.broker"])
def test_lines_that_are_asked_for(kafka_broker, caplog, logger):
    with caplog.at_level(logging.INFO, logger=logger):
        fill(kafka_broker.bootstrap_servers)
    assert "created topic orders" in caplog.text
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run a test suite; return a dict from each failing test's name to what pytest prints about it."""
    directory = tmp_path_factory.mktemp("suite")
    (directory / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", directory],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "9 failed, 5 passed" in done.stdout, done.stdout
    parts = done.stdout.split("\n____")[1:]
    return {part.strip("_ ").split(" ")[0]: part for part in parts}


@pytest.mark.parametrize(
    "name",
    [
        "test_fixture",
        "test_block",
        "test_cluster",
        "test_plain_block",
        "test_plain_cluster",
        "test_asyncio_block",
    ],
)
def test_topics_groups_and_records_of_a_failing_test(printed: dict[str, str], name: str) -> None:
    said = printed[name]
    assert "topic orders, 0: offsets 0 to 7" in said
    assert "group readers, Empty, 0 members: orders-0 at 3 (4 behind)" in said
    assert "last records of orders-0:" in said
    assert [f"value v{number}" in said for number in range(7)] == [False, False, *[True] * 5]
    assert r"6  key k\x1b, value v6, headers token" in said
    assert "hush" not in said


def test_faults_and_the_log_of_a_failing_test(printed: dict[str, str]) -> None:
    assert "in force: <Fault fail NOT_LEADER_OR_FOLLOWER: Produce, topic='orders'" in printed["test_fixture"]
    assert "a line of the broker" in printed["test_fixture"]
    assert "INFO created topic orders with 1 partition" in printed["test_fixture"]
    assert "INFO created topic orders with 1 partition" in printed["test_cluster"]
    logged = {name for name, said in printed.items() if "a line of the broker" in said}
    assert logged == {"test_fixture", "test_plain_block"}


def test_any_fixture_and_a_broker_that_stands_still(printed: dict[str, str]) -> None:
    assert "no topics" in printed["test_fixture_of_another_name"]
    assert "does not answer within 2 s: it is paused, or at work" in printed["test_paused"]
    assert "broker" not in printed["test_without_a_broker"].partition("short test summary")[
        0
    ].lower().replace("test_without_a_broker", "")


def test_everything_has_a_limit(kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOPICS_MAX", "PARTITIONS_MAX", "RECORDED_MAX"):
        monkeypatch.setattr(report, name, 2)
    for name in ("a", "b", "c"):
        kafka_broker.create_topic(name, 3)
    with Producer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        for name in ("a", "b", "c"):
            producer.send(name, b"x" * 1000, key=None, partition=0).result(timeout=10)
        producer.send("a", b"\xff", partition=0).result(timeout=10)
    with Admin(bootstrap_servers=kafka_broker.bootstrap_servers) as admin:
        for group in ("x", "y", "z"):
            admin.alter_group_offsets(group, {("a", number): 0 for number in range(3)})
    said = report.report_of(kafka_broker)
    assert "and 1 more topics" in said
    assert "and 1 more partitions" in said
    assert "and 1 more groups" in said
    assert "and 1 more offsets" in said
    assert "and 1 more partitions with records" in said
    assert f"value {'x' * 80}... (1,000 bytes)" in said
    assert r"value \xff" in said
    assert "key null" in said


def test_what_has_stopped_says_so() -> None:
    broker = KafkaBroker()
    assert report.report_of(broker) == "not running"
    with KafkaCluster(1) as cluster:
        assert report.report_of(cluster) == "no topics"
