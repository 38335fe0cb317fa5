"""Tests of how consumer groups are stored: Kafka's records in Kafka's order, from which restarts recover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.bench_node import make_topic
from broker.groups.consumer_bench import ConsumerBench
from penstock.broker.groups.consumer import records, state
from penstock.broker.groups.consumer.records import records_of
from penstock.broker.groups.consumer.state import (
    Change,
    ConsumerSubscription,
    Current,
    GroupState,
    MemberState,
)
from penstock.broker.groups.planned import LateRecords
from penstock.broker.groups.records import ConsumerGroupKey, StoredRecord, read_record
from penstock.errors import DecodeError, StorageError
from penstock.log.segments.salvage import sound_batches
from penstock.protocol import messages
from penstock.protocol.error_codes import ErrorCode as E
from penstock.records.batch import decode_batch

NAMES = {
    3: "ConsumerGroupMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    16: "ConsumerGroupRegularExpression",
}


def batches(bench: ConsumerBench, group: str = "g") -> Iterator[list[tuple[int, Any, Any]]]:
    """Yield the records of each batch in the group's partition of `__consumer_offsets`.

    A record is a tuple of type, key and value, decoded with Kafka's message definitions.
    """
    log = bench.node.groups.topic.partition(group).log
    for segment in log.segments:
        for batch, _ in sound_batches(segment, lambda position, size: None):
            rows = []
            for row in decode_batch(batch, 0, len(batch), "t", 0):
                assert row.key is not None
                key_type = int.from_bytes(row.key[:2], "big")
                name = NAMES.get(key_type)
                key = value = None
                if name is not None:
                    key = getattr(messages, f"{name}Key").decode(row.key[2:], 0)
                    if row.value is not None:
                        assert row.value[:2] == b"\0\0"
                        value = getattr(messages, f"{name}Value").decode(row.value[2:], 0)
                rows.append((key_type, key, row.value is None or value))
            yield rows


def order(bench: ConsumerBench, group: str = "g") -> list[list[int]]:
    """Return the record types of each batch in the group's partition; tombstones have negative types."""
    return [
        [-key_type if value is True else key_type for key_type, _, value in batch]
        for batch in batches(bench, group)
    ]


def test_records_come_in_the_order_of_apache_kafka() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    bench.wait(1.1)
    bench.beat("b", 2)
    bench.beat("a", 2)
    bench.beat("a", 2)
    bench.beat("a", 2, owned=[0, 1])
    bench.beat("b", 3)
    bench.beat("b", 3, owned=[2, 3])
    bench.beat("b", -1)
    assert order(bench) == [
        [5, 3, 7, 6, 8],  # a joins
        [5, 3, 8],  # b joins within the interval
        [7, 7, 6, 8],  # the assignment
        [8],  # a has to give up
        [8],  # a has
        [8],  # b gets
        [-8, -7, -5, 3],  # b leaves
    ]
    rows = [row for batch in batches(bench) for row in batch]
    member = next(value for key_type, key, value in rows if key_type == 5)
    assert member.subscribed_topic_names == ["t"]
    assert (member.subscribed_topic_regex, member.classic_member_metadata) == ("", None)
    assert (member.rebalance_timeout_ms, member.server_assignor) == (30_000, None)
    given_up = [value for key_type, key, value in rows if key_type == 8][3]
    assert (given_up.member_epoch, given_up.previous_member_epoch, given_up.state) == (2, 0, 1)
    assert given_up.assigned_partitions[0].partitions == [0, 1]
    assert given_up.assigned_partitions[0].assignment_epochs == [2, 2]
    assert given_up.partitions_pending_revocation[0].partitions == [2, 3]


def test_records_of_regular_expressions_static_members_and_the_end() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="i", subscribed_topic_regex="t")
    bench.beat("a", 1)
    bench.beat("a", -2, instance_id="i")
    bench.join("b", instance_id="i", subscribed_topic_regex="t")
    bench.beat("b", -1, instance_id="i")
    group = bench.node.groups.find("g")
    assert group is not None
    bench.node.groups.delete(group, bench.clock.now_ms())
    assert order(bench) == [
        [5, 8],
        [16, 3],
        [7, 6, 8],
        [8],
        [-8, -7, -5, 5, 7, 8, 8],
        [-8, -7, -5, -16, 3, 6],
        [-6, -4, -3],
    ]


STEPS: list[tuple[Any, ...]] = [
    ("join", "a"),
    ("join", "b"),
    ("wait",),
    ("beat", "b", 2, None),
    ("beat", "a", 2, None),
    ("beat", "a", 2, [0, 1]),
    ("beat", "b", 3, None),
]


def take(bench: ConsumerBench, step: tuple[Any, ...]) -> None:
    if step[0] == "wait":
        bench.wait(1.1)
    elif step[0] == "join":
        assert bench.join(step[1]).error_code == 0
    else:
        assert bench.beat(step[1], step[2], owned=step[3]).error_code == 0


@pytest.mark.parametrize("when", range(len(STEPS) + 1))
def test_a_restart_at_any_step_changes_nothing(when: int) -> None:
    """Epochs, assignments and partitions still to be revoked are restored; session timeouts begin anew."""
    bench = ConsumerBench()
    for number, step in enumerate(STEPS):
        if number == when:
            before = bench.describe()
            bench = bench.restarted()
            if number:
                assert bench.describe() == before
        take(bench, step)
    if when == len(STEPS):
        bench = bench.restarted()
    members = {each.member_id: each for each in bench.describe().members}
    assert {name: member.member_epoch for name, member in members.items()} == {"a": 3, "b": 3}
    owned = {name: member.assignment.topic_partitions[0].partitions for name, member in members.items()}
    assert owned == {"a": [0, 1], "b": [2, 3]}
    assert bench.describe().group_state == "Stable"
    bench.wait(46)
    assert bench.describe().group_state == "Empty"


def test_a_member_that_was_giving_up_partitions_has_its_time_after_a_restart() -> None:
    bench = ConsumerBench()
    for step in STEPS[:5]:
        take(bench, step)
    bench = bench.restarted()
    bench.describe()
    bench.wait(29)
    assert bench.beat("a", 2).error_code == 0
    bench.beat("b", 3)
    bench.wait(2)
    assert bench.beat("a", 2).error_code == E.UNKNOWN_MEMBER_ID


def test_what_cannot_be_stored_has_not_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ConsumerBench()
    bench.join("a")
    before = bench.describe()

    def fail(*what: Any) -> int:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(bench.node.groups.topic, "append", fail)
        assert bench.join("b").error_code == E.NOT_COORDINATOR
        assert bench.beat("a", -1).error_code == E.NOT_COORDINATOR
        assert bench.describe() == before
        bench.wait(46)  # the session ends, and that cannot be stored
        assert bench.describe() == before
    bench.wait(2)
    assert bench.describe().group_state == "Empty"


def test_a_deleted_offsets_topic_takes_the_groups_along() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.node.groups.forget_topics(["__consumer_offsets"], bench.clock.now_ms())
    assert not bench.node.groups.consumer.groups


def test_the_node_that_loses_a_partition_forgets_its_groups() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("a", "other")
    service = bench.node.groups
    service.unload(service.topic.partition_of("g"))
    assert list(service.consumer.groups) == ["other"]


# --- any order that compaction leaves ----------------------------------------------------------------------

RECORDS = LateRecords(ConsumerGroupKey, lambda: records)
PARTITIONS = st.dictionaries(
    st.tuples(st.sampled_from([b"T" * 16, b"U" * 16]), st.integers(0, 20)), st.integers(0, 9), max_size=5
)
TEXT = st.text(max_size=8)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(state.SetEpoch, st.tuples(st.integers(0, 99), st.integers(-(2**63), 2**63 - 1))),
    st.builds(state.SetTargetEpoch, st.tuples(st.integers(0, 99), st.integers(0, 2**62))),
    st.builds(state.SetTarget, TEXT, PARTITIONS.map(frozenset)),
    st.builds(
        state.SetCurrent,
        TEXT,
        st.builds(
            Current,
            st.integers(-2, 99),
            st.integers(-2, 99),
            st.sampled_from(MemberState),
            PARTITIONS,
            PARTITIONS,
        ),
    ),
    st.builds(
        state.SetSubscription,
        TEXT,
        st.builds(
            ConsumerSubscription,
            st.none() | TEXT,
            st.none() | TEXT,
            TEXT,
            TEXT,
            st.lists(TEXT).map(lambda names: tuple(sorted(names))),
            TEXT,
            st.integers(-1, 2**31 - 1),
            st.none() | TEXT,
            st.just(10_000),
            st.tuples(st.tuples(TEXT, st.binary(max_size=8))),
        ),
    ),
    st.builds(
        state.SetRegex,
        TEXT,
        st.builds(
            state.Resolved,
            st.lists(TEXT).map(lambda names: tuple(sorted(names))),
            st.integers(0, 99),
            st.integers(0, 2**62),
        ),
    ),
)


@given(CHANGES)
def test_changes_come_back_from_their_records(change: Change) -> None:
    ((key, value),) = records_of("g", [change])
    stored = read_record(key, value, [RECORDS])
    assert isinstance(stored, StoredRecord)
    assert stored.value == change
    assert stored.key[1] == "g"
    gone = read_record(key, None, [RECORDS])
    assert isinstance(gone, StoredRecord)
    assert (gone.key, gone.value) == (stored.key, None)


@given(st.binary(max_size=40), st.sampled_from([3, 5, 6, 7, 8, 16]))
def test_damaged_values_are_reported(data: bytes, key_type: int) -> None:
    key = key_type.to_bytes(2, "big") + b"\0\1g" + (b"\0\1m" if key_type in (5, 7, 8, 16) else b"")
    with suppress(DecodeError):
        read_record(key, data, [RECORDS])


def test_records_of_apache_kafka_before_4_3_have_no_epochs_of_partitions() -> None:
    value = messages.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        assigned_partitions=[
            messages.consumer_group_current_member_assignment_value.TopicPartitions(
                topic_id=b"T" * 16, partitions=[1, 2], assignment_epochs=None
            )
        ],
    )
    key = b"\0\x08\0\1g\0\1m"
    stored = read_record(key, b"\0\0" + value.encode(0), [RECORDS])
    assert isinstance(stored, StoredRecord)
    assert stored.value.value.assigned == {(b"T" * 16, 1): 7, (b"T" * 16, 2): 7}


@given(st.permutations(range(6)))
def test_a_group_is_the_same_in_any_order_of_its_last_records(numbers: list[int]) -> None:
    partition = (b"T" * 16, 0)
    changes: list[Change] = [
        state.SetEpoch((5, 1)),
        state.SetTargetEpoch((5, 9)),
        state.SetSubscription("m", ConsumerSubscription(instance_id="i", topics=("t",), regex="x")),
        state.SetTarget("m", frozenset([partition])),
        state.SetCurrent("m", Current(5, 4, MemberState.STABLE, {partition: 5})),
        state.SetRegex("x", state.Resolved(("x",), 1, 2)),
    ]
    group = GroupState()
    for number in numbers:
        group.apply(changes[number])
    assert group.state is state.State.STABLE
    assert (group.instances, group.owners) == ({"i": "m"}, {partition: "m"})
    assert group.subscribed_topics() == {"t", "x"}


def test_remains_of_members_that_compaction_has_left_are_dropped() -> None:
    bench = ConsumerBench()
    make_topic(bench.node, "x")
    service = bench.node.groups
    partition = (bench.topic_id("t"), 0)
    changes: list[Change] = [
        state.SetCurrent("gone", Current(5, 4, MemberState.STABLE, {partition: 5})),
        state.SetTarget("gone", frozenset([partition])),
        state.SetEpoch((5, 1)),
    ]
    service.store.append("g", records_of("g", changes), bench.clock.now_ms())
    again = bench.restarted()
    answer = again.join("a")
    assert (answer.member_epoch, again.assigned(answer)) == (6, {"t": [0, 1, 2, 3]})
