"""Tests of the chaos marker in another test suite: new fixtures for each run, one report, and the replay."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SUITE = """
import unittest

import pytest

from penstock import Producer
from penstock.testing.chaos import chaos

SHARED, MADE, GONE = [], [], []


@pytest.fixture(scope="module")
def shared():
    SHARED.append("made")
    yield "shared"
    SHARED.append("gone")


@pytest.fixture
def topic(kafka_broker, shared):
    MADE.append(kafka_broker.port)
    yield kafka_broker.create_topic()
    GONE.append(kafka_broker.port)


def send(broker, topic, **settings):
    with Producer(broker.bootstrap_servers, retry_backoff_ms=1, **settings) as producer:
        for number in range(4):
            producer.send(topic, b"%d" % number).result(10)


class TestClass:
    @pytest.mark.chaos(seed=3, runs=20, writes_once=True)
    def test_right(self, kafka_broker, kafka_history, topic):
        send(kafka_broker, topic)


@chaos(seed=3, writes_once=True)
def test_wrong(topic, kafka_history, kafka_broker):
    send(kafka_broker, topic, enable_idempotence=False)


@pytest.mark.chaos(runs=3)
def test_skips(kafka_broker):
    pytest.skip("not today")


@pytest.mark.chaos(run=3)
def test_misspelt(kafka_broker):
    pass


class TestOfUnittest(unittest.TestCase):
    count = 0

    @chaos(seed=3, runs=4)
    def test_decorated(self, kafka_broker):
        TestOfUnittest.count += 1

    def test_runs(self):
        assert TestOfUnittest.count == 4

    @pytest.mark.chaos(runs=3)
    def test_marked(self):
        pass


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.chaos(runs=2)
def test_parameters(number, shared):
    assert number


@pytest.mark.xfail(strict=True)
@pytest.mark.chaos(runs=2)
def test_expected_to_fail(kafka_broker):
    raise RuntimeError


def test_behind(shared):
    assert SHARED == ["made"]
    assert len(MADE) > 21 and MADE == GONE
"""


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--strict-markers", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_a_suite_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    shown = run(tmp_path)
    assert "1 failed, 6 passed, 1 skipped, 1 xfailed, 2 errors" in shown, shown
    assert "test_suite.py::test_wrong FAILED" in shown
    assert "chaos has no argument 'run'; known: seed, runs" in shown
    assert "a method of unittest needs @chaos" in shown
    section = shown[shown.index("- chaos -") :]
    assert re.search(
        r"run \d+ of seed 3 fails: DuplicateWrite\nby 1 of its \d faults:\n  \d\. the answer", section
    )
    assert "found: DuplicateWrite: (key null, value" in section
    assert "last records of topic-" in section, "what the broker holds is there, too"

    found = re.search(r"replay: pytest (test_suite.py::test_wrong) --chaos-replay=(3:\d+/\d)", section)
    assert found is not None
    for _ in range(2):
        again = run(tmp_path, found[1], f"--chaos-replay={found[2]}")
        assert "1 failed" in again
        assert f"--chaos-replay={found[2]}" in again
    calm = run(tmp_path, found[1], f"--chaos-replay={found[2].partition('/')[0]}/none")
    assert "1 passed" in calm


def test_a_replay_that_names_no_run(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    shown = run(tmp_path, "test_suite.py::test_wrong", "--chaos-replay=seven")
    assert "'seven' names no run: SEED:RUN" in shown
    assert "1 error" in shown


def test_a_run_without_chaos_imports_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(
        "import sys\n\ndef test_it(kafka_broker):\n"
        "    assert not [name for name in sys.modules if name.startswith('penstock.testing.chaos')]\n"
    )
    assert "1 passed" in run(tmp_path)
