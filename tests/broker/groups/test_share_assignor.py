"""Tests of the share group assignor: all partitions are assigned, evenly, and assignments are sticky."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.groups.share.assignor import Subscriber, assign

T, U = b"T" * 16, b"U" * 16


def members(count: int, *topics: bytes, had: dict[int, set[tuple[bytes, int]]] | None = None) -> dict:
    return {
        f"m{number}": Subscriber(frozenset(topics), frozenset((had or {}).get(number, ())))
        for number in range(count)
    }


def test_fewer_members_than_partitions_have_equally_many() -> None:
    found = assign(members(3, T), {T: range(7)})
    assert sorted(map(len, found.values())) == [2, 2, 3]
    assert sorted(each for partitions in found.values() for each in partitions) == [(T, n) for n in range(7)]


def test_more_members_than_partitions_share_them() -> None:
    found = assign(members(7, T), {T: range(3)})
    assert all(found.values())
    holders = [sum((T, n) in partitions for partitions in found.values()) for n in range(3)]
    assert holders == [3, 3, 3]


def test_nobody_and_nothing() -> None:
    assert assign({}, {T: range(3)}) == {}
    assert assign(members(2, T), {}) == {"m0": frozenset(), "m1": frozenset()}


def test_topics_that_are_not_subscribed_to_are_left_out() -> None:
    found = assign(members(2, T), {T: [0], U: [0, 1]})
    assert found == {"m0": {(T, 0)}, "m1": {(T, 0)}}


def test_members_keep_what_they_had() -> None:
    had = {0: {(T, 0), (T, 1)}, 1: {(T, 2), (T, 3)}}
    found = assign(members(2, T, had=had), {T: range(4)})
    assert found == {"m0": {(T, 0), (T, 1)}, "m1": {(T, 2), (T, 3)}}
    found = assign(members(3, T, had=had), {T: range(4)})
    kept = sum(len(found[f"m{number}"] & partitions) for number, partitions in had.items())
    assert kept == 3


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_equal_subscriptions(count: int, partitions: int, data: st.DataObject) -> None:
    """All members subscribe to one topic. The partitions have equally many members, rounded up.

    The numbers of partitions of two members differ by one at most.
    """
    everything = [(T, number) for number in range(partitions)]
    had = {number: data.draw(st.sets(st.sampled_from([*everything, (U, 0)]))) for number in range(count)}
    found = assign(members(count, T, had=had), {T: range(partitions)})
    sizes = sorted(map(len, found.values()))
    assert sizes[0] >= 1
    assert sizes[-1] - sizes[0] <= 1
    holders = [sum(each in assigned for assigned in found.values()) for each in everything]
    assert set(holders) == {-(-count // partitions)}


@given(
    st.lists(st.sets(st.sampled_from([T, U])), min_size=1, max_size=8), st.integers(1, 6), st.integers(1, 6)
)
def test_differing_subscriptions(topics: list[set[bytes]], of_t: int, of_u: int) -> None:
    """Every partition of a subscribed topic has a subscriber, and no member gets any other topic."""
    subscribers = {
        f"m{number}": Subscriber(frozenset(each), frozenset()) for number, each in enumerate(topics)
    }
    counts = {T: range(of_t), U: range(of_u)}
    found = assign(subscribers, counts)
    for member_id, each in subscribers.items():
        having = {topic for topic, _ in found[member_id]}
        assert having == each.topics if len(set(map(frozenset, topics))) > 1 else having <= each.topics
    for topic, numbers in counts.items():
        if any(topic in each.topics for each in subscribers.values()):
            assigned = {number for each in found.values() for of, number in each if of == topic}
            assert assigned == set(numbers)
