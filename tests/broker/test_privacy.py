"""Tests of access to data: permissions of directories and files, and warnings about public listeners."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from penstock import Broker, Producer
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_store
from penstock.clock import ManualClock
from penstock.common.listening.exposure import is_loopback
from penstock.v07.byte_log import ByteLog, ByteLogConfig
from penstock.v07.settings import Settings
from penstock.v07.topics import Topics


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    return {
        str(path.relative_to(directory.parent)): stat.S_IMODE(path.stat().st_mode)
        for path in [directory, *directory.rglob("*")]
    }


def check_private(directory: Path) -> int:
    found = modes(directory)
    for name, mode in found.items():
        assert mode == (0o700 if (directory.parent / name).is_dir() else 0o600), f"{name} has mode {mode:o}"
    return len(found)


@pytest.mark.usefixtures("umask")
def test_directories_are_0700_and_files_0600(tmp_path: Path) -> None:
    """The files include segments, indexes, checkpoints, snapshots and logs of Kafka 0.7."""
    clock = ManualClock(NOW_MS)
    data = tmp_path / "data"
    config = BrokerConfig({"log.dirs": str(data)})
    for _ in range(2):
        node = make_node(open_store(config, clock), clock)
        if "t" not in node.cluster.topics:
            make_topic(node, cleanup_policy="compact", segment_bytes="300", min_cleanable_dirty_ratio="0.01")
        for turn in range(30):
            mark = {"producer_id": 7, "producer_epoch": node.node_id, "base_sequence": turn}
            produce(node, batch_of(b"%d" % turn, **(mark if turn < 3 else {})))
        clock.advance(60_000)
        node.maintain(clock.now_ms())
        assert node.compactor.wait() == []
        node.store.end_checkpoint(())
        node.note_producers()
        topics = Topics(node.store.side_directory("kafka-0.7"), Settings({}), clock)
        log = ByteLog(f"{topics.directory}/t-0", ByteLogConfig(segment_bytes=5), now_ms=NOW_MS, is_clean=True)
        for _ in range(3):
            log.append(memoryview(b"0123456789"), 1, now_ms=clock.now_ms())
        log.close(now_ms=NOW_MS)
        topics.close()
        node.store.close()
    assert check_private(data) > 20


def test_a_directory_that_others_may_read_is_left_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    with Broker(data) as broker, Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"x").result()
    assert stat.S_IMODE(data.stat().st_mode) == 0o755
    (line,) = [record for record in caplog.records if "chmod" in record.getMessage()]
    assert line.levelno == logging.WARNING
    assert f"chmod 700 {data}" in line.getMessage()
    assert all(
        mode == 0o700 for name, mode in modes(data).items() if (tmp_path / name).is_dir() and name != "data"
    )
    caplog.clear()
    data.chmod(0o700)
    with Broker(data):
        pass
    assert "chmod" not in caplog.text


@pytest.mark.parametrize(("host", "warns"), [("127.0.0.1", 0), ("localhost", 0), ("0.0.0.0", 2), ("", 2)])
def test_a_listener_that_others_reach_is_warned_of(
    host: str, warns: int, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(host=host, listen_07=0):
        pass
    lines = [record for record in caplog.records if "without authentication" in record.getMessage()]
    assert len(lines) == warns
    assert {record.levelno for record in lines} <= {logging.WARNING}


def test_metrics_that_others_read_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(penstock_metrics_port=0, penstock_metrics_host="0.0.0.0"):
        pass
    assert "read the metrics" in caplog.text


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::", False),
        ("10.0.0.1", False),
        ("x", False),
    ],
)
def test_loopback(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected
