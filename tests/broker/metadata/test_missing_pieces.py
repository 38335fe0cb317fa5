"""Tests of data directories with a missing, damaged or duplicate part.

The broker serves all data or refuses to start.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, batch_of, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.metadata_log import frame
from penstock.broker.metadata.stores import open_store
from penstock.broker.node import Node
from penstock.clock import ManualClock
from penstock.errors import StorageError
from penstock.log.directory.identity_files import read_meta_properties
from penstock.log.directory.metadata_snapshots import QuorumVoters, write_snapshot
from penstock.protocol.message import Message
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.user_scram_credential_record import UserScramCredentialRecord

METADATA = "__cluster_metadata-0"
OTHER_ID = "wYIirDaDSyKkgfEFuAUqMQ"


def start(*directories: Path) -> Node:
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({"log.dirs": ",".join(map(str, directories))})
    return Node(config, open_store(config, clock), clock)


def state_of(path: Path) -> dict[str, bytes | None]:
    return {
        str(each.relative_to(path)): each.read_bytes() if each.is_file() else None for each in path.rglob("*")
    }


def refused(root: Path, said: str, *directories: Path) -> None:
    before = state_of(root)
    with pytest.raises(StorageError, match=f"cannot be taken over whole, and nothing in it was.*{said}.*; "):
        start(*directories)
    assert state_of(root) == before


# --- several log directories, one of which is not there ----------------------------------------------------


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Return two data directories of one broker.

    Each has partitions of topic ``t``, and had partitions of a topic that was deleted.
    """
    first, second = tmp_path / "first", tmp_path / "second"
    node = start(first, second)
    make_topic(node, "t", 4)
    for partition in range(4):
        assert produce(node, batch_of(b"v"), partition=partition).base_offset == 0
    gone = make_topic(node, "gone", 2)
    node.cluster.delete_topics([gone], NOW_MS)
    node.store.close()
    assert list(first.glob("t-*"))
    assert list(second.glob("t-*"))
    return first, second


def test_two_directories_are_served_again(two: tuple[Path, Path]) -> None:
    node = start(*two)
    for partition in range(4):
        assert produce(node, batch_of(b"v"), partition=partition).base_offset == 1
    node.store.close()


@pytest.mark.parametrize("form", ["not named", "not there", "empty", "another one's"])
def test_partitions_whose_directory_is_missing_are_not_served_empty(
    form: str, two: tuple[Path, Path], tmp_path: Path
) -> None:
    first, second = two
    meta = read_meta_properties(str(second))
    assert meta is not None
    if form != "not named":
        shutil.move(second, tmp_path / "away")
        if form != "not there":
            second.mkdir()
        if form == "another one's":
            own = (tmp_path / "away" / "meta.properties").read_text()
            (second / "meta.properties").write_text(own.replace(str(meta.directory_id), OTHER_ID))
    named = two if form != "not named" else (first,)
    refused(tmp_path, f"another directory of log.dirs, whose directory.id is {meta.directory_id}", *named)


def test_a_directory_that_is_lost_is_replaced_by_an_empty_one_of_its_id(two: tuple[Path, Path]) -> None:
    """The operator puts the old `meta.properties` into an empty directory, as the error message suggests.

    The lost partitions then start again at offset 0.
    """
    _, second = two
    kept = (second / "meta.properties").read_text()
    lost = sorted(int(path.name[2:]) for path in second.glob("t-*"))
    shutil.rmtree(second)
    second.mkdir()
    (second / "meta.properties").write_text(kept)
    node = start(*two)
    for partition in range(4):
        expected = 0 if partition in lost else 1
        assert produce(node, batch_of(b"v"), partition=partition).base_offset == expected
    node.store.close()


def test_a_directory_id_that_is_there_twice_is_refused(two: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = two
    shutil.copy(first / "meta.properties", second / "meta.properties")
    refused(tmp_path, "its directory.id, .*, is that of .* as well", *two)


def test_a_directory_whose_owner_was_forgotten_on_purpose_is_a_new_clusters(tmp_path: Path) -> None:
    """Without `meta.properties` the broker gives the directory a new cluster id, and keeps its records.

    The partition records in the metadata have the previous directory id.
    """
    path = tmp_path / "data"
    node = start(path)
    make_topic(node, "t", 2)
    assert produce(node, batch_of(b"v")).base_offset == 0
    node.store.close()
    (path / "meta.properties").unlink()
    for number in (1, 2):
        node = start(path)
        assert produce(node, batch_of(b"v")).base_offset == number
        node.store.close()


def test_metadata_of_apache_kafka_without_an_owner_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    node = start(path)
    make_topic(node, "t")
    node.store.close()
    (path / METADATA / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":3,"data_version":1}')
    (path / "meta.properties").unlink()
    refused(tmp_path, "no meta.properties, which says of which cluster and node", path)


# --- what kafka-storage format has left --------------------------------------------------------------------


def formatted(path: Path, *records: Message) -> Path:
    """Make a data directory as `kafka-storage format` does, on which no broker has started yet."""
    path.mkdir()
    (path / "meta.properties").write_text(
        "version=1\ncluster.id=p8fFEbKGQ22B6M_Da_vCBw\nnode.id=1\ndirectory.id=Yw3pX1tbQBqSoW_5gN1EHg\n"
    )
    file = write_snapshot(
        str(path), 0, 0, map(frame, records), quorum=QuorumVoters(), last_timestamp_ms=0, now_ms=NOW_MS
    )
    Path(file.path).rename(path / "bootstrap.checkpoint")
    return path


def level(number: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=number)


def with_voters(path: Path) -> None:
    """Add the voters' checkpoint that `kafka-storage format --standalone` writes to the metadata log."""
    (path / METADATA).mkdir()
    write_snapshot(str(path / METADATA), 0, 0, (), quorum=QuorumVoters(), last_timestamp_ms=0, now_ms=NOW_MS)


@pytest.mark.parametrize("more", [lambda path: None, with_voters], ids=["static", "standalone"])
def test_a_formatted_directory_begins_as_it_was_formatted(
    more: Callable[[Path], None], tmp_path: Path
) -> None:
    user = UserScramCredentialRecord(
        name="ann", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"k", iterations=4096
    )
    path = formatted(tmp_path / "data", level(21), user)
    more(path)
    for _ in range(2):
        node = start(path)
        assert node.cluster.features == {"metadata.version": 21}
        assert ("ann", 1) in node.cluster.security.credentials
        node.store.close()


def test_a_formatted_directory_of_a_newer_level_is_refused(tmp_path: Path) -> None:
    path = formatted(tmp_path / "data", level(34))
    refused(tmp_path, "metadata.version is at level 34", path)


def test_a_damaged_bootstrap_checkpoint_counts_where_there_are_no_metadata_yet(tmp_path: Path) -> None:
    path = formatted(tmp_path / "data", level(25))
    file = path / "bootstrap.checkpoint"
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    refused(tmp_path, "bootstrap.checkpoint is .*", path)
    file.write_bytes(whole)
    start(path).store.close()
    file.write_bytes(whole[:-10])
    start(path).store.close()
