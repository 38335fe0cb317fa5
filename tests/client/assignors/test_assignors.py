"""Tests of the client's assignors: assignments are complete, disjoint, balanced and sticky.

They also test the data that members exchange.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.assignors import NAMES, Assignor, assignor_named
from penstock.client.assignors.base import Previous
from penstock.client.assignors.member_metadata import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from penstock.client.assignors.sticky import decode_previous, encode_previous
from penstock.errors import DecodeError
from penstock.model import TopicPartition

Assigned = Mapping[str, Sequence[TopicPartition]]

TOPICS = ("a", "b", "c")
counts_of_topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 7), min_size=1)
members_of_groups = st.dictionaries(
    st.sampled_from([f"m{number}" for number in range(9)]),
    st.sets(st.sampled_from(TOPICS), min_size=1),
    min_size=1,
    max_size=6,
)


def subscriptions(
    assignor: Assignor, members: Mapping[str, set[str]], before: Assigned, generation: int
) -> dict[str, Subscription]:
    """Return the subscription that each member sends after it had the assignment `before`."""
    said = {}
    for member, topics in members.items():
        owned = [where for where in before.get(member, ()) if where.topic in topics]
        previous = Previous(before.get(member), generation)
        said[member] = Subscription(
            tuple(sorted(topics)),
            tuple(owned) if assignor.is_cooperative else (),
            assignor.user_data(sorted(topics), previous),
            generation,
        )
    return said


def settle(
    assignor: Assignor, counts: Mapping[str, int], members: Mapping[str, set[str]], before: Assigned
) -> Assigned:
    """Rebalance until the assignment is stable: once, or twice if partitions must be revoked first."""
    for generation in range(3):
        said = subscriptions(assignor, members, before, generation)
        after = assignor.assign(counts, said)
        given_out = [where for partitions in after.values() for where in partitions]
        owners = {where: member for member, s in said.items() for where in s.owned}
        for member, partitions in after.items():
            assert all(where.topic in members[member] for where in partitions)
            assert all(owners.get(where, member) == member for where in partitions)
        assert len(set(given_out)) == len(given_out)
        before = after
        if set(given_out) == wanted(counts, members):
            return after
    raise AssertionError("partitions are left over")


def wanted(counts: Mapping[str, int], members: Mapping[str, set[str]]) -> set[TopicPartition]:
    topics = {topic for some in members.values() for topic in some}
    return {TopicPartition(t, number) for t in topics & counts.keys() for number in range(counts[t])}


@pytest.mark.parametrize("name", NAMES)
@given(counts=counts_of_topics, first=members_of_groups, second=members_of_groups)
@settings(max_examples=60)
def test_everything_is_assigned_to_one_who_wants_it(
    name: str, counts: dict[str, int], first: dict[str, set[str]], second: dict[str, set[str]]
) -> None:
    assignor = assignor_named(name)
    settle(assignor, counts, second, settle(assignor, counts, first, {}))


@pytest.mark.parametrize("name", ["roundrobin", "sticky", "cooperative-sticky"])
@given(counts=counts_of_topics, first=members_of_groups, second=members_of_groups)
@settings(max_examples=60)
def test_equal_members_get_equal_shares(
    name: str, counts: dict[str, int], first: dict[str, set[str]], second: dict[str, set[str]]
) -> None:
    assignor = assignor_named(name)
    everything = set(TOPICS)
    before = settle(assignor, counts, dict.fromkeys(first, everything), {})
    after = settle(assignor, counts, dict.fromkeys(second, everything), before)
    sizes = [len(partitions) for partitions in after.values()]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@given(counts=counts_of_topics, members=members_of_groups)
@settings(max_examples=60)
def test_nothing_moves_where_nothing_has_changed(
    name: str, counts: dict[str, int], members: dict[str, set[str]]
) -> None:
    assignor = assignor_named(name)
    before = settle(assignor, counts, members, {})
    after = settle(assignor, counts, members, before)
    assert {m: set(p) for m, p in after.items()} == {m: set(p) for m, p in before.items()}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@given(counts=counts_of_topics, names=st.sets(st.integers(0, 8), min_size=2, max_size=6))
@settings(max_examples=60)
def test_who_stays_keeps_what_it_had_when_another_leaves(
    name: str, counts: dict[str, int], names: set[int]
) -> None:
    assignor = assignor_named(name)
    members = {f"m{number}": set(TOPICS) for number in names}
    before = settle(assignor, counts, members, {})
    left = dict(list(members.items())[1:])
    after = settle(assignor, counts, left, before)
    assert all(set(before[member]) <= set(after[member]) for member in left)


def test_a_range_is_neighbours_of_every_topic() -> None:
    members = {m: Subscription(("a", "b")) for m in ("x", "y")}
    assigned = assignor_named("range").assign({"a": 3, "b": 2}, members)
    assert assigned == {
        "x": [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)],
        "y": [TopicPartition("a", 2), TopicPartition("b", 1)],
    }


def test_static_members_are_dealt_to_by_instance_id() -> None:
    members = {
        "z": Subscription(("a",), instance_id="1"),
        "y": Subscription(("a",), instance_id="2"),
        "x": Subscription(("a",)),
    }
    assigned = assignor_named("roundrobin").assign({"a": 3}, members)
    assert [assigned[m][0].partition for m in "zyx"] == [0, 1, 2]


def test_a_moving_partition_is_withheld_until_it_is_revoked() -> None:
    owned = tuple(TopicPartition("a", number) for number in range(4))
    assignor = assignor_named("cooperative-sticky")
    first = assignor.assign({"a": 4}, {"m": Subscription(("a",), owned, None, 3), "n": Subscription(("a",))})
    assert len(first["m"]) == 2
    assert first["n"] == []
    second = assignor.assign(
        {"a": 4},
        {"m": Subscription(("a",), tuple(first["m"]), None, 4), "n": Subscription(("a",), (), None, 4)},
    )
    assert len(second["m"]) == len(second["n"]) == 2


def test_java_class_names_are_understood_and_others_are_not() -> None:
    java = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert assignor_named(java).name == "cooperative-sticky"
    with pytest.raises(ValueError, match="did you mean 'roundrobin'"):
        assignor_named("round-robin")


@given(
    st.lists(st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 9)), unique=True),
    st.integers(-1, 9),
)
def test_user_data_of_the_sticky_assignor_is_read_back(places: list[TopicPartition], generation: int) -> None:
    data = encode_previous(places, generation)
    assert (sorted(decode_previous(data).partitions), decode_previous(data).generation) == (
        sorted(places),
        generation,
    )
    assert decode_previous(data[:-4]).generation is None


@given(st.binary(max_size=40))
def test_user_data_of_strangers_does_no_harm(data: bytes) -> None:
    decode_previous(data)


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_are_read_back_as_far_as_their_version_goes(version: int) -> None:
    whole = Subscription(("a", "b"), (TopicPartition("a", 1), TopicPartition("b", 0)), b"u", 7, "rack")
    back = decode_subscription(encode_subscription(whole, version))
    assert (back.topics, back.user_data) == (whole.topics, whole.user_data)
    assert back.owned == (whole.owned if version >= 1 else ())
    assert back.generation == (7 if version >= 2 else -1)
    assert back.rack == ("rack" if version >= 3 else None)


def test_newer_versions_are_read_as_far_as_they_are_known() -> None:
    data = encode_subscription(Subscription(("a",), rack="r"))
    assert decode_subscription(b"\x00\x09" + data[2:] + b"more").rack == "r"
    assert decode_assignment(b"") == []
    places = [TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 0)]
    assert sorted(decode_assignment(b"\x00\x63" + encode_assignment(places)[2:])) == sorted(places)


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff", b"\x00\x01\x00"])
def test_what_is_no_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_subscription(data)
