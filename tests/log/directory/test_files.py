"""Tests of the bytes of checkpoint files, leader epoch files, `meta.properties` and `partition.metadata`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.log.directory.checkpoint import read_checkpoint, read_offsets, write_checkpoint, write_offsets
from penstock.log.directory.epoch_checkpoint import load_epochs, new_epochs
from penstock.log.directory.identity_files import (
    MetaProperties,
    read_meta_properties,
    read_topic_id,
    write_meta_properties,
    write_topic_id,
)
from penstock.log.epochs import LeaderEpochs
from penstock.model import TopicPartition

OFFSETS_TEXT = "0\n2\na-b.c 10 7\nflights 0 123456789012\n"
OFFSETS = {TopicPartition("flights", 0): 123456789012, TopicPartition("a-b.c", 10): 7}


def test_offset_checkpoints_look_like_kafkas(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    write_offsets(str(path), OFFSETS)
    assert path.read_text() == OFFSETS_TEXT
    assert read_offsets(str(path)) == OFFSETS
    write_offsets(str(path), {})
    assert path.read_text() == "0\n0\n"
    assert read_offsets(str(path)) == {}
    assert [child.name for child in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("text", [None, ""])
def test_no_checkpoint_is_an_empty_one(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "x"
    if text is not None:
        path.write_text(text)
    assert read_offsets(str(path)) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1\n0\n", "version '1'"),
        ("0\n", "0 entries"),
        ("0\n2\na 0 1\n", "holds 1 entries"),
        ("0\n1\na 0\n", "malformed line: 'a 0'"),
        ("0\n1\na 0 x\n", "malformed line: 'a 0 x'"),
        ("0\nx\n", "second line"),
        ("\0\0\0", "version"),
    ],
)
def test_a_malformed_checkpoint_says_so(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(StorageError, match=reason):
        read_offsets(str(path))


def test_leader_epochs_look_like_kafkas(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    epochs = new_epochs(str(path))
    epochs.assign(0, 0)
    epochs.assign(0, 5)
    epochs.assign(3, 17)
    assert path.read_text() == "0\n2\n0 0\n3 17\n"
    assert load_epochs(str(path)).entries == [(0, 0), (3, 17)]
    epochs.truncate_end(17)
    epochs.truncate_start(4)
    assert path.read_text() == "0\n1\n0 4\n"
    assert load_epochs(str(tmp_path / "none")).entries == []


@pytest.mark.parametrize("text", ["0\n1\na b\n", "0\n2\n3 0\n1 5\n", "0\n1\n1\n"])
def test_malformed_leader_epochs_say_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(StorageError):
        load_epochs(str(path))


def test_an_overruled_epoch_goes() -> None:
    epochs = LeaderEpochs()
    for epoch, offset in ((1, 0), (2, 10), (4, 20), (3, 15), (-1, 99), (7, 15)):
        epochs.assign(epoch, offset)
    assert epochs.entries == [(1, 0), (2, 10), (7, 15)]


KAFKA_META = """#
#Thu Nov 21 10:00:00 UTC 2024
node.id=3
directory.id=Yw3pX1tbQBqSoWxxxxxxxx
version=1
cluster.id=p8fFEbKGQ22B6M_Da_vCBw
"""


def test_meta_properties_of_kafka(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    assert read_meta_properties(str(tmp_path)) is None
    path.write_text(KAFKA_META)
    meta = MetaProperties("p8fFEbKGQ22B6M_Da_vCBw", 3, "Yw3pX1tbQBqSoWxxxxxxxx")
    assert read_meta_properties(str(tmp_path)) == meta
    write_meta_properties(str(tmp_path), meta)
    assert path.read_text() == (
        "#\ncluster.id=p8fFEbKGQ22B6M_Da_vCBw\ndirectory.id=Yw3pX1tbQBqSoWxxxxxxxx\nnode.id=3\nversion=1\n"
    )
    assert read_meta_properties(str(tmp_path)) == meta
    path.write_text("version=0\nbroker.id=7\n")
    assert read_meta_properties(str(tmp_path)) == MetaProperties("", 7, None, True)
    path.write_text("version=0\ncluster.id=abc\n")
    assert read_meta_properties(str(tmp_path)) == MetaProperties("abc", -1, None, True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=2\n", "version 2"),
        ("version=1\ncluster.id=x\n", "node.id"),
        ("version=1\nnode.id=x\ncluster.id=x\n", "node.id"),
        ("version=1\nnode.id=1\n", "cluster.id"),
        ("version=1\nnode.id=1\ncluster.id=\\u12\n", "four hexadecimal digits"),
    ],
)
def test_meta_properties_that_make_no_sense(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(StorageError, match=reason):
        read_meta_properties(str(tmp_path))


def test_topic_ids(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    topic_id = bytes.fromhex("f81d4fae7dec11d0a76500a0c91e6bf6")
    assert read_topic_id(str(tmp_path)) is None
    write_topic_id(str(tmp_path), topic_id)
    assert path.read_text() == "version: 0\ntopic_id: -B1Prn3sEdCnZQCgyR5r9g"
    assert read_topic_id(str(tmp_path)) == topic_id
    for text in ("", "\0" * 50, "\n"):
        path.write_text(text)
        assert read_topic_id(str(tmp_path)) is None
    for text in (
        "version: 1\ntopic_id: -B1Prn3sEdCnZQCgyR5r9g",
        "version: 0",
        "version: 0\ntopic_id: x",
        "x",
    ):
        path.write_text(text)
        with pytest.raises(StorageError, match=r"partition\.metadata"):
            read_topic_id(str(tmp_path))


def test_any_words_may_be_checkpointed(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    write_checkpoint(path, [(1, "a"), (2, "b")], sync=True)
    assert read_checkpoint(path, 2) == [["1", "a"], ["2", "b"]]
