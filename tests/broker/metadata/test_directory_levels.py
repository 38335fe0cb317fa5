"""Tests of showing and changing the metadata version of a data directory that no broker uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.directory_levels import describe, set_level
from penstock.broker.metadata.metadata_log import record_head
from penstock.broker.metadata.stores import open_disk_store, open_store
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
    assert describe(str(tmp_path)).releases == ["4.0", "4.1", "4.2", "4.3", "4.4"]
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
    others = {"transaction.version": 2, "group.version": 1, "share.version": 1, "streams.version": 1}
    assert raised.features == {"metadata.version": 30, **others}
    assert raised.releases == ["4.3", "4.4"]
    assert raised.topics == ["more-0", "more-1", "t"]
    node = open_node(tmp_path)
    assert node.cluster.features["metadata.version"] == 30
    node.store.close()


def test_segments_that_apache_kafka_4_does_not_start_with_are_said_and_raised(tmp_path: Path) -> None:
    node = open_node(tmp_path)
    for name, size in (("few", "1048575"), ("tiny", "14"), ("fits", "1048576"), ("large", "2000000000")):
        make_topic(node, name, **{"segment.bytes": size, "retention.ms": "1234"})
    make_topic(node, "gone", **{"segment.bytes": "300"})
    node.cluster.delete_topics([node.cluster.topic("gone")], NOW_MS)
    make_topic(node, "plain")
    node.store.close()
    found = describe(str(tmp_path))
    assert found.small_segments == ["few", "tiny"]
    assert found.releases == []
    lowered = set_level(str(tmp_path), "3.9")
    assert lowered.small_segments == ["few", "tiny"]
    assert lowered.releases == ["3.9"], "which accepts 14 bytes"
    raised = set_level(str(tmp_path), "4.0")
    assert raised.small_segments == []
    assert raised.releases == ["4.0", "4.1", "4.2", "4.3", "4.4"]
    node = open_node(tmp_path)
    sizes = {name: topic.config.overrides.get("segment.bytes") for name, topic in node.cluster.topics.items()}
    node.store.close()
    raised_to = "1048576"
    assert sizes == {
        "few": raised_to,
        "tiny": raised_to,
        "fits": "1048576",
        "large": "2000000000",
        "plain": None,
    }


def test_several_directories_are_named_as_in_log_dirs(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    clock = ManualClock(NOW_MS)
    node = make_node(open_store(BrokerConfig({"log.dirs": f"{first},{second}"}), clock), clock)
    make_topic(node, "t", 4, **{"segment.bytes": "1000"})
    node.store.close()
    with pytest.raises(StorageError, match=r"name that, too, in log\.dirs"):
        set_level(first, "3.9")
    with pytest.raises(ConfigError, match="is no data directory with metadata"):
        describe(second)
    for named in (f"{first},{second}", f"{second}, {first}"):
        assert describe(named).releases == []
    assert set_level(f"{second},{first}", "3.9").releases == ["3.9"]
    raised = set_level(f"{first},{second}", "4.1")
    assert (raised.releases, raised.was_clean) == (["4.1", "4.2", "4.3", "4.4"], True)
    (tmp_path / "b" / ".kafka_cleanshutdown").unlink()
    assert not describe(f"{first},{second}").was_clean


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
