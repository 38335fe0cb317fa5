"""Tests of log compaction in a broker: which topics are compacted when, and which records remain."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_store
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import LogStore, MemoryStore
from penstock.broker.partitions.upkeep import cleaner as compactor
from penstock.broker.partitions.upkeep.cleaner import RETRY_S, policy_of
from penstock.clock import ManualClock
from penstock.log.compaction import compactor as compaction
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import refresh_crc, split_batches

BACKOFF_MS = 15_000


@pytest.fixture(params=["memory", "disk"])
def clock_and_store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    clock = ManualClock(NOW_MS)
    if request.param == "memory":
        return clock, MemoryStore(1, clock)
    return clock, open_store(BrokerConfig({"log.dirs": str(tmp_path)}), clock)


def contents(topic: Any) -> list[tuple[int, bytes | None, bytes | None]]:
    partition = topic.partitions[0]
    data = partition.log.read(partition.log_start_offset, 1 << 30).to_bytes()
    found = []
    for start, end, _ in split_batches(data):
        found += [(r.offset, r.key, r.value) for r in decode_batch(data, start, end, "t", 0)]
    return found


def keep_house(node: Node, clock: ManualClock, ms: int = BACKOFF_MS) -> None:
    """Move the clock, then run the periodic maintenance and wait for the compaction that it starts."""
    clock.advance(ms)
    assert node.maintain(node.clock.now_ms()) == []
    assert node.compactor.wait() == []


def fill(node: Node, keys: int = 3, turns: int = 5, **fields: Any) -> None:
    for turn in range(turns):
        for n in range(keys):
            produce(node, batch_of(b"%d" % turn, key=b"k%d" % n, **fields))


def test_a_compacted_topic_is_compacted_by_and_by(clock_and_store: tuple[ManualClock, LogStore]) -> None:
    clock, store = clock_and_store
    node = make_node(store, clock)
    topic = make_topic(node, cleanup_policy="compact", segment_bytes="300")
    fill(node)
    keep_house(node, clock, 1000)
    assert len(contents(topic)) == 15, "not before it is due"
    keep_house(node, clock)
    found = contents(topic)
    assert len(found) < 8
    assert {key: value for _, key, value in found} == {b"k0": b"4", b"k1": b"4", b"k2": b"4"}
    assert topic.partitions[0].high_watermark == 15
    assert produce(node, batch_of(b"next")).base_offset == 15
    store.close()


def test_other_topics_and_a_cleaner_that_is_off_change_nothing(
    clock_and_store: tuple[ManualClock, LogStore],
) -> None:
    clock, store = clock_and_store
    node = make_node(store, clock, log_cleaner_enable="false")
    topic = make_topic(node, cleanup_policy="compact", segment_bytes="300")
    fill(node)
    keep_house(node, clock, 1000)
    keep_house(node, clock)
    assert len(contents(topic)) == 15
    store.close()


def test_what_is_compacted_and_deleted_loses_what_is_old(
    clock_and_store: tuple[ManualClock, LogStore],
) -> None:
    clock, store = clock_and_store
    node = make_node(store, clock)
    topic = make_topic(node, cleanup_policy="compact,delete", segment_bytes="300", retention_ms="60000")
    fill(node)
    keep_house(node, clock, 1000)
    keep_house(node, clock)
    assert topic.partitions[0].log_start_offset == 0
    clock.advance(120_000)
    node.retention._due_at = 0.0
    node.maintain(clock.now_ms())
    assert topic.partitions[0].log_start_offset > 0
    store.close()


def test_an_idempotent_producer_goes_on_after_compaction_and_restart(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({"log.dirs": str(tmp_path)})
    store = open_store(config, clock)
    node = Node(config, store, clock)
    make_topic(node, cleanup_policy="compact", segment_bytes="300")
    mark = {"producer_id": 7, "producer_epoch": 0}
    for sequence in range(6):
        assert produce(node, batch_of(b"x", base_sequence=sequence, **mark)).error_code == 0
    fill(node)
    keep_house(node, clock, 1000)
    keep_house(node, clock)
    assert len(contents(node.cluster.topic("t"))) < 12
    store.close()
    store = open_store(config, clock)
    node = Node(config, store, clock)
    assert produce(node, batch_of(b"x", base_sequence=5, **mark)).base_offset == 5, "a repetition"
    assert produce(node, batch_of(b"x", base_sequence=8, **mark)).error_code == 45
    assert produce(node, batch_of(b"x", base_sequence=6, **mark)).error_code == 0
    assert node.cluster.topic("t").partitions[0].log.cleaned_to > 0  # type: ignore[attr-defined]
    store.close()


def test_a_topic_that_cannot_be_compacted_is_reported_once_and_others_are(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({"log.dirs": str(tmp_path)})
    store = open_store(config, clock)
    node = Node(config, store, clock)
    for name in ("bad", "good"):
        make_topic(node, name, cleanup_policy="compact", segment_bytes="300")
        for turn in range(9):
            produce(node, batch_of(b"%d" % turn), topic=name)
    with open(tmp_path / "bad-0" / f"{0:020d}.log", "r+b") as file:
        file.seek(61)
        file.write(b"\xff\xff\xff")
    failures = []
    for _ in range(4):
        clock.advance(20_000)
        failures += node.maintain(clock.now_ms())
        failures += node.compactor.wait()
    assert len(failures) == 1
    assert "bad-0" in str(failures[0])
    assert len(contents(node.cluster.topic("good"))) < 5
    store.close()


def test_deleting_a_topic_under_compaction_is_fine(clock_and_store: tuple[ManualClock, LogStore]) -> None:
    clock, store = clock_and_store
    node = make_node(store, clock)
    topic = make_topic(node, cleanup_policy="compact", segment_bytes="300")
    fill(node)
    keep_house(node, clock, 1000)
    clock.advance(20_000)
    assert node.maintain(clock.now_ms()) == []
    assert node.compactor.is_busy
    node.cluster.delete_topics([topic], clock.now_ms())
    assert node.compactor.wait() == []
    store.close()


def test_settings() -> None:
    node = make_node()
    topic = make_topic(
        node,
        cleanup_policy="compact",
        min_compaction_lag_ms="5",
        max_compaction_lag_ms="6",
        delete_retention_ms="7",
        min_cleanable_dirty_ratio="0.25",
    )
    assert policy_of(topic.config) == (5, 6, 7, 0.25)
    assert topic.partitions[0].log.config.segment_ms == 6  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "error", [MemoryError(), ValueError("odd"), SystemExit(1)], ids=["memory", "value", "exit"]
)
@pytest.mark.filterwarnings("error")
def test_a_compaction_whose_thread_dies_changes_nothing_is_reported_and_tried_again(
    clock_and_store: tuple[ManualClock, LogStore],
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, store = clock_and_store
    node = make_node(store, clock)
    topic = make_topic(node, cleanup_policy="compact", segment_bytes="300")
    fill(node, keys=30)
    keep_house(node, clock, 1000)
    before = contents(topic)
    calls = 0

    def failing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 40:  # in the middle of a segment that is being written
            raise error
        return clean(*args, **kwargs)

    clean = compaction.clean
    monkeypatch.setattr(compaction, "clean", failing)
    clock.advance(BACKOFF_MS)
    caplog.set_level("INFO")
    assert node.maintain(clock.now_ms()) == []
    (problem,) = node.compactor.wait()
    assert "t-0" in str(problem)
    assert contents(topic) == before
    assert "compacted" not in [record.msg.split()[0] for record in caplog.records]
    assert node.failures.counts == {"compactor": 1}
    assert node.compactor.failed == topic.partitions
    monkeypatch.undo()
    # Not at once, and not never.
    keep_house(node, clock)
    assert contents(topic) == before
    keep_house(node, clock, int(RETRY_S * 1000))
    assert {key: value for _, key, value in contents(topic)} == {key: value for _, key, value in before}
    assert len(contents(topic)) < len(before) / 2
    assert node.compactor.failed == []
    store.close()


def test_an_error_before_the_thread_begins_harms_one_partition_only(
    clock_and_store: tuple[ManualClock, LogStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, store = clock_and_store
    node = make_node(store, clock)
    for name in ("bad", "good"):
        make_topic(node, name, cleanup_policy="compact", segment_bytes="300")
        for turn in range(9):
            produce(node, batch_of(b"%d" % turn), topic=name)

    def failing(log: Any, *rest: Any) -> Any:
        if log is node.cluster.topic("bad").partitions[0].log:
            raise RuntimeError("odd")
        return find_dirt(log, *rest)

    find_dirt = compactor.find_dirt
    monkeypatch.setattr(compactor, "find_dirt", failing)
    clock.advance(1000)
    node.maintain(clock.now_ms())
    clock.advance(BACKOFF_MS)
    (problem,) = node.maintain(clock.now_ms())
    assert "bad" in str(problem)
    assert node.compactor.wait() == []
    assert len(contents(node.cluster.topic("good"))) < 5
    assert node.failures.counts == {"compactor": 1}
    store.close()


def test_times_beyond_64_bits_cost_no_other_key(
    clock_and_store: tuple[ManualClock, LogStore], caplog: pytest.LogCaptureFixture
) -> None:
    """A batch has a base timestamp of 2^63 - 1, and positive deltas that exceed 64 bits.

    Compaction keeps the records with other keys.
    """
    clock, store = clock_and_store
    node = make_node(store, clock)
    topic = make_topic(node, cleanup_policy="compact", segment_bytes="2000")
    fill(node, keys=40)
    log: Any = topic.partitions[0].log
    data = bytearray(
        encode_batch(
            [(b"odd%d" % n, b"x", (), NOW_MS + n) for n in range(3)],
            base_offset=log.end_offset,
            partition_leader_epoch=0,
        )
    )
    struct.pack_into(">q", data, 27, (1 << 63) - 1)
    refresh_crc(data, 0, len(data))
    log.append(
        memoryview(data),
        first_offset=log.end_offset,
        last_offset=log.end_offset + 2,
        max_timestamp=NOW_MS,
        now_ms=NOW_MS,
    )
    fill(node, keys=40)
    whole = log.read(0, 1 << 30).to_bytes()
    keep_house(node, clock, 1000)
    keep_house(node, clock)
    after = log.read(0, 1 << 30).to_bytes()
    assert len(after) < len(whole) / 2
    assert bytes(data) in after
    for n in range(40):
        assert b"k%d" % n in after
    assert "make no sense" in caplog.text
    assert node.compactor.failed == []
    store.close()
