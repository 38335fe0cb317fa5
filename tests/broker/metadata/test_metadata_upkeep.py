"""Tests of the metadata log in the long run: snapshots replace old records, and no failure loses data."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, batch_of, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata import metadata_upkeep
from penstock.broker.metadata.directory_levels import describe, write_snapshot_of
from penstock.broker.metadata.metadata_upkeep import CLEANING_INTERVAL_S, MetadataUpkeep
from penstock.broker.metadata.stores import open_disk_store
from penstock.broker.node import Node
from penstock.clock import ManualClock
from penstock.errors import StorageError
from penstock.log.directory.metadata_snapshots import (
    SnapshotContents,
    SnapshotFile,
    last_timestamp_ms,
    newest_whole,
    read_snapshot,
    snapshots_in,
)

METADATA = "__cluster_metadata-0"
DAY_MS = 24 * 3600 * 1000
FEW = {"metadata.log.max.record.bytes.between.snapshots": 1000, "metadata.max.retention.bytes": 4000}


def open_node(path: Path, clock: ManualClock | None = None, **settings: object) -> Node:
    clock = clock or ManualClock(NOW_MS)
    texts = {**FEW, **{name.replace("_", "."): value for name, value in settings.items()}}
    config = BrokerConfig({name: str(value) for name, value in texts.items()})
    return Node(config, open_disk_store(str(path), config, clock), clock)


def churn(node: Node, count: int, tag: str = "gone") -> None:
    """Create and delete this number of topics, each followed by one second of periodic maintenance."""
    for number in range(count):
        topic = make_topic(node, f"{tag}-{number}")
        node.cluster.delete_topics([topic], node.clock.now_ms())
        keep_house(node)


def keep_house(node: Node, seconds: float = CLEANING_INTERVAL_S) -> None:
    assert isinstance(node.clock, ManualClock)
    node.clock.advance(int(seconds * 1000))
    assert node.maintain(node.clock.now_ms()) == []


def size_of(path: Path) -> int:
    return sum(each.stat().st_size for each in (path / METADATA).iterdir() if each.suffix != ".index")


def first_segment(path: Path) -> int:
    return min(int(each.stem) for each in (path / METADATA).glob("*.log"))


def check_whole(path: Path) -> None:
    """Start a node on the directory, and check that it has all metadata and can create topics."""
    node = open_node(path)
    assert set(node.cluster.topics) == {"t"}
    assert node.cluster.topic("t").config.overrides == {"retention.ms": "1234"}
    assert node.cluster.topic("t").partition(0).high_watermark == 1
    assert node.cluster.new_producer_id(NOW_MS) >= 1000
    make_topic(node, "more")
    node.store.close()
    assert describe(str(path)).topics == ["more", "t"]


def begin(path: Path, **settings: object) -> Node:
    node = open_node(path, **settings)
    make_topic(node, "t", 2, **{"retention.ms": "1234"})
    assert produce(node, batch_of(b"v")).base_offset == 0
    assert node.cluster.new_producer_id(NOW_MS) == 0
    return node


@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "killed"])
def test_the_metadata_log_does_not_grow_for_ever(in_order: bool, tmp_path: Path) -> None:
    node = begin(tmp_path)
    sizes = []
    for number in range(6):
        churn(node, 10, f"gone-{number}")
        sizes.append(size_of(tmp_path))
    assert max(sizes) < 4000 + 2 * 1000 + 1000
    assert first_segment(tmp_path) > 50
    if in_order:
        node.store.close()
    else:
        node.store.abandon()
    check_whole(tmp_path)


def test_a_long_log_gets_a_snapshot_soon_after_the_start(tmp_path: Path) -> None:
    """The next start reads this snapshot and only the records after it."""
    between = 10**9
    node = begin(tmp_path, metadata_log_max_record_bytes_between_snapshots=between)
    churn(node, 15)
    assert snapshots_in(str(tmp_path / METADATA)) == []
    node.store.close()
    node = open_node(tmp_path)
    keep_house(node, 1)
    [snapshot] = snapshots_in(str(tmp_path / METADATA))
    assert snapshot.end_offset == node.cluster.metadata_end_offset
    assert last_timestamp_ms(snapshot) == node.clock.now_ms()
    keep_house(node)
    assert len(snapshots_in(str(tmp_path / METADATA))) == 1, "nothing has come since"
    node.store.close()
    check_whole(tmp_path)


def test_old_snapshots_go_by_their_age(tmp_path: Path) -> None:
    node = begin(tmp_path, metadata_max_retention_bytes=10**9, metadata_max_retention_ms=DAY_MS)
    churn(node, 25)
    before = snapshots_in(str(tmp_path / METADATA))
    assert len(before) > 2
    assert first_segment(tmp_path) == 0
    keep_house(node, 2 * DAY_MS / 1000)
    assert snapshots_in(str(tmp_path / METADATA)) == before[:1], "the newest stays, however old"
    assert 0 < first_segment(tmp_path) <= before[0].end_offset
    node.store.close()
    check_whole(tmp_path)


def test_without_limits_nothing_goes(tmp_path: Path) -> None:
    node = begin(tmp_path, metadata_max_retention_bytes=10**9, metadata_max_retention_ms=-1)
    churn(node, 25)
    keep_house(node, 1000 * DAY_MS / 1000)
    assert len(snapshots_in(str(tmp_path / METADATA))) > 2
    assert first_segment(tmp_path) == 0
    node.store.close()


@pytest.mark.parametrize("fault", ["writing fails", "what is read differs"])
def test_nothing_goes_before_its_snapshot_is_whole(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed snapshot is tried again later; until one succeeds, no file of the log is deleted."""
    attempts: list[object] = []

    def refuse(*args: Any, **more: Any) -> Any:
        attempts.append(args)
        raise StorageError("no room on the disk")

    def other(file: SnapshotFile) -> SnapshotContents:
        if not file.path.endswith(".part"):
            return read_snapshot(file)
        attempts.append(file)
        return read_snapshot(file)._replace(values=[])

    name, double = ("write_whole", refuse) if fault == "writing fails" else ("read_snapshot", other)
    node = begin(tmp_path, metadata_max_retention_bytes=0)
    monkeypatch.setattr(f"penstock.log.directory.metadata_snapshots.{name}", double)
    churn(node, 25)
    assert 2 <= len(attempts) <= 25 * CLEANING_INTERVAL_S / metadata_upkeep.RETRY_S + 1
    assert first_segment(tmp_path) == 0
    assert snapshots_in(str(tmp_path / METADATA)) == []
    assert list((tmp_path / METADATA).glob("*.part*")) == []
    monkeypatch.undo()
    keep_house(node, metadata_upkeep.RETRY_S)
    assert first_segment(tmp_path) == 0, "one snapshot stands for nothing older"
    churn(node, 25)
    assert first_segment(tmp_path) > 0
    node.store.close()
    check_whole(tmp_path)


def test_a_crash_at_any_point_leaves_what_a_start_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test copies the directory before each rename or deletion, and starts a node on each copy."""
    live = tmp_path / "live"
    node = begin(live)
    churn(node, 25)
    copies: list[Path] = []

    def before(call: Callable[..., None]) -> Callable[..., None]:
        def copied(*paths: Any) -> None:
            if METADATA in str(paths[0]) and Path(paths[0]).exists():
                copies.append(tmp_path / f"crash-{len(copies)}")
                shutil.copytree(live, copies[-1])
            call(*paths)

        return copied

    monkeypatch.setattr(os, "unlink", before(os.unlink))
    monkeypatch.setattr(os, "replace", before(os.replace))
    segment = first_segment(live)
    number = 0
    while first_segment(live) == segment:
        churn(node, 1, f"late-{number}")
        number += 1
    monkeypatch.undo()
    node.store.close()
    assert len(copies) >= 5
    for copy in copies:
        check_whole(copy)


def test_what_a_crash_has_left_unfinished_goes(tmp_path: Path) -> None:
    node = begin(tmp_path)
    name = f"{7:020d}-{1:010d}"
    left = [tmp_path / METADATA / f"{name}.checkpoint.{suffix}" for suffix in ("tmp", "part", "part.tmp")]
    other = tmp_path / METADATA / f"{name}-42.checkpoint.part"
    for each in (*left, other):
        each.write_bytes(b"half of it")
    churn(node, 15)
    assert not any(each.exists() for each in left)
    assert other.exists(), "Apache Kafka's own affair"
    node.store.close()


def test_a_snapshot_has_nothing_that_came_after_it_was_begun(tmp_path: Path) -> None:
    """Records that are appended while a snapshot is written are not in it: they may not be on disk yet."""
    node = begin(tmp_path)
    end_offset = node.cluster.metadata_end_offset
    made: list[int] = []

    def meanwhile(count: int) -> None:
        made.append(count)
        make_topic(node, f"late-{count}")

    file = write_snapshot_of(str(tmp_path), NOW_MS, end_offset=end_offset, between=meanwhile)
    assert made == list(range(len(made)))
    assert file.end_offset == end_offset
    node.store.close()
    snapshot = newest_whole(str(tmp_path / METADATA))
    assert snapshot is not None
    assert not any(b"late-" in value for value in snapshot.values)
    assert set(open_node(tmp_path).cluster.topics) == {"t", *(f"late-{each}" for each in made)}


def test_a_thread_writes_it_where_there_is_a_server(tmp_path: Path) -> None:
    node = begin(tmp_path)
    node.call_soon = lambda call: None
    churn(node, 25)
    upkeep = node._metadata_upkeep
    assert upkeep is not None
    if upkeep._thread is not None:  # a stop would have it give up what is not whole
        upkeep._thread.join()
    keep_house(node)
    assert snapshots_in(str(tmp_path / METADATA))
    node.end_upkeep()
    node.store.close()
    check_whole(tmp_path)


def test_a_log_that_never_stops_growing_is_cut_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While each snapshot is written, enough records are added to make the next one due."""
    go_on = threading.Semaphore(0)

    def slowly(*arguments: Any, **more: Any) -> SnapshotFile:
        assert go_on.acquire(timeout=60)
        return write_snapshot_of(*arguments, **more)

    monkeypatch.setattr(metadata_upkeep, "write_snapshot_of", slowly)
    node = begin(tmp_path)
    node.call_soon = lambda call: None
    for _ in range(12):
        churn(node, 6)
        upkeep = node._metadata_upkeep
        assert upkeep is not None
        assert upkeep._thread is not None, "the next snapshot is due at once"
        go_on.release()
        upkeep._thread.join()
    assert first_segment(tmp_path) > 50
    assert size_of(tmp_path) < 4000 + 3 * 1500 + 1000
    keep_house(node)
    go_on.release()
    node.end_upkeep()
    node.store.close()
    check_whole(tmp_path)


def test_a_stop_gives_up_a_snapshot_that_is_not_whole(tmp_path: Path) -> None:
    node = begin(tmp_path)
    log = node.cluster.authority.log_on_disk
    assert log is not None
    log.bytes_behind = 10**6
    upkeep = MetadataUpkeep(log, str(tmp_path), node.config, node.failures)
    upkeep.stop()
    upkeep.step(0, NOW_MS, in_thread=True)
    upkeep.stop()
    assert list((tmp_path / METADATA).glob("*.tmp")) == []
    assert snapshots_in(str(tmp_path / METADATA)) == []
    assert node.failures.counts == {}
    node.store.close()
