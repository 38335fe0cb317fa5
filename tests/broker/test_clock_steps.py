"""Tests that set the wall clock back or forward under a running broker: timed work happens when it should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from broker.groups.bench_group import Bench
from log.log_laws import T0, add, batch
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_store
from penstock.clock import ManualClock
from penstock.log.contract import LogConfig
from penstock.log.memory import MemoryLog
from penstock.v07.byte_log import ByteLog, ByteLogConfig

DAY_MS = 86_400_000


class SteppedClock(ManualClock):
    """A clock whose wall time can be set back or forward; its monotonic time is not affected."""

    def __init__(self) -> None:
        super().__init__(NOW_MS)
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms

    def step(self, ms: int) -> None:
        self._ahead_ms += ms


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


def test_retention_goes_on_when_the_clock_is_put_back(clock: SteppedClock) -> None:
    node = make_node(clock=clock, log_retention_check_interval_ms=60_000)
    topic = make_topic(node, segment_bytes="300", retention_bytes="600")
    clock.advance(30_000)
    node.maintain(clock.now_ms())
    for _ in range(20):
        produce(node, batch_of(b"x" * 50))
    clock.step(-DAY_MS)
    clock.advance(60_000)
    assert node.maintain(clock.now_ms()) == []
    assert topic.partitions[0].log_start_offset > 0


def test_a_clock_that_is_put_back_does_not_hurry_retention_either(clock: SteppedClock) -> None:
    node = make_node(clock=clock, log_retention_check_interval_ms=60_000)
    topic = make_topic(node, segment_bytes="300", retention_bytes="600")
    clock.advance(30_000)
    node.maintain(clock.now_ms())
    for _ in range(20):
        produce(node, batch_of(b"x" * 50))
    clock.step(DAY_MS)
    clock.advance(1000)
    assert node.maintain(clock.now_ms()) == []
    assert topic.partitions[0].log_start_offset == 0, "checks come every minute, whatever the time of day"


def test_compaction_goes_on_when_the_clock_is_put_back(clock: SteppedClock) -> None:
    node = make_node(clock=clock)
    topic = make_topic(node, cleanup_policy="compact", segment_bytes="300")
    for turn in range(20):
        produce(node, batch_of(b"%d" % turn, key=b"k"))
    node.maintain(clock.now_ms())
    assert not node.compactor.is_busy
    clock.step(-DAY_MS)
    clock.advance(15_000)
    before = topic.partitions[0].log.size_bytes
    assert node.maintain(clock.now_ms()) == []
    assert node.compactor.wait() == []
    assert topic.partitions[0].log.size_bytes < before / 2


def test_groups_are_looked_at_when_the_clock_is_put_back(clock: SteppedClock) -> None:
    bench = Bench(clock=clock, offsets_retention_check_interval_ms=1000)
    groups = bench.node.groups
    looked: list[str] = []
    bench.node.groups.coordinator.groups = _Watched(looked)
    clock.step(-DAY_MS)
    clock.advance(1000)
    assert groups.maintain(clock.now_ms()) == []
    assert looked


class _Watched(dict[str, Any]):
    """A dict of groups that records each time the broker iterates over it."""

    def __init__(self, looked: list[str]) -> None:
        super().__init__()
        self._looked = looked

    def values(self) -> Any:
        self._looked.append("values")
        return super().values()


@pytest.mark.parametrize("step_ms", [-30 * DAY_MS, 30 * DAY_MS])
def test_idempotent_producers_are_neither_forgotten_nor_kept_for_ever(
    clock: SteppedClock, step_ms: int
) -> None:
    node = make_node(clock=clock)
    partition = make_topic(node, message_timestamp_after_max_ms=str(90 * DAY_MS)).partitions[0]
    mark = {"producer_id": 7, "producer_epoch": 0}
    assert produce(node, batch_of(b"x", base_sequence=0, **mark)).base_offset == 0
    clock.advance(1000)
    node.maintain(clock.now_ms())
    clock.step(step_ms)
    assert node.maintain(clock.now_ms()) == []
    assert produce(node, batch_of(b"x", base_sequence=0, **mark)).base_offset == 0, "a repetition"
    assert partition.high_watermark == 1
    clock.advance(2 * DAY_MS)
    assert node.maintain(clock.now_ms()) == []
    assert len(partition.producers()) == 0


def test_producers_read_from_a_log_are_idle_from_then_on(clock: SteppedClock, tmp_path: Path) -> None:
    config = BrokerConfig({"log.dirs": str(tmp_path)})
    node = make_node(open_store(config, clock), clock)
    make_topic(node)
    mark = {"producer_id": 7, "producer_epoch": 0}
    produce(node, batch_of(b"x", base_sequence=0, **mark))
    node.store.close()
    clock.advance(30 * DAY_MS)  # a machine that has been up for long
    node = make_node(open_store(config, clock), clock)
    assert produce(node, batch_of(b"x", base_sequence=0, **mark)).base_offset == 0
    clock.advance(1000)
    node.maintain(clock.now_ms())
    assert produce(node, batch_of(b"x", base_sequence=0, **mark)).base_offset == 0, "a repetition, still"
    node.store.close()


def test_what_is_not_flushed_yet_does_not_wait_for_the_clock_to_catch_up(tmp_path: Path) -> None:
    log = MemoryLog(LogConfig(flush_ms=1000), now_ms=T0)
    add(log, batch(0), first=0, last=0)
    assert not log.flush_if_due(T0 + 10)
    assert log.flush_if_due(T0 - DAY_MS)
    old = ByteLog(str(tmp_path / "t-0"), ByteLogConfig(flush_messages=100), now_ms=T0, is_clean=True)
    old.append(memoryview(b"0123456789"), 1, now_ms=T0)
    assert old.end == 0
    old.maintain(now_ms=T0 - DAY_MS)
    assert old.end == 10
    old.close(now_ms=T0)
