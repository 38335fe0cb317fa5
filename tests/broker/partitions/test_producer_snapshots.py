"""Tests of producer snapshot files: their format, damaged ones, and the state that a start restores."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_disk_store
from penstock.broker.node import Node
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.broker.partitions.producers import producer_state_manager
from penstock.broker.partitions.producers.producer_snapshots import ProducerSnapshots, decode, encode
from penstock.broker.partitions.producers.producer_state import Producers, SeenBatch
from penstock.clock import ManualClock
from penstock.errors import DecodeError
from penstock.protocol.error_codes import ErrorCode


def some_producers() -> Producers:
    producers = Producers(1000)
    producers.record(7, 1, SeenBatch(0, 4, 10, 14, 99), 0)
    producers.record(7, 1, SeenBatch(5, 5, 15, 15, 100), 0)
    producers.record(1 << 40, 0, SeenBatch(2**31 - 1, 1, 20, 22, 98), 0)
    return producers


def test_the_last_batch_of_everybody_comes_back() -> None:
    states = decode(encode(some_producers()), now_ms=5)
    assert {producer_id: (state.epoch, state.seen_ms) for producer_id, state in states.items()} == {
        7: (1, 5),
        1 << 40: (0, 5),
    }
    assert states[7].batches == [SeenBatch(5, 5, 15, 15, 100)]
    assert states[1 << 40].batches == [SeenBatch(2**31 - 1, 1, 20, 22, 98)]


def test_a_snapshot_in_bytes() -> None:
    """A snapshot has a version, a checksum, a count, and 46 bytes for each producer."""
    data = encode(some_producers())
    assert data[:2] == b"\0\1"
    assert data[6:10] == b"\0\0\0\2"
    assert len(data) == 10 + 2 * 46


@pytest.mark.parametrize("change", ["cut", "flip", "version", "empty"])
def test_damaged_snapshots_are_refused(change: str) -> None:
    data = bytearray(encode(some_producers()))
    if change == "cut":
        del data[-1:]
    elif change == "flip":
        data[30] ^= 1
    elif change == "version":
        data[1] = 2
    else:
        data.clear()
    with pytest.raises(DecodeError):
        decode(bytes(data), 0)


def test_two_are_kept_and_the_older_is_used(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(str(tmp_path))
    for offset in (100, 200, 300):
        snapshots.save(offset, some_producers())
    assert snapshots.offsets() == [200, 300]
    loaded = Producers(1000)
    assert snapshots.load(loaded, 0, now_ms=0) == 200
    assert len(loaded) == 2
    assert snapshots.load(Producers(1000), 250, now_ms=0) == 250, "one alone is not used"
    snapshots.discard_after(250)
    assert snapshots.offsets() == [200]


def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(str(tmp_path))
    snapshots.save(200, some_producers())
    snapshots.save(300, some_producers())
    (tmp_path / f"{200:020d}.snapshot").write_bytes(b"damage")
    loaded = Producers(1000)
    assert snapshots.load(loaded, 10, now_ms=0) == 10
    assert len(loaded) == 0


def disk_node(path: Path) -> Node:
    clock = ManualClock(NOW_MS)
    return make_node(open_disk_store(str(path), BrokerConfig(), clock), clock)


@pytest.mark.parametrize("end", ["clean", "crash"])
def test_a_start_reads_the_log_from_the_older_snapshot_on(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_state_manager, "BATCHES_PER_SNAPSHOT", 10)
    node = disk_node(tmp_path)
    make_topic(node)
    produce(node, batch_of(b"early", producer_id=1, producer_epoch=0, base_sequence=0))
    for sequence in range(40):
        produce(node, batch_of(b"x", producer_id=2, producer_epoch=0, base_sequence=sequence))
        node.maintain(NOW_MS)
    files = sorted(path.name for path in (tmp_path / "t-0").glob("*.snapshot"))
    assert files == [f"{30:020d}.snapshot", f"{40:020d}.snapshot"]
    assert isinstance(node.store, DiskStore)
    if end == "clean":
        node.store.close()
    else:
        node.store._directory.abandon()
    again = disk_node(tmp_path)
    log = again.cluster.topic("t").partitions[0].log
    walked: list[int | None] = []
    real = log.iter_batch_headers
    monkeypatch.setattr(log, "iter_batch_headers", lambda start: walked.append(start) or real(start))
    for sequence in range(35, 40):
        repeated = produce(again, batch_of(b"x", producer_id=2, producer_epoch=0, base_sequence=sequence))
        assert repeated.base_offset == sequence + 1
    assert walked == [30]
    early = produce(again, batch_of(b"early", producer_id=1, producer_epoch=0, base_sequence=0))
    assert early.base_offset == 0
    gap = produce(again, batch_of(b"x", producer_id=2, producer_epoch=0, base_sequence=41))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    again.store.close()


def test_snapshots_past_a_torn_tail_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state_manager, "BATCHES_PER_SNAPSHOT", 2)
    node = disk_node(tmp_path)
    make_topic(node)
    for sequence in range(6):
        produce(node, batch_of(b"x", producer_id=2, producer_epoch=0, base_sequence=sequence))
        node.maintain(NOW_MS)
    assert isinstance(node.store, DiskStore)
    node.store._directory.abandon()
    segment = tmp_path / "t-0" / f"{0:020d}.log"
    size = segment.stat().st_size
    with segment.open("r+b") as file:
        file.truncate(size // 6 * 5)
    again = disk_node(tmp_path)
    assert produce(again, batch_of(b"other")).base_offset == 5
    assert [path.name for path in (tmp_path / "t-0").glob("*.snapshot")] == [f"{4:020d}.snapshot"]
    answer = produce(again, batch_of(b"x", producer_id=2, producer_epoch=0, base_sequence=5))
    assert answer.base_offset == 6, "the sixth batch was lost, so it is no repetition"
    again.store.close()


def test_a_log_that_began_here_is_not_read_for_its_producers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot of a log without idempotent producers is written without reading the log's batches."""
    monkeypatch.setattr(producer_state_manager, "BATCHES_PER_SNAPSHOT", 3)
    node = disk_node(tmp_path)
    make_topic(node)
    for _ in range(5):
        produce(node, batch_of(b"a"))
    partition = node.cluster.topic("t").partition(0)

    def refuse(_: object, start_offset: int | None = None) -> object:
        raise AssertionError(f"the log is read from {start_offset} on")

    monkeypatch.setattr(type(partition.log), "iter_batch_headers", refuse)
    node.maintain(NOW_MS)
    assert len(list((tmp_path / "t-0").glob("*.snapshot"))) == 1
    node.store.close()
