"""Tests of the broker's consumer assignors: assignments are complete, balanced and sticky."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.groups.consumer.assignors import Assignment, Subscriber, assign
from penstock.broker.groups.consumer.state import Partition

TOPICS = [bytes([number]) * 16 for number in range(1, 5)]
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12))
NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)
NO: frozenset[Partition] = frozenset()


def everything(counts: dict[bytes, int], topics: frozenset[bytes]) -> set[Partition]:
    return {(topic, index) for topic, count in counts.items() if topic in topics for index in range(count)}


def check_complete(found: Assignment, counts: dict[bytes, int], members: dict[str, Subscriber]) -> None:
    given_out = [partition for partitions in found.values() for partition in partitions]
    assert len(given_out) == len(set(given_out))
    subscribed = frozenset(topic for member in members.values() for topic in member.topics)
    assert set(given_out) == everything(counts, subscribed)
    for member_id, partitions in found.items():
        assert {topic for topic, _ in partitions} <= members[member_id].topics


@given(COUNTS, NAMES, st.sampled_from(["uniform", "range"]))
def test_equal_members_share_equally(counts: dict[bytes, int], names: list[str], name: str) -> None:
    members = {each: Subscriber(frozenset(TOPICS), NO) for each in names}
    found = assign(name, members, counts)
    check_complete(found, counts, members)
    if name == "uniform":
        sizes = [len(partitions) for partitions in found.values()]
        assert max(sizes) - min(sizes) <= 1
    for topic in counts:
        sizes = [sum(each == topic for each, _ in partitions) for partitions in found.values()]
        assert name == "uniform" or max(sizes) - min(sizes) <= 1


@given(COUNTS, NAMES, st.data())
def test_uniform_moves_no_more_than_balance_asks_for(
    counts: dict[bytes, int], names: list[str], data: st.DataObject
) -> None:
    topics = frozenset(TOPICS)
    before = assign("uniform", {each: Subscriber(topics, NO) for each in names}, counts)
    stays = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    joins = data.draw(st.lists(st.sampled_from("uvw"), unique=True))
    members = {each: Subscriber(topics, before.get(each, NO)) for each in [*stays, *joins]}
    found = assign("uniform", members, counts)
    check_complete(found, counts, members)
    size = len(everything(counts, topics))
    for member_id in stays:
        kept = len(found[member_id] & before[member_id])
        assert kept >= min(len(before[member_id]), size // len(members))
    assert assign("uniform", {k: Subscriber(topics, found[k]) for k in members}, counts) == found


@given(COUNTS, st.dictionaries(st.sampled_from("abcdef"), st.frozensets(st.sampled_from(TOPICS)), min_size=1))
def test_different_subscriptions_are_balanced_where_partitions_can_move(
    counts: dict[bytes, int], topics: dict[str, frozenset[bytes]]
) -> None:
    members = {each: Subscriber(of_member, NO) for each, of_member in topics.items()}
    for name in ("uniform", "range"):
        check_complete(assign(name, members, counts), counts, members)
    found = assign("uniform", members, counts)
    for member_id, partitions in found.items():
        for topic, _ in partitions:
            for other, of_other in topics.items():
                if topic in of_other:
                    assert len(partitions) - len(found[other]) <= 1, (member_id, other)


def test_range_gives_the_same_members_the_same_numbers_of_each_topic() -> None:
    members = {
        "b": Subscriber(frozenset(TOPICS), NO),
        "a": Subscriber(frozenset(TOPICS), NO),
        "z": Subscriber(frozenset(TOPICS), NO, instance_id="first"),
    }
    found = assign("range", members, {TOPICS[0]: 4, TOPICS[1]: 4})
    numbers = {member_id: sorted({index for _, index in found[member_id]}) for member_id in found}
    assert numbers == {"z": [0, 1], "a": [2], "b": [3]}
