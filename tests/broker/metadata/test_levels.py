"""Tests of the feature levels in a new data directory, with which a given Apache Kafka release must start."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, make_node, make_topic
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.directory_levels import set_level
from penstock.broker.metadata.levels import LEVELS, level_of
from penstock.broker.metadata.metadata_log import METADATA_LEVEL_MAX
from penstock.broker.metadata.stores import open_disk_store
from penstock.broker.node import Node
from penstock.clock import ManualClock
from penstock.errors import ConfigError
from penstock.log.directory.identity_files import read_meta_properties
from penstock.log.directory.metadata_snapshots import first_voters, newest_whole
from penstock.protocol.messages.voters_record import VotersRecord
from penstock.protocol.uuid import uuid_from_text

FOR_ANY_4 = {"metadata.version": 25, "transaction.version": 2, "group.version": 1}

FOR_4_3 = {**FOR_ANY_4, "metadata.version": 30, "share.version": 1, "streams.version": 1}


def open_node(path: Path, as_version: str | None = None, **settings: str) -> Node:
    texts = {name.replace("_", "."): value for name, value in settings.items()}
    clock = ManualClock(NOW_MS)
    config = BrokerConfig(texts, as_version)
    return Node(config, open_disk_store(str(path), config, clock), clock)


@pytest.mark.parametrize(
    ("as_version", "settings", "features"),
    [
        (None, {}, FOR_ANY_4),
        ("4.3", {}, FOR_ANY_4),
        ("3.9", {}, {"metadata.version": 21}),
        ("2.8", {}, FOR_ANY_4),
        (None, {"penstock_metadata_version": "3.9"}, {"metadata.version": 21}),
        (None, {"penstock_metadata_version": "3.9.1"}, {"metadata.version": 21}),
        (None, {"penstock_metadata_version": "3.7-IV4"}, {"metadata.version": 19}),
        ("3.9", {"penstock_metadata_version": "4.3"}, FOR_4_3),
    ],
)
def test_a_new_directory_has_the_level_of_the_release_it_is_for(
    as_version: str | None, settings: dict[str, str], features: dict[str, int], tmp_path: Path
) -> None:
    node = open_node(tmp_path, as_version, **settings)
    assert node.cluster.features == features
    make_topic(node, "t")
    node.store.close()
    again = open_node(tmp_path, penstock_metadata_version="4.1")
    assert again.cluster.features == features, "the setting is for new directories"
    assert set(again.cluster.topics) == {"t"}
    again.store.close()


def test_a_broker_in_memory_has_a_level_too() -> None:
    assert make_node().cluster.features == FOR_ANY_4


@pytest.mark.parametrize("name", ["3.2", "5.0", "new", "3.9-IV7", ""])
def test_a_release_that_is_not_known_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is no release .* name one of 3\.3,"):
        open_node(tmp_path, penstock_metadata_version=name)


def test_levels_are_those_of_kafkas_tools() -> None:
    """The levels equal the output of each release's `kafka-storage version-mapping`."""
    assert (level_of("3.3"), level_of("3.9-IV0"), level_of("4.2")) == (7, 21, 29)
    assert list(LEVELS.values()) == sorted(set(LEVELS.values()))
    assert max(LEVELS.values()) == METADATA_LEVEL_MAX


def test_a_new_directory_names_its_voter(tmp_path: Path) -> None:
    """The first checkpoint of the metadata log names the node as a voter.

    Without `controller.quorum.voters` Apache Kafka reads the voters from it (KIP-853).
    """
    open_node(tmp_path, node_id="7").store.close()
    meta = read_meta_properties(str(tmp_path))
    assert meta is not None
    assert meta.directory_id is not None
    quorum = first_voters(str(tmp_path / "__cluster_metadata-0"))
    assert quorum.kraft_version == bytes((0, 0, 0, 1, 0))
    assert quorum.voters is not None
    [voter] = VotersRecord.decode(quorum.voters, 0).voters
    assert (voter.voter_id, voter.voter_directory_id) == (7, uuid_from_text(meta.directory_id))
    open_node(tmp_path, node_id="7").store.close()


def test_a_directory_for_a_release_that_cannot_read_who_votes_does_not_say_it(tmp_path: Path) -> None:
    """A directory for a release before 3.9 has no voters in its checkpoint.

    Apache Kafka 3.6 and 3.8 fail to start on a checkpoint with voters; 3.9 is the first release to read one.
    """
    for release, names_voters in (("3.3", False), ("3.8", False), ("3.9", True), ("4.3", True)):
        path = tmp_path / release
        open_node(path, penstock_metadata_version=release).store.close()
        first = first_voters(str(path / "__cluster_metadata-0"))
        assert (first.voters is not None) is names_voters, release
        for other, has_them in (("3.8", False), ("3.9", names_voters), ("3.6", False), ("4.0", names_voters)):
            set_level(str(path), other)
            snapshot = newest_whole(str(path / "__cluster_metadata-0"))
            assert snapshot is not None
            assert (snapshot.quorum.voters is not None) is has_them, (release, other)
            assert (snapshot.quorum.kraft_version is not None) is has_them, (release, other)
            open_node(path).store.close()
