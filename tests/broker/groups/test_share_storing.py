"""Tests of how share groups are stored: Kafka's records in Kafka's order, from which restarts recover."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.share_bench import ShareBench
from penstock.broker.groups.planned import LateRecords
from penstock.broker.groups.records import ShareGroupKey, StoredRecord, read_record
from penstock.broker.groups.share import records, state
from penstock.broker.groups.share.records import records_of
from penstock.broker.groups.share.state import (
    Change,
    Current,
    Member,
    ShareInitialization,
    ShareState,
    TopicPartitions,
)
from penstock.errors import DecodeError, StorageError
from penstock.protocol.error_codes import ErrorCode as E


def test_records_come_in_the_order_of_apache_kafka() -> None:
    bench = ShareBench()
    bench.join("a")
    bench.wait(1.1)
    bench.beat("a", 2)
    bench.join("b")
    bench.wait(1.1)
    bench.beat("b", 3)
    bench.beat("a", -1)
    assert bench.order() == [
        [10, 11, 13, 12, 14, 15],  # a joins: partitions are about to be initialized
        [15],  # they are
        [11, 13, 12, 14],  # a gets them
        [10, 11, 14],  # b joins within the interval
        [13, 13, 12, 14],  # the assignment
        [-14, -13, -10, 11],  # a leaves
    ]
    rows = [row for batch in bench.batches() for row in batch]
    noted = [value for key_type, _, value in rows if key_type == 15]
    assert noted[0].initializing_topics[0].partitions == [0, 1, 2, 3]
    assert noted[0].initializing_topics[0].topic_name == "t"
    assert noted[1].initializing_topics == []
    assert noted[1].initialized_topics[0].partitions == [0, 1, 2, 3]
    member = next(value for key_type, _, value in rows if key_type == 10)
    assert (member.client_host, member.subscribed_topic_names) == ("/127.0.0.1", ["t"])


def test_the_end_of_a_group_follows_the_end_of_its_states() -> None:
    bench = ShareBench()
    bench.settled("a")
    bench.beat("a", -1)
    assert any(states.entries for states in bench.node.share_states.loaded.states)
    assert bench.delete_group() == 0
    assert bench.order()[-2:] == [[15], [-12, -15, -11]]
    assert not any(states.entries for states in bench.node.share_states.loaded.states)
    assert bench.restarted().describe().error_code == E.GROUP_ID_NOT_FOUND


STEPS: list[tuple[Any, ...]] = [
    ("join", "a"),
    ("wait",),
    ("beat", "a", 2),
    ("join", "b"),
    ("wait",),
    ("beat", "b", 3),
    ("beat", "a", 3),
]


def take(bench: ShareBench, step: tuple[Any, ...]) -> None:
    if step[0] == "wait":
        bench.wait(1.1)
    elif step[0] == "join":
        assert bench.join(step[1]).error_code == 0
    else:
        assert bench.beat(step[1], step[2]).error_code == 0


@pytest.mark.parametrize("when", range(len(STEPS) + 1))
def test_a_restart_at_any_step_changes_nothing(when: int) -> None:
    """Epochs, assignments and initialized partitions are restored; session timeouts begin anew."""
    bench = ShareBench()
    for number, step in enumerate(STEPS):
        if number == when:
            before = bench.describe()
            bench = bench.restarted()
            if number:
                assert bench.describe() == before
        take(bench, step)
    if when == len(STEPS):
        bench = bench.restarted()
    epochs = {each.member_id: each.member_epoch for each in bench.describe().members}
    assert epochs["a"] == epochs["b"]
    assert sorted(len(topics["t"]) for topics in bench.assigned().values()) == [2, 2]
    bench.wait(46)
    assert bench.describe().group_state == "Empty"


def test_what_cannot_be_stored_has_not_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ShareBench()
    bench.settled("a")
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
    with monkeypatch.context() as patch:
        patch.setattr(bench.node.groups.topic, "append", fail)
        assert bench.delete_group() == E.NOT_COORDINATOR
        assert bench.alter({("t", 0): 1}).error_code == E.NOT_COORDINATOR
        assert bench.drop("t").error_code == E.NOT_COORDINATOR
    assert bench.delete_group() == 0


def test_states_that_could_not_be_made_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ShareBench()

    def fail(*what: Any) -> int:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(bench.node.share_states.topic, "append", fail)
        bench.join("a")
        assert bench.order()[-1] == [15]
        assert bench.node.groups.share.groups["g"].initialization == ShareInitialization()
    bench.wait(1.1)
    bench.beat("a", 2)  # asks again
    bench.wait(1.1)
    bench.beat("a", 2)
    assert bench.assigned() == {"a": {"t": [0, 1, 2, 3]}}


def test_an_answer_that_never_comes_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ShareBench()
    asked: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(bench.node, "send_share_state", lambda request, done: asked.append(done))
        bench.join("a")
        bench.wait(20)
        bench.beat("a", 2)
        assert len(asked) == 1
        bench.wait(11)
        bench.beat("a", 2)
        assert len(asked) == 2
    bench.wait(31)
    bench.beat("a", 2)
    bench.beat("a", 2)
    assert bench.assigned() == {"a": {"t": [0, 1, 2, 3]}}


def test_the_node_that_loses_a_partition_forgets_its_groups() -> None:
    bench = ShareBench()
    bench.join("a")
    bench.join("a", group="other")
    service = bench.node.groups
    service.unload(service.topic.partition_of("g"))
    assert list(service.share.groups) == ["other"]
    service.forget_topics(["__consumer_offsets"], bench.clock.now_ms())
    assert not service.share.groups


# --- any order that compaction leaves ----------------------------------------------------------------------

RECORDS = LateRecords(ShareGroupKey, lambda: records)
TOPIC_IDS = st.sampled_from([b"T" * 16, b"U" * 16])
PARTITIONS = st.frozensets(st.tuples(TOPIC_IDS, st.integers(0, 20)), max_size=5)
TEXT = st.text(max_size=8)
NAMES = st.lists(TEXT).map(lambda names: tuple(sorted(names)))
TOPICS = st.dictionaries(
    TOPIC_IDS, st.builds(TopicPartitions, TEXT, st.frozensets(st.integers(0, 20), max_size=4))
)
EPOCHS = st.integers(0, 99)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(state.SetEpoch, st.tuples(EPOCHS, st.integers(-(2**63), 2**63 - 1))),
    st.builds(state.SetTargetEpoch, st.tuples(EPOCHS, st.integers(0, 2**62))),
    st.builds(state.SetTarget, TEXT, PARTITIONS),
    st.builds(state.SetCurrent, TEXT, st.builds(Current, EPOCHS, EPOCHS, PARTITIONS)),
    st.builds(state.SetMember, TEXT, st.builds(Member, st.none() | TEXT, TEXT, TEXT, NAMES)),
    st.builds(
        state.SetInitialization,
        st.builds(ShareInitialization, TOPICS, TOPICS, st.dictionaries(TOPIC_IDS, TEXT)),
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


@given(st.binary(max_size=40), st.sampled_from(sorted(RECORDS.key_types)))
def test_damaged_values_are_reported(data: bytes, key_type: int) -> None:
    key = key_type.to_bytes(2, "big") + b"\0\1g" + (b"\0\1m" if key_type in (10, 13, 14) else b"")
    with suppress(DecodeError):
        read_record(key, data, [RECORDS])


@given(st.permutations(range(6)))
def test_a_group_is_the_same_in_any_order_of_its_last_records(numbers: list[int]) -> None:
    partition = (b"T" * 16, 0)
    changes: list[Change] = [
        state.SetEpoch((5, 1)),
        state.SetTargetEpoch((5, 9)),
        state.SetMember("m", Member(topics=("t",))),
        state.SetTarget("m", frozenset([partition])),
        state.SetCurrent("m", Current(5, 4, frozenset([partition]))),
        state.SetInitialization(
            ShareInitialization(initialized={b"T" * 16: TopicPartitions("t", frozenset([0]))})
        ),
    ]
    group = ShareState()
    for number in numbers:
        group.apply(changes[number])
    assert group.state is state.State.STABLE
    assert group.subscribed_topics() == {"t"}
    assert (group.epoch, group.target_epoch, group.current("m").epoch) == (5, 5, 5)


def test_remains_of_members_that_compaction_has_left_are_dropped() -> None:
    bench = ShareBench()
    partition = (bench.topic_id(), 0)
    changes: list[Change] = [
        state.SetCurrent("gone", Current(5, 4, frozenset([partition]))),
        state.SetTarget("gone", frozenset([partition])),
        state.SetEpoch((5, 1)),
    ]
    service = bench.node.groups
    service.store.append("g", records_of("g", changes), bench.clock.now_ms())
    again = bench.restarted()
    assert again.join("a").member_epoch == 6
    assert [each.member_id for each in again.describe().members] == ["a"]
