"""Tests of a KIP-848 member as a state machine: its requests, its application's changes, its recovery."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.group.consumer_membership import INTERVAL_MIN_MS, RELEASE_PATIENCE_MS, ConsumerMembership
from penstock.client.group.requests import (
    AssignmentChange,
    ChangeKind,
    FindGroupCoordinator,
    MemberSettings,
    NameTopics,
    WantedTopics,
)
from penstock.client.group.state_machine import Phase
from penstock.errors import (
    DecodeError,
    KafkaError,
    NetworkError,
    ProtocolViolationError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

INTERVAL_MS = 1_000
T, U, T_ANEW = b"t" * 16, b"u" * 16, b"T" * 16
NAMES = {T: "t", U: "u", T_ANEW: "t"}


def places(*numbers: int, topic: str = "t") -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for number in numbers)


class Bench:
    """A group member, and a coordinator that gives the responses a test specifies."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.ids = 0
        self.member = ConsumerMembership(MemberSettings("g", **settings), self._id, lambda tries: 100.0)

    def _id(self) -> str:
        self.ids += 1
        return f"m{self.ids}"

    def poll(self) -> list[AssignmentChange]:
        """Let the application poll and confirm all assignment changes; return the changes."""
        self.member.polled(self.now)
        told = []
        while (change := self.member.next_change()) is not None:
            self.member.confirm(change, self.now)
            told.append(change)
        return told

    def after(self, ms: float) -> None:
        self.now += ms
        self.member.advance(self.now)

    def asked(self, kind: type[Any] = ConsumerGroupHeartbeatRequest) -> tuple[int, Any]:
        """Take the only pending request, which must be of this class; return its ticket and the request."""
        (outgoing,) = self.member.take_requests()
        assert isinstance(outgoing.call, kind)
        return outgoing.ticket, outgoing.call

    def answer(self, outcome: object, kind: type[Any] = ConsumerGroupHeartbeatRequest) -> Any:
        ticket, call = self.asked(kind)
        self.member.answered(ticket, outcome, self.now)
        return call

    def reply(self, epoch: int, assigned: dict[bytes, list[int]] | None = None) -> Any:
        """Answer a heartbeat, and the lookups of topic names that follow; return the heartbeat request."""
        call = self.answer(beaten(epoch, assigned))
        for outgoing in self.member.take_requests():
            assert isinstance(outgoing.call, NameTopics)
            names = {each: NAMES[each] for each in outgoing.call.topic_ids}
            self.member.answered(outgoing.ticket, names, self.now)
        return call

    def refuse(self, code: int, detail: str | None = None) -> Any:
        return self.answer(ConsumerGroupHeartbeatResponse(error_code=code, error_message=detail))

    def subscribe(self, *topics: str) -> None:
        self.member.subscribe(topics or ["t"], self.now)
        self.poll()
        self.answer(7, FindGroupCoordinator)

    def stable(self, *numbers: int) -> None:
        """Join the group, get these partitions of topic ``t``, and acknowledge them."""
        self.subscribe()
        self.reply(2, {T: list(numbers)})
        assert self.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(*numbers))]
        self.reply(2)

    def error(self) -> Any:
        self.poll()
        return self.member.take_error()


def beaten(epoch: int, assigned: dict[bytes, list[int]] | None = None) -> ConsumerGroupHeartbeatResponse:
    topics = (
        None if assigned is None else [TopicPartitions(topic_id=i, partitions=n) for i, n in assigned.items()]
    )
    return ConsumerGroupHeartbeatResponse(
        member_id="m1",
        member_epoch=epoch,
        heartbeat_interval_ms=INTERVAL_MS,
        assignment=None if topics is None else Assignment(topic_partitions=topics),
    )


def owned_in(call: ConsumerGroupHeartbeatRequest) -> dict[bytes, list[int]] | None:
    owned = call.topic_partitions
    return None if owned is None else {each.topic_id: each.partitions for each in owned}


def test_joining_begins_with_the_first_poll_and_says_everything() -> None:
    bench = Bench(
        client_rack="r", remote_assignor="range", group_instance_id="i", max_poll_interval_ms=20_000
    )
    bench.member.subscribe(["t", "a"], 0)
    bench.after(10_000)
    assert bench.member.take_requests() == []
    bench.poll()
    bench.answer(7, FindGroupCoordinator)
    assert bench.member.phase is Phase.JOINING
    assert not bench.member.is_member
    call = bench.reply(2, {T: [0]})
    assert (call.group_id, call.member_id, call.member_epoch) == ("g", "m1", 0)
    assert (call.instance_id, call.rack_id, call.server_assignor) == ("i", "r", "range")
    assert (call.rebalance_timeout_ms, call.subscribed_topic_names) == (20_000, ["a", "t"])
    assert (call.subscribed_topic_regex, owned_in(call)) == ("", {})
    assert bench.member.phase is Phase.STABLE
    assert bench.member.is_member


def test_later_heartbeats_say_what_has_changed() -> None:
    bench = Bench(client_rack="r", remote_assignor="range", group_instance_id="i")
    bench.subscribe()
    bench.reply(2, {T: [0, 1]})
    assert bench.member.take_requests() == []
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(0, 1))]
    call = bench.reply(2)
    assert (call.member_epoch, call.instance_id, owned_in(call)) == (2, "i", {T: [0, 1]})
    assert (call.rack_id, call.server_assignor, call.rebalance_timeout_ms) == (None, None, -1)
    assert (call.subscribed_topic_names, call.subscribed_topic_regex) == (None, None)
    bench.after(INTERVAL_MS)
    assert owned_in(bench.reply(2)) is None


def test_heartbeats_come_as_often_as_the_broker_says() -> None:
    bench = Bench()
    bench.stable(0)
    bench.after(INTERVAL_MS - 1)
    assert bench.member.take_requests() == []
    assert bench.member.wake_at == bench.now + 1
    bench.after(1)
    bench.reply(2)


def test_a_broker_cannot_have_a_member_send_without_a_pause() -> None:
    bench = Bench()
    bench.stable(0)
    bench.after(INTERVAL_MS)
    bench.answer(ConsumerGroupHeartbeatResponse(member_id="m1", member_epoch=2, heartbeat_interval_ms=1))
    assert bench.member.wake_at == bench.now + INTERVAL_MIN_MS


def test_nothing_is_acknowledged_before_it_is_revoked() -> None:
    bench = Bench()
    bench.stable(0, 1, 2)
    bench.after(INTERVAL_MS)
    bench.reply(2, {T: [0]})
    assert bench.member.must_act
    for _ in range(3):  # the callback takes its time
        bench.after(INTERVAL_MS)
        assert owned_in(bench.reply(2)) is None
    assert bench.poll() == [
        AssignmentChange(ChangeKind.REVOKED, places(1, 2)),
        AssignmentChange(ChangeKind.ASSIGNED, ()),
    ]
    assert owned_in(bench.reply(3)) == {T: [0]}
    bench.after(INTERVAL_MS)
    bench.reply(4, {T: [0, 5]})
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(5))]
    assert owned_in(bench.reply(4)) == {T: [0, 5]}
    assert bench.member.kept_since(2) == frozenset(places(0))
    assert bench.member.kept_since(4) == frozenset(places(0, 5))


def test_a_newer_assignment_replaces_one_that_the_application_has_not_got() -> None:
    bench = Bench()
    bench.stable(0)
    bench.after(INTERVAL_MS)
    bench.reply(3, {T: [0, 1]})
    bench.after(INTERVAL_MS)
    bench.reply(3, {T: [0]})
    assert not bench.member.must_act
    assert bench.poll() == []


def test_what_comes_waits_while_a_list_without_it_is_under_way() -> None:
    """A heartbeat in flight lists partition 0 only, so new partitions are not handed out yet.

    Partitions not in the list may go to another member if the assignment shrinks.
    """
    bench = Bench()
    bench.stable(0)
    bench.after(INTERVAL_MS)
    bench.reply(3, {T: [0, 1, 2]})
    bench.after(INTERVAL_MS)
    bench.answer(NetworkError("gone"))
    bench.after(100)
    bench.answer(7, FindGroupCoordinator)
    ticket, call = bench.asked()
    assert owned_in(call) == {T: [0]}
    assert bench.poll() == []
    bench.member.answered(ticket, beaten(4, {T: [0, 1]}), bench.now)
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(1))]


def test_topics_without_names_are_asked_for_until_they_have_some() -> None:
    bench = Bench()
    bench.subscribe("t", "u")
    bench.answer(beaten(2, {T: [0], U: [1]}))
    assert bench.poll() == []
    assert bench.answer({T: "t"}, NameTopics).topic_ids == (T, U)
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(0))]
    assert owned_in(bench.reply(2)) == {T: [0]}
    bench.after(100)
    assert bench.answer(RequestTimeoutError("slow"), NameTopics).topic_ids == (U,)
    bench.after(100)
    bench.answer({U: "u"}, NameTopics)
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(1, topic="u"))]
    assert owned_in(bench.reply(2)) == {T: [0], U: [1]}


def test_partitions_of_a_topic_created_anew_come_when_the_former_ones_are_revoked() -> None:
    bench = Bench()
    bench.stable(0, 1)
    bench.after(INTERVAL_MS)
    bench.reply(3, {T_ANEW: [0, 1]})
    assert bench.poll() == [
        AssignmentChange(ChangeKind.REVOKED, places(0, 1)),
        AssignmentChange(ChangeKind.ASSIGNED, places(0, 1)),
    ]
    assert owned_in(bench.reply(3)) == {T_ANEW: [0, 1]}


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_its_partitions_and_joins_again(code: int) -> None:
    bench = Bench()
    bench.stable(0, 1)
    bench.after(INTERVAL_MS)
    bench.refuse(code)
    bench.after(5_000)
    assert bench.member.take_requests() == []
    assert not bench.member.is_member
    assert bench.poll() == [AssignmentChange(ChangeKind.LOST, places(0, 1))]
    call = bench.reply(5, {T: [0]})
    assert (call.member_epoch, call.member_id, owned_in(call)) == (0, "m1", {})
    assert call.subscribed_topic_names == ["t"]
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(0))]


def test_a_member_that_may_not_join_again_takes_another_id() -> None:
    """Brokers before 2026 never let a fenced member id join again (KAFKA-19233)."""
    bench = Bench()
    bench.subscribe()
    assert bench.refuse(ErrorCode.FENCED_MEMBER_EPOCH).member_id == "m1"
    bench.after(100)
    assert bench.asked()[1].member_id == "m2"


def test_a_group_that_is_gone_is_made_again() -> None:
    bench = Bench()
    bench.stable(0)
    bench.after(INTERVAL_MS)
    bench.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
    assert bench.poll() == [AssignmentChange(ChangeKind.LOST, places(0))]
    bench.after(100)
    assert bench.asked()[1].member_epoch == 0


REFUSALS = [
    (ErrorCode.UNSUPPORTED_ASSIGNOR, "group.consumer.assignors"),
    (ErrorCode.INVALID_REGULAR_EXPRESSION, "RE2"),
    (ErrorCode.GROUP_MAX_SIZE_REACHED, "group.consumer.max.size"),
    (ErrorCode.GROUP_ID_NOT_FOUND, "classic"),
    (ErrorCode.UNSUPPORTED_VERSION, "group.version"),
    (ErrorCode.INVALID_REQUEST, "why"),
    (ErrorCode.GROUP_AUTHORIZATION_FAILED, "ACL"),
    (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "ACL"),
]


@pytest.mark.parametrize(("code", "advice"), REFUSALS)
def test_what_the_member_cannot_mend_is_the_application_s(code: int, advice: str) -> None:
    bench = Bench()
    bench.subscribe()
    bench.refuse(code, "because of this (why)")
    bench.after(60_000)
    assert bench.member.take_requests() == []
    error = bench.member.take_error()
    assert isinstance(error, KafkaError)
    assert error.code == code
    assert advice in str(error)
    assert "the broker says: because of this" in str(error)
    assert bench.member.take_error() is None
    bench.poll()
    assert bench.asked()[1].member_epoch == 0


def test_a_right_that_is_taken_away_is_an_error_and_the_member_stays() -> None:
    bench = Bench()
    bench.stable(0)
    bench.after(INTERVAL_MS)
    bench.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert bench.error().code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert bench.member.owned == set(places(0))
    bench.after(INTERVAL_MS)
    call = bench.reply(2, {T: [0]})
    assert (call.member_epoch, call.subscribed_topic_names) == (2, ["t"])
    assert bench.error() is None


def test_a_static_member_waits_for_its_former_session_to_end() -> None:
    bench = Bench(group_instance_id="i")
    bench.subscribe()
    for _ in range(10):
        bench.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
        bench.after(2_000)
    bench.reply(2, {T: [0]})
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(0))]


def test_a_static_member_gives_up_where_another_one_lives() -> None:
    bench = Bench(group_instance_id="i")
    bench.subscribe()
    bench.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
    bench.after(RELEASE_PATIENCE_MS)
    bench.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
    error = bench.member.take_error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert "'i'" in str(error)


def test_a_replaced_static_member_is_out_for_good() -> None:
    bench = Bench(group_instance_id="i")
    bench.stable(0)
    bench.after(INTERVAL_MS)
    bench.refuse(ErrorCode.FENCED_INSTANCE_ID)
    assert bench.poll() == [AssignmentChange(ChangeKind.LOST, places(0))]
    assert bench.member.phase is Phase.FENCED
    for _ in range(2):
        assert bench.error().code == ErrorCode.FENCED_INSTANCE_ID
    assert bench.member.lost_by == ErrorCode.FENCED_INSTANCE_ID
    bench.member.leave(bench.now)
    assert (bench.member.take_requests(), bench.member.phase) == ([], Phase.OUT)


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_an_application_that_does_not_poll_leaves(instance: str | None, epoch: int) -> None:
    bench = Bench(max_poll_interval_ms=5_000, group_instance_id=instance)
    bench.stable(0)
    bench.member.poll_begins(bench.now)
    bench.after(20_000)
    bench.reply(2)
    bench.member.poll_ends(bench.now)
    bench.after(5_000)
    call = bench.answer(beaten(epoch))
    assert (call.member_epoch, call.member_id, owned_in(call)) == (epoch, "m1", None)
    bench.after(60_000)
    assert bench.member.take_requests() == []
    assert bench.poll() == [AssignmentChange(ChangeKind.LOST, places(0))]
    assert bench.asked()[1].member_epoch == 0


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_that_is_closed_revokes_and_says_farewell(instance: str | None, epoch: int) -> None:
    bench = Bench(group_instance_id=instance)
    bench.stable(0, 1)
    bench.member.leave(bench.now)
    bench.after(INTERVAL_MS)
    bench.reply(2, {T: [0]})  # what is assigned now does not matter
    assert bench.poll() == [AssignmentChange(ChangeKind.REVOKED, places(0, 1))]
    call = bench.asked()[1]
    assert (call.member_epoch, call.instance_id, call.group_id) == (epoch, instance, "g")
    assert bench.member.phase is Phase.OUT


def test_a_member_that_is_closed_while_it_joins_says_farewell() -> None:
    bench = Bench()
    bench.subscribe()
    ticket, _ = bench.asked()
    bench.member.leave(bench.now)
    assert bench.asked()[1].member_epoch == -1
    bench.member.answered(ticket, beaten(2, {T: [0]}), bench.now)
    assert (bench.member.phase, bench.poll()) == (Phase.OUT, [])


def test_a_member_that_has_not_joined_goes_without_a_word() -> None:
    bench = Bench()
    bench.member.subscribe(["t"], 0)
    bench.member.leave(0)
    assert (bench.member.take_requests(), bench.member.phase) == ([], Phase.OUT)


@pytest.mark.parametrize("outcome", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, None])
def test_a_coordinator_that_moves_is_found_and_told_everything(outcome: int | None) -> None:
    bench = Bench()
    bench.stable(0)
    bench.after(INTERVAL_MS)
    if outcome is None:
        bench.answer(NetworkError("gone"))
    else:
        bench.refuse(outcome)
    bench.after(100)
    bench.answer(NetworkError("no broker"), FindGroupCoordinator)
    bench.after(100)
    bench.answer(8, FindGroupCoordinator)
    (outgoing,) = bench.member.take_requests()
    assert outgoing.node == 8
    assert isinstance(outgoing.call, ConsumerGroupHeartbeatRequest)
    assert (outgoing.call.member_epoch, owned_in(outgoing.call)) == (2, {T: [0]})
    assert outgoing.call.subscribed_topic_names == ["t"]
    assert bench.member.owned == set(places(0))


def test_a_coordinator_that_loads_is_asked_again() -> None:
    bench = Bench()
    bench.subscribe()
    bench.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert bench.member.take_requests() == []
    bench.after(100)
    bench.reply(2, {})
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, ())]


def test_a_group_that_does_not_let_the_member_in_is_an_error_in_the_end() -> None:
    bench = Bench(max_poll_interval_ms=25_000)
    bench.subscribe()
    bench.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.member.poll_begins(bench.now)
    bench.after(30_000)
    bench.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    error = bench.member.take_error()
    assert isinstance(error, RequestTimeoutError)
    assert "answered 2 times" in str(error)


def test_another_subscription_is_said_at_once() -> None:
    bench = Bench()
    bench.stable(0)
    bench.member.subscribe(["u"], bench.now)
    call = bench.reply(3, {})
    assert (call.subscribed_topic_names, call.subscribed_topic_regex, owned_in(call)) == (["u"], "", None)
    assert bench.poll() == [
        AssignmentChange(ChangeKind.REVOKED, places(0)),
        AssignmentChange(ChangeKind.ASSIGNED, ()),
    ]
    bench.reply(3)
    bench.member.subscribe(["u"], bench.now)
    assert bench.member.take_requests() == []


def test_another_subscription_while_joining_is_said_afterwards() -> None:
    bench = Bench()
    bench.subscribe()
    ticket, _ = bench.asked()
    bench.member.subscribe(["^u.*"], bench.now)
    bench.member.answered(ticket, beaten(2, {}), bench.now)
    call = bench.asked()[1]
    assert (call.subscribed_topic_names, call.subscribed_topic_regex) == ([], "^u.*")


def test_patterns_are_the_broker_s() -> None:
    assert WantedTopics.of(["^t.*"]) == WantedTopics((), "^t.*")
    assert WantedTopics.of(["b", "^t.*", "a", "^u"]) == WantedTopics(("a", "b"), "(^t.*)|(^u)")


def test_a_stale_commit_has_the_epoch_asked_for() -> None:
    bench = Bench()
    bench.stable(0)
    bench.member.refused(ErrorCode.STALE_MEMBER_EPOCH, 1, bench.now)
    assert bench.member.take_requests() == []  # of an epoch that is not the member's any more
    bench.member.refused(ErrorCode.STALE_MEMBER_EPOCH, 2, bench.now)
    assert bench.member.awaits_generation
    assert owned_in(bench.reply(3, {T: [0]})) == {T: [0]}
    assert (bench.member.generation, bench.member.awaits_generation) == (3, False)
    bench.member.refused(ErrorCode.UNKNOWN_MEMBER_ID, 3, bench.now)
    assert bench.poll() == [AssignmentChange(ChangeKind.LOST, places(0))]


def test_answers_that_make_no_sense_are_errors() -> None:
    bench = Bench()
    bench.subscribe()
    bench.answer(beaten(0, {}))
    assert isinstance(bench.member.take_error(), ProtocolViolationError)
    bench.poll()
    bench.answer("what?")
    assert isinstance(bench.member.take_error(), DecodeError)
    bench.poll()
    bench.answer(7, FindGroupCoordinator)
    bench.answer(UnsupportedVersionError("too old"))
    assert isinstance(bench.member.take_error(), UnsupportedVersionError)
    bench.poll()
    bench.answer(error_for(ErrorCode.GROUP_AUTHORIZATION_FAILED, "g"), FindGroupCoordinator)
    error = bench.member.take_error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_late_answers_do_not_matter() -> None:
    bench = Bench(max_poll_interval_ms=5_000)
    bench.stable(0)
    bench.after(INTERVAL_MS)
    ticket, _ = bench.asked()
    bench.after(5_000)
    bench.asked()
    bench.member.answered(ticket, beaten(9, {T: [4]}), bench.now)
    assert bench.poll() == [AssignmentChange(ChangeKind.LOST, places(0))]
    assert not bench.member.is_member
