"""Tests of a data directory: which broker owns it, which logs it has, and if its last shutdown was clean."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from for_each import for_each
from log.log_laws import SMALL, T0, fill, read_all
from penstock.common import operating_system
from penstock.errors import StorageError
from penstock.log import DataDirectory, LogConfig
from penstock.log.disk.data_directory import find_partitions, parse_partition_name
from penstock.model import TopicPartition
from penstock.protocol.uuid import random_uuid

FLIGHTS = TopicPartition("flights", 0)
OTHER = TopicPartition("a-b.c_d", 12)


def opened(path: Path) -> DataDirectory:
    directory = DataDirectory(str(path))
    for partition in directory.partitions:
        directory.open_log(partition, SMALL, now_ms=T0)
    return directory


@for_each(
    [
        ("flights-0", FLIGHTS),
        ("a-b.c_d-12", OTHER),
        ("__consumer_offsets-49", TopicPartition("__consumer_offsets", 49)),
        *((name, None) for name in ("flights", "-0", "flights-", "flights-x", "flights-0.5ab-delete", "x-٣")),
        ("flights-0.9f8e-stray", None),
        ("flights-0.9f8e-future", None),
    ]
)
def test_names_of_partitions(name: str, partition: TopicPartition | None) -> None:
    assert parse_partition_name(name) == partition


def test_a_new_directory_has_kafkas_files(tmp_path: Path) -> None:
    path = tmp_path / "data" / "kafka"
    directory = DataDirectory(str(path), node_id=5, cluster_id="p8fFEbKGQ22B6M_Da_vCBw")
    topic_id = random_uuid()
    log = directory.create_log(FLIGHTS, topic_id, SMALL, now_ms=T0)
    fill(log, 20)
    log.delete_before(4)
    assert directory.topic_id(FLIGHTS) == topic_id
    assert not (path / ".kafka_cleanshutdown").exists()
    directory.close()
    assert sorted(os.listdir(path)) == [
        ".kafka_cleanshutdown",
        ".lock",
        "flights-0",
        "log-start-offset-checkpoint",
        "meta.properties",
        "recovery-point-offset-checkpoint",
    ]
    assert (path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nflights 0 60\n"
    assert (path / "log-start-offset-checkpoint").read_text() == "0\n1\nflights 0 4\n"
    assert (path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    assert "cluster.id=p8fFEbKGQ22B6M_Da_vCBw\n" in (path / "meta.properties").read_text()
    assert "node.id=5\n" in (path / "meta.properties").read_text()


def test_what_was_closed_comes_back(tmp_path: Path) -> None:
    directory = DataDirectory(str(tmp_path))
    assert directory.was_clean
    made = {}
    for partition in (FLIGHTS, OTHER):
        made[partition] = fill(directory.create_log(partition, random_uuid(), SMALL, now_ms=T0), 20)
    directory.logs[OTHER].delete_before(7)
    meta = directory.meta
    directory.close()
    directory = opened(tmp_path)
    assert (directory.was_clean, directory.meta) == (True, meta)
    assert directory.partitions == [OTHER, FLIGHTS]
    assert read_all(directory.logs[FLIGHTS]) == b"".join(made[FLIGHTS])
    assert directory.logs[OTHER].start_offset == 7
    assert all(log.recovery.segments_checked == 0 for log in directory.logs.values())
    directory.close()


def test_after_a_crash_logs_are_checked_from_their_recovery_points(tmp_path: Path) -> None:
    directory = DataDirectory(str(tmp_path))
    log = directory.create_log(FLIGHTS, None, SMALL, now_ms=T0)
    made = fill(log, 20)
    log.flush()
    directory.write_checkpoints()
    made += fill(log, 3)
    directory.abandon()
    directory = opened(tmp_path)
    assert not directory.was_clean
    log = directory.logs[FLIGHTS]
    assert read_all(log) == b"".join(made)
    assert 0 < log.recovery.segments_checked < len(list((tmp_path / "flights-0").glob("*.log")))
    assert log.recovery_point == 60
    directory.abandon()


def test_damaged_checkpoints_are_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = DataDirectory(str(tmp_path))
    fill(directory.create_log(FLIGHTS, None, SMALL, now_ms=T0), 20)
    directory.close()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n7\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("?")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    directory = opened(tmp_path)
    assert caplog.text.count("is passed over") == 2
    assert directory.logs[FLIGHTS].end_offset == 60
    directory.close()


def test_one_broker_at_a_time(tmp_path: Path) -> None:
    directory = DataDirectory(str(tmp_path))
    with pytest.raises(StorageError, match="in use by another broker"):
        DataDirectory(str(tmp_path))
    code = f"from penstock.log import DataDirectory; DataDirectory({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "in use by another broker" in done.stderr
    directory.close()
    subprocess.run([sys.executable, "-c", code], check=True)
    DataDirectory(str(tmp_path)).close()


def test_a_directory_knows_its_cluster(tmp_path: Path) -> None:
    DataDirectory(str(tmp_path), cluster_id="p8fFEbKGQ22B6M_Da_vCBw").close()
    with pytest.raises(StorageError, match="belongs to cluster p8fFEbKGQ22B6M_Da_vCBw, not x"):
        DataDirectory(str(tmp_path), cluster_id="x")
    again = DataDirectory(str(tmp_path))  # the failed attempt has released the lock
    assert again.meta.cluster_id == "p8fFEbKGQ22B6M_Da_vCBw"
    again.close()


def test_deleting_a_partition(tmp_path: Path) -> None:
    directory = DataDirectory(str(tmp_path))
    log = directory.create_log(FLIGHTS, None, SMALL, now_ms=T0)
    made = fill(log, 20)
    held = log.read(0, 1 << 20)
    log.close()
    directory.delete_log(FLIGHTS)
    assert held.to_bytes() == b"".join(made)
    assert directory.partitions == []
    assert not list(tmp_path.glob("flights*"))
    again = directory.create_log(FLIGHTS, None, SMALL, now_ms=T0)
    assert (again.start_offset, again.end_offset) == (0, 0)
    long_name = TopicPartition("t" * 249, 3)
    directory.create_log(long_name, None, now_ms=T0)
    directory.delete_log(long_name)
    directory.close()
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nflights 0 0\n"


def test_interrupted_deletions_are_finished_and_strangers_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("flights-0.5a5a-delete", "flights-1.77-stray", "flights-2.77-future", "lost+found"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "x.log").touch()
    directory = DataDirectory(str(tmp_path))
    assert directory.partitions == []
    directory.close()
    left = {child.name for child in tmp_path.iterdir() if child.is_dir()}
    assert left == {"flights-1.77-stray", "flights-2.77-future", "lost+found"}
    assert caplog.text.count("alone") == 2


def test_an_unchecked_partition_is_not_vouched_for(tmp_path: Path) -> None:
    directory = DataDirectory(str(tmp_path))
    for partition in (FLIGHTS, OTHER):
        fill(directory.create_log(partition, None, SMALL, now_ms=T0), 2)
    directory.abandon()
    directory = DataDirectory(str(tmp_path))
    directory.open_log(FLIGHTS, now_ms=T0)
    directory.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    opened(tmp_path).close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    directory = DataDirectory(str(tmp_path))
    directory.open_log(FLIGHTS, now_ms=T0)
    directory.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_partitions_that_are_not_there_or_there_already(tmp_path: Path) -> None:
    directory = DataDirectory(str(tmp_path))
    with pytest.raises(StorageError, match="holds no partition flights-0"):
        directory.open_log(FLIGHTS, now_ms=T0)
    directory.create_log(FLIGHTS, None, LogConfig(), now_ms=T0)
    with pytest.raises(StorageError, match=r"cannot create .*flights-0: File exists"):
        directory.create_log(FLIGHTS, None, LogConfig(), now_ms=T0)
    directory.close()


def test_a_path_that_cannot_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot create .*file"):
        DataDirectory(str(tmp_path / "file"))
    with pytest.raises(StorageError, match=r"cannot create .*inner: a part of the path"):
        DataDirectory(str(tmp_path / "file" / "inner"))
    with pytest.raises(StorageError, match=r"cannot read .*none: there is no such"):
        find_partitions(str(tmp_path / "none"))


def test_a_close_that_fails_leaves_no_mark_and_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = DataDirectory(str(tmp_path))
    fill(directory.create_log(FLIGHTS, None, SMALL, now_ms=T0), 2)

    def fail(fd: int) -> None:
        raise OSError(5, "I/O error")

    monkeypatch.setattr(operating_system, "fdatasync", fail)
    with pytest.raises(StorageError, match="cannot flush"):
        directory.close()
    monkeypatch.undo()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    opened(tmp_path).close()


def test_a_new_directory_has_nothing_to_check(tmp_path: Path) -> None:
    directory = DataDirectory(str(tmp_path / "new"))
    assert directory.was_clean
    directory.create_log(TopicPartition("t", 0), bytes(16), now_ms=T0)
    directory.abandon()
    again = DataDirectory(str(tmp_path / "new"))
    assert not again.was_clean
    again.close()
