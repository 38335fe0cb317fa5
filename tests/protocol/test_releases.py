"""Tests of the table of Kafka releases: its API versions, and the release that a version number selects."""

from __future__ import annotations

import json

import pytest

from for_each import for_each
from penstock.errors import ConfigError
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.releases import RELEASES, api_versions, release
from protocol import reference


def test_from_the_first_release_to_trunk():
    names = list(RELEASES)
    assert names[0] == "0.8.0"
    assert names[-1] == "trunk"
    numbers = [each.numbers for each in RELEASES.values()]
    assert numbers == sorted(numbers)


def test_every_version_of_every_release_has_a_definition():
    seen: dict[int, set[int]] = {}
    for each in RELEASES.values():
        for key, one in each.apis.items():
            low, high = API_TABLE[key].versions
            assert low <= one.lowest <= one.highest <= high, (each.name, API_TABLE[key])
            seen.setdefault(key, set()).update(range(one.lowest, one.highest + 1))
    for key, known in seen.items():
        low, high = API_TABLE[key].versions
        highest = max(known)
        assert known == set(range(low, highest + 1))
        # An experimental version of ours may be above what Kafka has.
        assert highest == high or API_TABLE[key].stable_versions == (low, highest), API_TABLE[key]


def test_no_release_forgets_an_api_but_those_that_went_with_zookeeper():
    gone = {ApiKey(key).name for key in RELEASES["2.0"].apis if key not in RELEASES["trunk"].apis}
    assert gone == {"LEADER_AND_ISR", "STOP_REPLICA", "UPDATE_METADATA", "CONTROLLED_SHUTDOWN"}


def test_equal_to_the_reference_table():
    source = json.loads(reference.RELEASES.read_text())
    assert list(RELEASES)[:-1] == list(source["releases"])[:-1]
    for name, row in source["releases"].items():
        each = RELEASES["trunk" if name.startswith("trunk") else name]
        assert {str(key): [one.lowest, one.highest] for key, one in each.apis.items()} == row["apis"]
        unstable = [key for key, one in each.apis.items() if one.is_latest_unstable]
        assert sorted(unstable) == row.get("latest_version_unstable", [])
        for key, (low, high) in source["advertised_differs"].get(name, {}).items():
            offered = each.api_versions().get(int(key))
            assert offered == (low, high)
        for key, where in row.get("listeners", {}).items():
            shown = int(key) in each.api_versions(unstable=True)
            assert shown == ("broker" in where and key not in ("71", "72")), (name, key)


@for_each(
    [
        ("0.8", "0.8.0"),
        ("0.8.2.2", "0.8.2"),
        ("0.9.0.1", "0.9.0"),
        ("0.10.2.1", "0.10.2"),
        ("0.11.0.3", "0.11.0"),
        ("1", "1.0"),
        ("2.8.2", "2.8"),
        ("4.3.0", "4.3"),
        ("99.1", "4.4"),
        ("4.x", "4.4"),
        ("0.10.x", "0.10.2"),
        ("trunk", "trunk"),
    ]
)
def test_a_version_belongs_to_a_release(version, name):
    assert release(version).name == name


@pytest.mark.parametrize(
    ("version", "words"),
    [("0.7.2", "0.8.0 is the first"), ("new", "'new' is no release"), ("", "no release")],
)
def test_what_is_no_release(version, words):
    with pytest.raises(ConfigError, match=words):
        api_versions(version)


def test_what_clients_are_offered():
    assert api_versions("0.8.0") == dict.fromkeys(range(8), (0, 0))
    assert api_versions("2.8.1")[ApiKey.PRODUCE] == (0, 9)
    # Old librdkafka needs to see version 0, which 4.x cannot parse.
    assert api_versions("4.3")[ApiKey.PRODUCE] == (0, 13)
    assert RELEASES["4.3"].apis[ApiKey.PRODUCE].lowest == 3
    assert ApiKey.VOTE not in api_versions("4.3")
    assert ApiKey.LEADER_AND_ISR not in api_versions("3.9")
    assert ApiKey.LEADER_AND_ISR in api_versions("3.9", kraft=False)


def test_unstable_versions_are_offered_where_they_are_enabled():
    assert api_versions("4.1")[ApiKey.OFFSET_COMMIT] == (2, 9)
    assert api_versions("4.1", unstable=True)[ApiKey.OFFSET_COMMIT] == (2, 10)
    assert ApiKey.STREAMS_GROUP_HEARTBEAT not in api_versions("4.1")
    assert api_versions("4.1", unstable=True)[ApiKey.STREAMS_GROUP_HEARTBEAT] == (0, 0)


def test_zookeeper_came_and_went():
    with pytest.raises(ConfigError, match=r"Kafka 2\.7 needs ZooKeeper"):
        api_versions("2.7", kraft=True)
    with pytest.raises(ConfigError, match=r"Kafka 4\.0 has no ZooKeeper"):
        api_versions("4.0", kraft=False)
