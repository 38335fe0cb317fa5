"""Tests of the share coordinator: record ranges, epochs, snapshots, and states that survive a restart."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.bench_node import ask, make_topic
from broker.groups.share_bench import ShareBench
from penstock.broker.groups.share_state.batches import StateBatch, combine
from penstock.broker.groups.share_state.coordinator import WrittenShareState
from penstock.broker.groups.share_state.keys import ShareKey, parse_key
from penstock.broker.groups.share_state.records import read_change, record_of
from penstock.broker.groups.share_state.state import SharePartitionState, ShareStateChange, Update, updated
from penstock.errors import DecodeError, StorageError
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.messages import read_share_group_state_request as read
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest

# --- keys
# ----------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=20), st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1))
def test_keys_come_back_from_their_texts(group: str, topic_id: bytes, partition: int) -> None:
    key = ShareKey(group, topic_id, partition)
    assert parse_key(key.text) == key


@pytest.mark.parametrize("text", ["", "g", "a:b:c", f":{'A' * 22}:0", f"g:{'A' * 22}:x", f"g:{'A' * 21}:0"])
def test_texts_that_are_no_keys(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_key(text)


def test_the_coordinator_of_a_share_partition_is_found() -> None:
    bench = ShareBench()
    key = ShareKey("g", bench.topic_id(), 0).text
    asked = FindCoordinatorRequest(key_type=2, coordinator_keys=[key, "nonsense"])
    found = ask(bench.node, asked, 6).coordinators
    assert [each.error_code for each in found] == [0, E.INVALID_REQUEST]
    assert found[0].node_id == bench.node.node_id
    older = ask(bench.node, asked, 5).coordinators
    assert {each.error_code for each in older} == {E.INVALID_REQUEST}


# --- ranges
# --------------------------------------------------------------------------------------------------


def test_the_example_of_apache_kafka() -> None:
    first = combine((), [StateBatch(10, 20, 0, 1)], 0)
    second = combine(first, [StateBatch(12, 13, 2, 1)], 0)
    third = combine(second, [StateBatch(9, 11, 0, 2)], 9)
    assert third == (StateBatch(9, 11, 0, 2), StateBatch(12, 13, 2, 1), StateBatch(14, 20, 0, 1))


RANGES = st.builds(
    lambda first, size, state, deliveries: StateBatch(first, first + size, state, deliveries),
    st.integers(0, 30),
    st.integers(0, 10),
    st.sampled_from([0, 2, 4]),
    st.integers(1, 3),
)


@given(st.lists(st.tuples(st.lists(RANGES, max_size=5), st.integers(-1, 20)), max_size=6))
def test_ranges_say_what_became_of_each_record(writes: list[tuple[list[StateBatch], int]]) -> None:
    """`combine` agrees with a model that stores one state per record.

    Of two writes for a record the one with more deliveries counts; at equal deliveries, the higher state.
    """
    found: tuple[StateBatch, ...] = ()
    model: dict[int, tuple[int, int]] = {}
    for batches, start in writes:
        found = combine(found, batches, start)
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                rank = batch.deliveries, batch.state
                model[offset] = max(model.get(offset, rank), rank)
        model = {offset: rank for offset, rank in model.items() if offset >= start}
        assert {
            offset: (batch.deliveries, batch.state)
            for batch in found
            for offset in range(batch.first_offset, batch.last_offset + 1)
        } == model
        for before, after in pairwise(found):
            assert before.last_offset < after.first_offset
            is_neighbour = before.last_offset + 1 == after.first_offset
            assert not is_neighbour or before[2:] != after[2:]


# --- records
# -------------------------------------------------------------------------------------------------

NUMBERS = st.integers(-1, 2**31 - 1)
KEYS = st.builds(ShareKey, st.text(max_size=8), st.binary(min_size=16, max_size=16), st.integers(0, 99))
BATCHES = st.lists(RANGES, max_size=3).map(tuple)
CHANGES = st.builds(
    ShareStateChange,
    KEYS,
    st.none()
    | st.builds(SharePartitionState, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, BATCHES)
    | st.builds(Update, NUMBERS, NUMBERS, NUMBERS, NUMBERS, BATCHES),
)


@given(CHANGES)
def test_changes_come_back_from_their_records(change: ShareStateChange) -> None:
    assert read_change(*record_of(change)) == change


@given(st.binary(max_size=40), st.sampled_from([0, 1]))
def test_damaged_records_are_reported(data: bytes, key_type: int) -> None:
    key = key_type.to_bytes(2, "big") + b"\0\1g" + b"T" * 16 + bytes(4)
    with suppress(DecodeError):
        read_change(key, data)
    with suppress(DecodeError):
        read_change(key_type.to_bytes(2, "big") + data, None)


def test_records_of_other_types_are_none() -> None:
    assert read_change(None, b"") is None
    assert read_change(b"\0", b"") is None
    assert read_change(b"\0\7abc", b"") is None


# --- requests
# ------------------------------------------------------------------------------------------------


class States:
    """A test broker with a share coordinator, and the state of one share partition."""

    def __init__(self, **settings: object) -> None:
        self.bench = ShareBench(**settings)
        self.bench.node.share_states.create_topic(self.bench.clock.now_ms())
        self.key = ShareKey("g", self.bench.topic_id(), 0)

    @property
    def service(self) -> Any:
        return self.bench.node.share_states

    def restart(self) -> None:
        self.bench = self.bench.restarted()

    def begin(self, state_epoch: int = 2, start: int = -1) -> int:
        code: int = self.service.initialize(self.key, state_epoch, start).code
        return code

    def write(
        self, *batches: StateBatch, leader: int = 0, state: int = 2, start: int = 0, count: int = -1
    ) -> int:
        code: int = self.service.write(self.key, WrittenShareState(state, leader, start, count, batches)).code
        return code

    @property
    def state(self) -> Any:
        return self.service.summary(self.key).state

    @property
    def log(self) -> Any:
        topic = self.service.topic
        return topic.partition(self.key.text).log


def test_a_state_begins_with_its_initialization() -> None:
    states = States()
    assert states.write() == E.INVALID_REQUEST
    assert states.service.read(states.key, 0).code == E.INVALID_REQUEST
    assert states.state.start_offset == -1
    assert states.begin() == 0
    outcome = states.service.read(states.key, 0)
    assert (outcome.code, outcome.state.start_offset, outcome.state.batches) == (0, -1, ())


def test_epochs_only_grow() -> None:
    states = States()
    states.begin(state_epoch=5)
    assert states.begin(state_epoch=4) == E.FENCED_STATE_EPOCH
    assert states.write(state=4) == E.FENCED_STATE_EPOCH
    assert states.write(state=5) == 0
    assert states.service.read(states.key, 3).code == 0
    for _ in range(2):  # also after a restart
        assert states.service.read(states.key, 2).code == E.FENCED_LEADER_EPOCH
        assert states.write(state=5, leader=2) == E.FENCED_LEADER_EPOCH
        assert states.write(state=5, leader=3) == 0
        states.restart()
    assert states.begin(state_epoch=5, start=7) == 0
    assert (states.state.start_offset, states.state.complete_count) == (7, 0)
    assert states.service.read(states.key, 2).code == E.FENCED_LEADER_EPOCH


def test_a_release_decides_which_epochs_a_request_needs() -> None:
    for as_version, code in (("4.3", 0), ("4.4", E.INVALID_REQUEST)):
        states = States(as_version=as_version)
        states.begin(start=0)
        assert states.write(leader=-1) == states.write(state=-1) == code
        assert states.service.read(states.key, -1).code == code
        assert states.write(StateBatch(0, 5, 2, 1), start=0, count=6) == 0
        assert states.write(StateBatch(8, 9, 2, 1), start=0, count=2) == 0
        assert states.state.complete_count == (6 if code else 2)
        assert states.begin(state_epoch=-1) == (code or E.FENCED_STATE_EPOCH)


def test_what_is_wrong_with_requests() -> None:
    states = States()
    states.begin()
    assert states.write(StateBatch(5, 4, 0, 1)) == E.INVALID_REQUEST
    assert states.write(StateBatch(-1, 4, 0, 1)) == E.INVALID_REQUEST
    other = states.key._replace(partition=9)
    negative = states.key._replace(partition=-1)
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert states.service.initialize(other, 1, 0).code == unknown
    assert states.service.summary(other).code == unknown
    assert states.service.delete(other).code == unknown
    for outcome in (
        states.service.initialize(negative, 1, 0),
        states.service.read(negative, 0),
        states.service.write(negative, WrittenShareState(0, 0, 0, 0, ())),
        states.service.delete(negative),
        states.service.summary(negative),
    ):
        assert outcome.code == E.INVALID_REQUEST


@pytest.mark.parametrize("updates", [1, 500])
def test_a_start_offset_only_grows(updates: int) -> None:
    """A leader may repeat a lower start offset: its earlier write was stored, but answered with an error.

    The higher start offset stays. Only an initialization, which resets offsets, can lower it.
    """
    states = States(share_coordinator_snapshot_update_records_per_snapshot=updates)
    states.begin(start=0)
    assert states.write(StateBatch(0, 9, 2, 1), start=10, count=0) == 0
    for _ in range(2):
        assert states.write(StateBatch(4, 4, 0, 2), StateBatch(12, 13, 2, 1), start=4, count=8) == 0
        found = states.state
        assert (found.start_offset, found.complete_count) == (10, 0)
        assert found.batches == (StateBatch(12, 13, 2, 1),)
        before = states.state
        states.restart()
        assert states.state == before
    assert states.begin(start=3) == 0
    assert states.state.start_offset == 3, "a reset of offsets may go back"


def test_updates_end_in_a_snapshot() -> None:
    """After three updates, as the setting says, the next change writes a snapshot of the whole state."""
    states = States(share_coordinator_snapshot_update_records_per_snapshot=3)
    states.begin()
    for number in range(5):
        assert states.write(StateBatch(number, number, 2, 1), start=-1, count=number + 1) == 0
    assert states.state.snapshot_epoch == 1
    before = states.state
    states.restart()
    assert states.state == before
    assert before.batches == (StateBatch(0, 4, 2, 1),)
    assert before.complete_count == 5


def test_a_deleted_state_is_gone() -> None:
    states = States()
    states.begin()
    assert states.service.delete(states.key).code == 0
    assert states.service.delete(states.key).code == 0
    assert states.log.end_offset == 2
    for _ in range(2):
        assert states.service.read(states.key, 0).code == E.INVALID_REQUEST
        states.restart()


def test_what_cannot_be_stored_has_not_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    states = States()
    states.begin()

    def fail(*what: Any) -> int:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(states.service.topic, "append", fail)
        assert states.write(StateBatch(0, 5, 2, 1)) == E.NOT_COORDINATOR
    assert states.state.batches == ()


def test_a_write_that_no_batch_holds_is_refused() -> None:
    states = States()
    states.begin()
    many = [StateBatch(2 * number, 2 * number, number % 2 * 2, 1) for number in range(60_000)]
    assert states.write(*many) == E.UNKNOWN_SERVER_ERROR
    assert states.state.batches == ()


def test_states_without_memory_for_them_are_refused() -> None:
    states = States(penstock_kept_state_bytes_max=1 << 20)
    states.begin()
    codes = {
        states.write(*(StateBatch(2 * (start + n), 2 * (start + n), 2, 1) for n in range(500)), start=-1)
        for start in range(0, 20_000, 500)
    }
    assert codes == {0, E.COORDINATOR_NOT_AVAILABLE}


def test_another_node_coordinates() -> None:
    bench = ShareBench()
    asked = read.ReadShareGroupStateRequest(
        group_id="g",
        topics=[read.ReadStateData(topic_id=bench.topic_id(), partitions=[read.PartitionData()])],
    )
    response = ask(bench.node, asked, 0)
    assert response.results[0].partitions[0].error_code == E.NOT_COORDINATOR


# --- maintenance
# ---------------------------------------------------------------------------------------------


def maintain(states: States, minutes: float) -> None:
    states.bench.clock.advance(round(minutes * 60_000))
    assert states.service.maintain(states.bench.clock.now_ms()) == []


def test_what_is_not_needed_is_deleted() -> None:
    """New snapshots of idle share partitions allow the broker to delete old records of the state topic.

    The states that are read after a restart are unchanged.
    """
    states = States(share_coordinator_state_topic_num_partitions=1)
    busy, idle = states.key, states.key._replace(partition=1)
    states.begin()
    states.service.initialize(idle, 2, 5)
    for number in range(100):
        assert states.write(StateBatch(number, number, 2, 1), start=-1) == 0
    maintain(states, 4)
    states.begin(state_epoch=3, start=100)
    maintain(states, 1.1)
    assert states.log.start_offset == 102
    kept = [states.service.summary(key).state for key in (busy, idle)]
    states.restart()
    assert [states.service.summary(key).state for key in (busy, idle)] == kept
    assert kept[1].snapshot_epoch == 1
    end = states.log.end_offset
    maintain(states, 60)  # everything is as old: nothing is written
    assert states.log.end_offset == end


def test_states_of_deleted_topics_are_dropped() -> None:
    states = States()
    make_topic(states.bench.node, "u")
    other = ShareKey("g", states.bench.topic_id("u"), 0)
    states.begin()
    states.service.initialize(other, 1, 0)
    cluster = states.bench.node.cluster
    cluster.delete_topics([cluster.topics["u"]], states.bench.clock.now_ms())
    maintain(states, 6)
    remaining = [key for each in states.service.loaded.states for key in each.entries]
    assert remaining == [states.key]
    states.bench.node.forget_share_states(["__share_group_state"])
    assert states.service.loaded.states == []


def test_an_update_without_its_snapshot_is_a_beginning() -> None:
    """An update record whose snapshot record is missing is read as the first state.

    Apache Kafka may have deleted the start of its log between the two records.
    """
    states = States()
    topic = states.service.topic
    update = Update(3, 4, 7, 1, (StateBatch(8, 9, 2, 1),))
    record = record_of(ShareStateChange(states.key, update))
    topic.append(topic.partition_of(states.key.text), [record], 0, "a test")
    assert (states.state.snapshot_epoch, states.state.start_offset) == (3, 7)
    assert updated(states.state, Update(3, -1, -1, -1)).start_offset == 7
