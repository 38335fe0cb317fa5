"""Tests of `StateTopic`: an internal topic in which a coordinator stores its state.

The topic is created when needed, read once for each new leader, and released with the leadership.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from broker.bench_node import make_node
from penstock.broker.coordination.due_timers import DueTimers
from penstock.broker.coordination.loaded import LoadedPartitions
from penstock.broker.coordination.losses import Losses
from penstock.broker.coordination.member_timers import REVOCATION, SESSION, MemberTimers
from penstock.broker.coordination.state_topic import StateTopic
from penstock.broker.coordination.storing import store_records
from penstock.broker.coordination.timers import Timers
from penstock.broker.groups.share_state.records import LAYOUT as SHARE_STATES
from penstock.broker.groups.topic import LAYOUT as OFFSETS
from penstock.broker.transactions.topic import LAYOUT as TRANSACTIONS
from penstock.errors import DecodeError, KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.error_codes import error_for

KEY = "a key"


class Bench:
    """A broker with one `StateTopic`, for tests; it collects the keys and values that are read."""

    def __init__(self, layout: Any = OFFSETS, *, is_of_one_epoch: bool = False) -> None:
        self.node = make_node()
        self.wrote: list[int] = []
        self.topic = StateTopic(
            layout, self.node.cluster, self.node.store, lambda partition, size: self.wrote.append(size)
        )
        self.reads = 0
        self.loaded = LoadedPartitions(self.topic, self.read, "keys", is_of_one_epoch=is_of_one_epoch)

    def read(self, index: int, losses: Losses) -> dict[bytes, bytes]:
        self.reads += 1
        return {key: value for (key, value), _ in self.topic.replay(index, losses, pair)}

    def append(self, value: bytes, key: bytes = b"k") -> int:
        self.topic.create(0)
        return self.topic.append(self.index, [(key, value)], 0, "a test")

    @property
    def index(self) -> int:
        return self.topic.partition_of(KEY)


def pair(key: bytes | None, value: bytes | None) -> tuple[bytes, bytes] | None:
    if value == b"bad":
        raise DecodeError("a bad value")
    if value == b"worse":
        raise ZeroDivisionError
    return None if key is None or value is None else (key, value)


@pytest.mark.parametrize("layout", [OFFSETS, TRANSACTIONS, SHARE_STATES], ids=lambda layout: layout.name)
def test_a_topic_is_made_once_with_the_settings_of_its_layout(layout: Any) -> None:
    bench = Bench(layout)
    assert (bench.topic.exists, bench.topic.partition_count) == (False, 50)
    with pytest.raises(KafkaError) as refusal:
        bench.loaded.open(0)
    assert refusal.value.code == E.NOT_COORDINATOR
    bench.topic.create(0)
    bench.topic.create(0)
    topic = bench.node.cluster.topics[layout.name]
    assert len(topic.partitions) == 50
    assert topic.config.compacted is (layout.configs["cleanup.policy"] == "compact")
    assert bench.topic.is_begun(3) is False


def test_a_partition_is_read_once() -> None:
    bench = Bench()
    bench.append(b"1")
    bench.append(b"2")
    assert bench.loaded.open(bench.index) == {b"k": b"2"}
    assert bench.loaded.open(bench.index) is bench.loaded.open(bench.index)
    assert (bench.reads, len(bench.wrote)) == (1, 2)
    assert list(bench.loaded) == [(bench.index, {b"k": b"2"})]


def test_what_is_damaged_is_passed_over_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    for number, value in enumerate((b"1", b"bad", b"worse", b"4")):
        bench.append(value, b"%d" % number)
    with caplog.at_level(logging.ERROR):
        assert bench.loaded.open(bench.index) == {b"0": b"1", b"3": b"4"}
    [line] = [record.getMessage() for record in caplog.records]
    assert (
        "is damaged; passed over: the record at offset 1: a bad value; the record at offset 2: Zero" in line
    )


def test_a_partition_that_cannot_be_read_is_another_nodes_and_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    bench.append(b"1")

    def fail(*what: Any) -> Any:
        raise StorageError("the disk is gone")

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(bench.topic, "replay", fail)
        for _ in range(2):
            with pytest.raises(KafkaError) as refusal:
                bench.loaded.open(bench.index)
            assert refusal.value.code == E.NOT_COORDINATOR
    assert len(caplog.records) == 1
    assert bench.loaded.open(bench.index) == {b"k": b"1"}


@pytest.mark.parametrize(
    ("leads", "epoch", "is_of_one_epoch", "is_dropped"),
    [
        (True, 0, False, False),
        (True, 1, False, False),  # nobody else can have led it
        (True, 2, False, True),  # another may have led it in epoch 1
        (False, 1, False, True),
        (True, 0, True, False),
        (True, 1, True, True),
    ],
)
def test_a_partition_is_let_go_of_when_another_may_have_led_it(
    leads: bool, epoch: int, is_of_one_epoch: bool, is_dropped: bool
) -> None:
    bench = Bench(is_of_one_epoch=is_of_one_epoch)
    bench.append(b"1")
    bench.loaded.open(bench.index)
    moved = SimpleNamespace(index=bench.index, leads=leads, leader_epoch=epoch)
    assert bench.loaded.follow(moved) is is_dropped
    assert (bench.index in bench.loaded) is not is_dropped
    assert bench.loaded.follow(SimpleNamespace(index=7, leads=True, leader_epoch=9)) is False, "never read"


def test_epochs_are_followed_one_after_the_other() -> None:
    bench = Bench()
    bench.append(b"1")
    bench.loaded.open(bench.index)
    for epoch in (1, 2, 3):
        assert not bench.loaded.follow(SimpleNamespace(index=bench.index, leads=True, leader_epoch=epoch))


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (StorageError("the disk is full"), E.NOT_COORDINATOR),
        (error_for(E.MESSAGE_TOO_LARGE, "large"), E.UNKNOWN_SERVER_ERROR),
        (error_for(E.INVALID_REPLICATION_FACTOR, "three"), E.INVALID_REPLICATION_FACTOR),
    ],
    ids=["storage", "too large", "other"],
)
def test_what_is_not_stored_is_answered_as_apache_kafka_answers_it(raised: Exception, code: E) -> None:
    def fail() -> int:
        raise raised

    with pytest.raises(KafkaError) as refusal:
        store_records(fail, "a test")
    assert refusal.value.code == code


# --- timers of members -----------------------------------------------------------------------------------


class Members:
    def __init__(self) -> None:
        self.timers = Timers()
        self.due = DueTimers(self.timers)
        self.members = MemberTimers(self.due, lambda group, member: (group, member))

    def run(self, now: float) -> list[Any]:
        self.timers.run(now)
        return [plan for due in self.due.take() if (plan := due.plan(now, 0)) is not None]


def test_a_member_is_fenced_when_a_timer_of_its_own_is_due() -> None:
    bench = Members()
    bench.members.set("g", "a", SESSION, 5)
    bench.members.set("g", "b", SESSION, 9)
    bench.members.set("g", "b", SESSION, 12)
    assert bench.run(5) == [("g", "a")]
    assert bench.run(10) == []
    bench.members.end("g", "b")
    assert bench.run(99) == []


def test_a_heartbeat_between_the_timer_and_its_plan_counts() -> None:
    bench = Members()
    bench.members.set("g", "a", SESSION, 5)
    bench.timers.run(5)
    [due] = bench.due.take()
    bench.members.set("g", "a", SESSION, 10)
    assert due.plan(5, 0) is None
    assert bench.run(10) == [("g", "a")]


def test_a_timer_of_the_same_epoch_goes_on_and_of_another_begins_anew() -> None:
    bench = Members()
    bench.members.set("g", "a", REVOCATION, 5, since=1)
    bench.members.set("g", "a", REVOCATION, 50, since=1)
    assert bench.members.is_set("g", "a", REVOCATION)
    assert bench.run(5) == [("g", "a")]
    bench.members.set("g", "a", REVOCATION, 60, since=2)
    assert bench.run(50) == []
    bench.members.stop("g", "a", REVOCATION)
    assert not bench.members.is_set("g", "a", REVOCATION)
    assert bench.run(99) == []
