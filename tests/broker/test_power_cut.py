"""Tests that cut the power at every moment of a broker's run: acknowledged and flushed data survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from log.test_power_cut import Disk, lay_out
from penstock.broker.config.values import BrokerConfig
from penstock.broker.node import Node
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.clock import ManualClock
from penstock.log.walk import walk_buffer

SETTINGS = {"log.flush.interval.messages": "1", "log.segment.bytes": "600"}


def start(directory: Path) -> Node:
    clock = ManualClock(NOW_MS)
    return make_node(DiskStore(str(directory), BrokerConfig(SETTINGS), clock), clock, **SETTINGS)


def test_what_was_acknowledged_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker creates topics one after another, and an idempotent producer writes to each.

    At each change of the disk, the test starts brokers on what a power cut could leave.
    """
    data = tmp_path / "data"
    data.mkdir()
    disk = Disk(data, monkeypatch)
    acknowledged: dict[str, int] = {}
    producer_ids: list[int] = []
    crashes = 0

    def crash() -> None:
        nonlocal crashes
        for files in disk.survivors():
            crashes += 1
            node = start(lay_out(files, tmp_path / f"crash{crashes}"))
            for name, count in acknowledged.items():
                partition = node.cluster.topic(name).partition(0)
                log = partition.log
                assert log.end_offset >= count
                found = [entry.base_offset for entry in walk_buffer(log.read(0, 1 << 30).to_bytes())]
                assert found == list(range(log.end_offset))
            assert node.cluster.new_producer_id(NOW_MS) not in producer_ids
            node.store.abandon()

    disk.on_change = crash
    node = start(data)
    for name in ("a", "b"):
        make_topic(node, name)
        acknowledged[name] = 0
        producer_ids.append(node.cluster.new_producer_id(NOW_MS))
        for sequence in range(3):
            batch = batch_of(
                b"v" * 100, producer_id=producer_ids[-1], producer_epoch=0, base_sequence=sequence
            )
            answer = produce(node, batch, topic=name)
            assert (answer.error_code, answer.base_offset) == (0, sequence)
            acknowledged[name] = sequence + 1
    node.store.close()
    assert crashes > 100
