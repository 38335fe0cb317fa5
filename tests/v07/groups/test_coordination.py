"""Tests of assigning partitions in Kafka 0.7 groups: examples from real clients, and an even distribution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError, DecodeError
from penstock.v07.groups.coordination import (
    BrokerPartition,
    Snapshot,
    StreamSubscription,
    assign,
    broker_data,
    choose,
    destinations,
    parse_broker,
    parse_count,
    parse_pattern,
    parse_subscription,
    split,
)


def owned(snapshot: Snapshot, member: str) -> list[str]:
    return [str(place) for _, place in assign(snapshot, member)]


def test_three_consumers_two_brokers_three_partitions_each() -> None:
    one = StreamSubscription({"t": 1})
    snapshot = Snapshot({"A": one, "B": one, "C": one}, {"t": {0: 3, 1: 3}})
    assert [owned(snapshot, name) for name in "ABC"] == [["0-0", "0-1"], ["0-2", "1-0"], ["1-1", "1-2"]]


def test_places_and_streams_are_sorted_as_text() -> None:
    snapshot = Snapshot(
        {"c1": StreamSubscription({"t": 1}), "c2": StreamSubscription({"t": 3})}, {"t": {2: 3, 10: 11}}
    )
    by_stream: dict[str, list[str]] = {}
    for name in ("c1", "c2"):
        for (_, place), stream in assign(snapshot, name).items():
            by_stream.setdefault(stream, []).append(str(place))
    assert by_stream == {
        "c1-0": ["10-0", "10-1", "10-10", "10-2"],
        "c2-0": ["10-3", "10-4", "10-5", "10-6"],
        "c2-1": ["10-7", "10-8", "10-9"],
        "c2-2": ["2-0", "2-1", "2-2"],
    }


@pytest.mark.parametrize(
    ("partitions", "owners", "sizes"),
    [(16, 4, [4, 4, 4, 4]), (18, 4, [5, 5, 4, 4]), (2, 3, [1, 1, 0]), (0, 2, [0, 0])],
)
def test_earlier_consumers_get_what_is_left_over(partitions: int, owners: int, sizes: list[int]) -> None:
    found = split([f"0-{number}" for number in range(partitions)], [f"c{number}" for number in range(owners)])
    assert [len(found[f"c{number}"]) for number in range(owners)] == sizes


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 4), min_size=1, max_size=6),
    st.dictionaries(st.integers(0, 30), st.integers(0, 12), max_size=5),
)
def test_everything_is_owned_once_and_evenly(members: dict[str, int], brokers: dict[int, int]) -> None:
    snapshot = Snapshot(
        {name: StreamSubscription({"t": streams}) for name, streams in members.items()}, {"t": brokers}
    )
    streams: dict[str, list[BrokerPartition]] = {
        f"{name}-{number}": [] for name, count in members.items() for number in range(count)
    }
    for name in members:
        for (_, place), stream in assign(snapshot, name).items():
            assert stream.rpartition("-")[0] == name
            streams[stream].append(place)
    places = [place for owned in streams.values() for place in owned]
    assert len(places) == len(set(places)) == sum(brokers.values())
    sizes = [len(streams[name]) for name in sorted(streams)]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


def test_members_share_only_what_they_want() -> None:
    snapshot = Snapshot(
        {
            "a": StreamSubscription({"x": 1}),
            "b": StreamSubscription({}, "x|y"),
            "c": StreamSubscription({}, "x", is_blacklist=True, pattern_streams=2),
        },
        {"x": {0: 2}, "y": {0: 3}, "z": {0: 1}},
    )
    assert {(t, str(p)) for t, p in assign(snapshot, "a")} == {("x", "0-0")}
    assert {(t, str(p)) for t, p in assign(snapshot, "b")} == {("x", "0-1"), ("y", "0-0")}
    assert {(t, str(p)): s for (t, p), s in assign(snapshot, "c").items()} == {
        ("y", "0-1"): "c-0",
        ("y", "0-2"): "c-1",
        ("z", "0-0"): "c-0",
    }
    assert assign(snapshot, "nobody") == {}


def test_what_nodes_hold() -> None:
    assert broker_data("host-17", "h", 9092) == "host-17:h:9092"
    assert parse_broker(3, b"127.0.0.1-1795196091762:127.0.0.1:9092") == (3, "127.0.0.1", 9092)
    assert parse_broker(3, b"creator:h:1:more") == (3, "h", 1)
    with pytest.raises(ConfigError, match="cannot name the host"):
        broker_data("c", "::1", 1)
    for wrong in (
        b"",
        b"h:1",
        b"c:h:x",
        b"c::1",
        b"a:b:c:h:1",
        b"c:h:65536",
        b"c:h:" + b"9" * 5000,
        "c:h:٣".encode(),
    ):
        with pytest.raises(DecodeError, match="not as creator:host:port"):
            parse_broker(3, wrong)
    assert parse_count(b" 31\n") == 31
    for wrong in (b"", b"-1", b"x"):
        with pytest.raises(DecodeError):
            parse_count(wrong)
    assert BrokerPartition.parse("10-3") == (10, 3)
    for text in ("", "10", "a-1", "1-"):
        with pytest.raises(DecodeError):
            BrokerPartition.parse(text)


@pytest.mark.parametrize(
    "data",
    [b'{"t": 1000000000}', b"*999999999*t", b"*" + b"9" * 5000 + b"*t", b"[" * 100_000, b'{"t": 1e400}'],
)
def test_members_do_not_decide_how_much_others_compute(data: bytes) -> None:
    with pytest.raises(DecodeError, match="is no subscription"):
        parse_subscription(data)
    with pytest.raises(DecodeError, match="65536"):
        parse_count(b"1000000000")


SUBSCRIPTIONS = [
    (StreamSubscription({"ev": 1, "log": 2}), b'{ "ev": 1,"log": 2 }'),
    (StreamSubscription({}, "ev.*", False, 2), b"*2*ev.*"),
    (StreamSubscription({}, "ev.*", True, 2), b"!2!ev.*"),
]


@pytest.mark.parametrize(("subscription", "data"), SUBSCRIPTIONS)
def test_subscriptions(subscription: StreamSubscription, data: bytes) -> None:
    assert subscription.data() == data
    assert parse_subscription(data) == subscription


@pytest.mark.parametrize(
    "data", [b"t", b"", b"[]", b'{"t": 0}', b'{"t": true}', b'{"t": "1"}', b"*x*t", b"*1*(", b"\xff"]
)
def test_subscriptions_that_make_no_sense(data: bytes) -> None:
    with pytest.raises(DecodeError, match="is no subscription"):
        parse_subscription(data)


def test_patterns() -> None:
    assert parse_subscription(b'{"t":3,\n "u" : 1}') == StreamSubscription({"t": 3, "u": 1})
    assert parse_pattern(' "a , b" ') == "a|b"
    with pytest.raises(ConfigError, match="no regular expression"):
        parse_pattern("(")


def test_a_topic_not_listed_by_a_live_broker_goes_to_its_partition_0() -> None:
    assert destinations({1: 2, 9: 4}, [10, 1, 2]) == [(1, 0), (1, 1), (2, 0), (10, 0)]
    assert destinations({}, []) == []


@pytest.mark.parametrize(
    ("key", "number"),
    [("", 0), ("a", 97), ("kafka", 101807910), ("polygenelubricants", -(1 << 31)), ("😀", 1772899)],
)
def test_keys_choose_partitions_by_javas_hash(key: str, number: int) -> None:
    places = destinations({0: 3}, [0])
    assert choose(places, key) == places[abs(number) % 3]
