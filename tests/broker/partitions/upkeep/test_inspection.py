"""Tests that a start reports every missing part of a data directory, and reports nothing else."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from penstock import Broker
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_store
from penstock.broker.node import Node
from penstock.clock import ManualClock
from penstock.errors import StorageError

CLOCK = ManualClock(NOW_MS)
RECORDS = 40


def start(data: Path) -> Node:
    return make_node(open_store(BrokerConfig({"log.dirs": str(data)}), CLOCK), CLOCK)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the directory of a broker after a clean shutdown.

    Topic `t` has several segments, and the first half of the records of topic `old` was deleted.
    """
    data = tmp_path / "data"
    node = start(data)
    make_topic(node, "t", segment_bytes="300")
    make_topic(node, "old", segment_bytes="300")
    make_topic(node, "empty")
    for name in ("t", "old"):
        for turn in range(RECORDS):
            assert produce(node, batch_of(b"%d" % turn), topic=name).error_code == 0
    assert node.cluster.topic("empty").partitions[0].log.end_offset == 0
    node.cluster.topic("old").partitions[0].delete_records(RECORDS // 2)
    node.store.close()
    return data


def segments(data: Path) -> list[Path]:
    return sorted((data / "t-0").glob("*.log"))


def said_at_start(data: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    node = start(data)
    inspection = node.inspect()
    inspection.start()
    inspection.wait()
    node.store.abandon()
    assert node.failures.counts == {}
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_where_nothing_is_missing_nothing_is_said(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert said_at_start(data, caplog) == []
    assert said_at_start(data, caplog) == [], "nor after a crash"


def test_a_log_that_is_used_meanwhile_is_not_missing(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = start(data)
    inspection = node.inspect()
    for turn in range(RECORDS):
        produce(node, batch_of(b"%d" % turn))
    node.cluster.topic("t").partitions[0].delete_records(RECORDS)
    node.cluster.delete_topics([node.cluster.topic("old")], NOW_MS)
    inspection.start()
    inspection.wait()
    assert [record for record in caplog.records if record.levelno == logging.ERROR] == []
    node.store.close()


HARM: dict[str, tuple[Callable[[Path], object], str]] = {
    "first": (lambda data: segments(data)[0].unlink(), "offsets 0 to"),
    "middle": (lambda data: segments(data)[3].unlink(), "are missing"),
    "last": (lambda data: segments(data)[-1].unlink(), f"up to {RECORDS}: its last segment"),
    "last cut": (
        lambda data: segments(data)[-1].write_bytes(segments(data)[-1].read_bytes()[:10]),
        f"up to {RECORDS}: its last segment",
    ),
    "closed cut": (
        lambda data: segments(data)[1].write_bytes(segments(data)[1].read_bytes()[:-10]),
        "no whole batch",
    ),
    "all": (lambda data: [path.unlink() for path in segments(data)], "holds no segments"),
    "directory": (lambda data: shutil.rmtree(data / "t-0"), "t-0 is missing"),
}


@pytest.mark.parametrize("harm", list(HARM))
def test_what_is_missing_is_said_with_its_place_and_what_to_do(
    harm: str, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    do, expected = HARM[harm]
    do(data)
    (line,) = said_at_start(data, caplog)
    assert expected in line
    assert str(data / "t-0") in line
    assert "restore it from a copy" in line


def test_a_running_broker_says_it(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    segments(data)[3].unlink()
    with Broker(data) as broker:
        assert broker.server is not None
        again = broker.server.node.inspect()
        again.start()
        again.wait()
    assert "are missing" in caplog.text


def test_a_topic_that_has_the_name_of_one_deleted_is_not_judged_by_its_checkpoints(data: Path) -> None:
    """A topic was deleted, and another one with its name has one record when the broker crashes.

    The old topic's start offset in the checkpoint file would delete that record.
    """
    node = start(data)
    node.cluster.delete_topics([node.cluster.topic("old")], NOW_MS)
    make_topic(node, "old")
    assert produce(node, batch_of(b"x"), topic="old").base_offset == 0
    node.store.abandon()
    node = start(data)
    log = node.cluster.topic("old").partitions[0].log
    assert (log.start_offset, log.end_offset) == (0, 1)
    node.store.close()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\0" * 90,
        b"\xff\xfe\x80" * 30,
        b"cluster.id=abc\nnode.id=1\n",
        b"version=1\ncluster.id=ab\xffc\nnode.id=1\n",
        b"version=1\ncluster.id=abc\nnode.id=1\ndirectory.id=what\n",
        b"vers\x00on=1\ncluster.id=abc\nnode.id=1\n",
    ],
)
def test_a_garbled_identity_is_said_and_nothing_is_started(data: Path, text: bytes) -> None:
    (data / "meta.properties").write_bytes(text)
    with pytest.raises(StorageError, match=r"meta\.properties .*put it back from a copy"):
        start(data)
    assert (data / "meta.properties").read_bytes() == text


def test_an_identity_that_is_missing_beside_data_is_said(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / "meta.properties").unlink()
    start(data).store.abandon()
    assert "no meta.properties" in caplog.text
