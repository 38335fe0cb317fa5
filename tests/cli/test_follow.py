"""Tests of ``penstock follow``: lines for a pipe, an updated block for a terminal, and its end.

The command ends when the query ends.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Admin, Broker, write_topic
from penstock.cli import follow, main
from penstock.model import TopicPartition
from penstock.protocol.uuid import uuid_to_text
from penstock.spark.monitoring.reports import write_report
from penstock.spark.monitoring.view import QueryView
from penstock.spark.source.planning import StreamOffsets
from spark.monitoring.test_checkpoint import write_checkpoint
from spark.monitoring.test_reports import PROGRESS, document


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_where_a_query_stands_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", 10, 25, 40, done=2)
    assert main(["follow", str(checkpoint), "--once"]) == 0
    assert capsys.readouterr().out == "1970-01-01T00:16:41Z  batch 1, batch 2 runs  penstock[orders]\n"


def test_brokers_are_asked_for_the_lag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", 10)
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topic("orders", partitions=1)
        write_topic(pa.table({"value": pa.array([b"x"] * 12, pa.binary())}), "orders", servers)
        assert main(["follow", str(checkpoint), "--once", "-b", servers]) == 0
    assert "batch 0, 2 behind" in capsys.readouterr().out


def test_a_topic_that_was_created_anew_is_named_and_counts_as_a_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    former = b"the one before.."
    end = StreamOffsets({TopicPartition("orders", 0): 10}, {"orders": former}).to_json()
    checkpoint = write_checkpoint(tmp_path / "checkpoint", 10)
    (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(end)}")
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topic("orders", partitions=1)
            (described,) = admin.describe_topics(["orders"])
        write_topic(pa.table({"value": pa.array([b"x"] * 12, pa.binary())}), "orders", servers)
        assert main(["follow", str(checkpoint), "--once", "-b", servers]) == 0
    said, line = capsys.readouterr().out.splitlines()
    assert said.startswith("topic orders was deleted and created anew")
    assert uuid_to_text(former) in said
    assert str(described.topic_id) in said
    assert "batch 0, 12 behind" in line


def test_it_ends_with_the_query(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_report(tmp_path / "reports", document(name="orders", isActive=False, progress=PROGRESS))
    assert main(["follow", "orders", "--reports", str(tmp_path / "reports")]) == 0
    assert capsys.readouterr().out == "-  batch 7, 15.0 rows/s, 20 behind, ended  orders\n"


def test_it_fails_as_the_query_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_report(tmp_path / "reports", document(name="orders", isActive=False, error="ValueError: bad"))
    assert main(["follow", "orders", "--reports", str(tmp_path / "reports")]) == 1
    assert capsys.readouterr().err == "penstock: ValueError: bad\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["follow", "orders"], "'orders' is no checkpoint"),
        (["follow", "orders", "--every", "0s"], "--every takes a time longer than nothing"),
        (["follow", "orders", "--every", "soon"], "--every: 'soon'"),
    ],
)
def test_mistakes_are_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_lines_come_when_something_changes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = follow.Lines()
    for batch_id, lag in ((1, 5), (1, 5), (1, 9), (2, 0)):
        lines.show(QueryView("q", batch_id=batch_id, lag=lag))
    told = capsys.readouterr().out.splitlines()
    assert told == ["-  batch 1, 5 behind  q", "-  batch 1, 9 behind  q", "-  batch 2, 0 behind  q"]


def test_a_terminal_has_a_block_that_is_written_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block lists the partitions with the largest lag and fits the terminal's width.

    It escapes control characters.
    """
    monkeypatch.setattr(follow, "terminal_size", lambda: (40, 10))
    offsets = {TopicPartition("t", n): 10 for n in range(9)}
    ends = {tp: 10 + tp.partition for tp in offsets}
    screen = follow.LiveBlock()
    screen.show(QueryView("\x1b[2Jname" + "x" * 99, batch_id=1, offsets=offsets, ends=ends, lag=36))
    first = capsys.readouterr().out
    assert first.startswith("\r\x1b[J\\x1b[2Jname")
    shown = first.removesuffix("\n").split("\n")
    assert max(map(len, shown)) <= 39 + len("\r\x1b[J")
    assert shown[2] == "  t-8  10 of 18, 8 behind"
    assert shown[-1] == "  and 4 partitions more"
    assert len(shown) == 8
    screen.show(QueryView("q"))
    assert capsys.readouterr().out.startswith("\x1b[8A\r\x1b[J")


def test_a_query_without_micro_batches_says_so() -> None:
    assert follow.summary(QueryView("q")) == "no micro-batch is through yet"
