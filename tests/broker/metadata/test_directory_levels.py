"""The level of a directory that no broker uses: seen, lowered and raised by a snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.directory_levels import describe, set_level
from penstock.broker.metadata.metadata_log import record_head
from penstock.broker.metadata.stores import open_disk_store
from penstock.broker.node import Node
from penstock.clock import ManualClock
from penstock.errors import ConfigError, StorageError
from penstock.log.directory.metadata_snapshots import newest_whole

METADATA = "__cluster_metadata-0"


def open_node(path: Path) -> Node:
    clock = ManualClock(NOW_MS)
    return make_node(open_disk_store(str(path), BrokerConfig(), clock), clock)


def filled(path: Path, *, in_order: bool = True) -> Path:
    node = open_node(path)
    make_topic(node, "t", 2, **{"retention.ms": "1234"})
    assert produce(node, batch_of(b"v")).base_offset == 0
    assert node.cluster.new_producer_id(NOW_MS) == 0
    if in_order:
        node.store.close()
    else:
        node.store.abandon()
    return path


def state_of(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


@pytest.mark.parametrize("in_order", [True, False])
def test_a_directory_goes_down_and_up(in_order: bool, tmp_path: Path) -> None:
    filled(tmp_path, in_order=in_order)
    log = tmp_path / METADATA / f"{0:020d}.log"
    before = log.read_bytes()
    assert describe(str(tmp_path)).releases == ["4.0", "4.1", "4.2", "4.3"]
    lowered = set_level(str(tmp_path), "3.9")
    assert lowered.features == {"metadata.version": 21}
    assert lowered.releases[0] == "3.9"
    assert lowered.was_clean is in_order
    assert lowered.topics == ["t"]
    assert log.read_bytes() == before, "nothing is removed"
    snapshot = newest_whole(str(tmp_path / METADATA))
    assert snapshot is not None
    assert {record_head(value)[:2] for value in snapshot.values} == {(12, 0), (2, 0), (3, 1), (4, 0), (15, 0)}
    assert snapshot.quorum.voter_ids() == {1}
    for number in range(2):
        node = open_node(tmp_path)
        assert node.cluster.features == {"metadata.version": 21}
        assert node.cluster.topic("t").config.overrides == {"retention.ms": "1234"}
        assert node.cluster.topic("t").partition(0).high_watermark == 1
        assert node.cluster.new_producer_id(NOW_MS) >= 1000
        make_topic(node, f"more-{number}")
        node.store.close()
    assert describe(str(tmp_path)).topics == ["more-0", "more-1", "t"]
    raised = set_level(str(tmp_path), "4.3")
    assert raised.features == {"metadata.version": 30, "transaction.version": 2, "group.version": 1}
    assert raised.releases == ["4.3"]
    assert raised.topics == ["more-0", "more-1", "t"]
    node = open_node(tmp_path)
    assert node.cluster.features["metadata.version"] == 30
    node.store.close()


def test_a_look_changes_nothing(tmp_path: Path) -> None:
    before = state_of(filled(tmp_path))
    described = describe(str(tmp_path))
    assert (described.node_id, described.was_clean, described.level) == (1, True, 25)
    assert state_of(tmp_path) == before


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    node = open_node(tmp_path)
    before = state_of(tmp_path)
    with pytest.raises(StorageError, match="is in use by another broker"):
        set_level(str(tmp_path), "3.9")
    assert state_of(tmp_path) == before
    node.store.close()


def test_what_is_no_data_directory_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigError, match="is no data directory with metadata"):
            describe(str(path))
        with pytest.raises(ConfigError, match="is no data directory with metadata"):
            set_level(str(path), "3.9")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="is no release"):
        set_level(str(filled(tmp_path)), "2.8")
