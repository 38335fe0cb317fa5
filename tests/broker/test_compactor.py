"""Compacted topics in a broker: what is compacted when, and that nobody notices but by what is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from penstock.broker.compactor import policy_of
from penstock.broker.config import BrokerConfig
from penstock.broker.node import Node
from penstock.broker.storage import LogStore, MemoryStore, open_store
from penstock.clock import ManualClock
from penstock.records.batch import decode_batch, split_batches

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
    """Let time pass, and everything that is due happen."""
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
    node._retention_due_ms = 0
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
