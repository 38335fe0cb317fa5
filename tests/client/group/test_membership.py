"""Tests of a classic group member as a state machine, without sockets and with a manual clock.

They cover its requests, its application's changes and its recovery.
"""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from penstock.client.assignors import Assignor, assignor_named
from penstock.client.assignors.member_metadata import decode_subscription, encode_assignment
from penstock.client.group.membership import Membership, Phase
from penstock.client.group.requests import (
    AssignmentChange,
    ChangeKind,
    CountPartitions,
    FindGroupCoordinator,
    MemberSettings,
    Outgoing,
)
from penstock.errors import KafkaError, NetworkError, UnsupportedVersionError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse
from penstock.protocol.messages.sync_group_request import SyncGroupRequest
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

T = TypeVar("T")


def places(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


class Bench:
    """A group member, and a coordinator that gives the responses a test specifies."""

    def __init__(self, *assignors: str | Assignor, **settings: Any) -> None:
        self.now = 0.0
        named = [assignor_named(one) if isinstance(one, str) else one for one in assignors or ("range",)]
        self.member = Membership(MemberSettings("g", **settings), named, lambda tries: 100.0)
        self.name = named[0].name

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

    def taken(self) -> list[Outgoing]:
        return self.member.take_requests()

    def asked(self, kind: type[T]) -> tuple[int, T]:
        """Take the only pending request, which must be of this class; return its ticket and the request."""
        (outgoing,) = self.taken()
        assert isinstance(outgoing.call, kind)
        return outgoing.ticket, outgoing.call

    def answer(self, kind: type[T], outcome: object) -> T:
        ticket, call = self.asked(kind)
        self.member.answered(ticket, outcome, self.now)
        return call

    def subscribe(self) -> None:
        self.member.subscribe(["t"], self.now)
        self.poll()
        self.answer(FindGroupCoordinator, 7)

    def join(self, generation: int = 1, leader: str = "other") -> JoinGroupRequest:
        return self.answer(
            JoinGroupRequest,
            JoinGroupResponse(
                member_id="me", generation_id=generation, leader=leader, protocol_name=self.name
            ),
        )

    def sync(self, *numbers: int) -> SyncGroupRequest:
        return self.answer(
            SyncGroupRequest, SyncGroupResponse(assignment=encode_assignment(places(*numbers)))
        )

    def beat(self, code: int = 0) -> HeartbeatRequest:
        self.after(3_000)
        return self.answer(HeartbeatRequest, HeartbeatResponse(error_code=code))

    def stable(self, *numbers: int) -> None:
        self.subscribe()
        self.join()
        self.sync(*numbers)
        self.poll()


def test_joining_begins_with_the_first_poll() -> None:
    bench = Bench()
    bench.member.subscribe(["t"], 0)
    bench.after(10_000)
    assert bench.taken() == []
    bench.poll()
    bench.asked(FindGroupCoordinator)


def test_how_long_the_others_may_keep_a_member_waiting() -> None:
    """The client waits for a JoinGroup response for `max.poll.interval.ms` and 5 s more.

    JoinGroup v0 has only a session timeout, so the client waits less and notices a lost request earlier.
    """
    bench = Bench()
    bench.subscribe()
    (outgoing,) = bench.taken()
    assert outgoing.timeout_ms == 305_000
    for session_ms, patience_ms in (6_000, 35_000), (90_000, 95_000):
        bench = Bench(session_timeout_ms=session_ms)
        bench.member.timeouts.has_rebalance_timeout = False
        bench.subscribe()
        (outgoing,) = bench.taken()
        assert outgoing.timeout_ms == patience_ms
        bench.member.outbox.append(outgoing)
        bench.join()
        (outgoing,) = bench.taken()
        assert (type(outgoing.call), outgoing.timeout_ms) == (SyncGroupRequest, patience_ms)


def test_from_the_first_poll_to_the_farewell() -> None:
    bench = Bench()
    bench.subscribe()
    required = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me")
    assert bench.answer(JoinGroupRequest, required).member_id == ""
    assert bench.join().member_id == "me"
    assert bench.sync(0, 1).assignments == []
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(0, 1))]
    assert bench.beat().generation_id == 1
    bench.member.leave(bench.now)
    assert bench.taken() == []
    assert bench.poll() == [AssignmentChange(ChangeKind.REVOKED, places(0, 1))]
    farewell = bench.answer(LeaveGroupRequest, LeaveGroupResponse())
    assert [member.member_id for member in farewell.members] == ["me"]
    assert bench.member.phase is Phase.OUT


def test_a_leader_counts_partitions_and_assigns() -> None:
    bench = Bench()
    bench.subscribe()
    ticket, request = bench.asked(JoinGroupRequest)
    members = [
        JoinGroupResponseMember(member_id=name, metadata=request.protocols[0].metadata)
        for name in ("me", "you")
    ]
    bench.member.answered(
        ticket,
        JoinGroupResponse(
            member_id="me", generation_id=1, leader="me", protocol_name="range", members=members
        ),
        0,
    )
    assert bench.answer(CountPartitions, {"t": 4}).topics == ("t",)
    _, sync = bench.asked(SyncGroupRequest)
    assert {a.member_id: a.assignment for a in sync.assignments} == {
        "me": encode_assignment(places(0, 1)),
        "you": encode_assignment(places(2, 3)),
    }


@pytest.mark.parametrize(
    "lost",
    [HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR), NetworkError("gone")],
    ids=["moved", "gone"],
)
def test_a_leader_whose_coordinator_is_lost_while_it_counts_joins_the_next_one(lost: object) -> None:
    bench = Bench()
    bench.subscribe()
    bench.join(leader="me")
    ticket, _ = bench.asked(CountPartitions)
    bench.after(3000)
    bench.answer(HeartbeatRequest, lost)
    bench.member.answered(ticket, {"t": 2}, bench.now)
    assert bench.member.phase is Phase.UNJOINED
    bench.after(1000)
    sent = bench.taken()
    assert [type(outgoing.call) for outgoing in sent] == [FindGroupCoordinator]
    bench.member.answered(sent[0].ticket, 8, bench.now)
    bench.after(1000)
    (outgoing,) = bench.taken()
    assert isinstance(outgoing.call, JoinGroupRequest)
    assert outgoing.node == 8


def test_no_farewell_without_a_coordinator() -> None:
    bench = Bench()
    bench.subscribe()
    ticket, _ = bench.asked(JoinGroupRequest)
    bench.member.coordinator_lost(7, bench.now)
    bench.member.leave(bench.now)
    bench.taken()
    refusal = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m")
    bench.member.answered(ticket, refusal, bench.now)
    assert bench.taken() == []


def test_an_eager_member_gives_up_everything_before_it_rejoins() -> None:
    bench = Bench("range")
    bench.stable(0, 1)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.taken() == []
    assert bench.poll() == [AssignmentChange(ChangeKind.REVOKED, places(0, 1))]
    assert decode_subscription(bench.join(2).protocols[0].metadata).owned == ()
    bench.sync(1)
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(1))]


def test_a_cooperative_member_rejoins_at_once_and_keeps_what_stays() -> None:
    bench = Bench("cooperative-sticky")
    bench.stable(0, 1, 2)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    said = decode_subscription(bench.join(2).protocols[0].metadata)
    assert (said.owned, said.generation) == (places(0, 1, 2), 1)
    bench.sync(0, 1)
    assert bench.poll() == [
        AssignmentChange(ChangeKind.REVOKED, places(2)),
        AssignmentChange(ChangeKind.ASSIGNED, ()),
    ]
    said = decode_subscription(bench.join(3).protocols[0].metadata)
    assert (said.owned, said.generation) == (places(0, 1), 2)


def test_all_assignors_must_be_cooperative_for_partitions_to_be_kept() -> None:
    bench = Bench("cooperative-sticky", "range")
    bench.stable(0)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.poll() == [AssignmentChange(ChangeKind.REVOKED, places(0))]


@pytest.mark.parametrize(
    ("code", "member_id"), [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "me")]
)
def test_who_has_been_thrown_out_loses_its_partitions_and_joins_again(code: int, member_id: str) -> None:
    bench = Bench()
    bench.stable(0, 1)
    bench.beat(code)
    assert not bench.member.is_member
    assert bench.member.lost_by == code
    assert bench.taken() == []
    assert bench.poll() == [AssignmentChange(ChangeKind.LOST, places(0, 1))]
    assert bench.join(5).member_id == member_id


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moves_is_found_again(code: int) -> None:
    bench = Bench()
    bench.stable(0)
    bench.beat(code)
    bench.after(100)
    bench.answer(FindGroupCoordinator, 8)
    bench.after(3_000)
    (outgoing,) = bench.taken()
    assert outgoing.node == 8
    assert isinstance(outgoing.call, HeartbeatRequest)
    assert bench.member.owned == frozenset(places(0))


@pytest.mark.parametrize("lost", [JoinGroupRequest, SyncGroupRequest])
def test_answers_that_never_come_are_asked_for_again(lost: type) -> None:
    bench = Bench()
    bench.subscribe()
    if lost is SyncGroupRequest:
        bench.join()
    ticket, _ = bench.asked(lost)
    bench.member.answered(ticket, NetworkError("gone"), bench.now)
    bench.after(100)
    bench.answer(FindGroupCoordinator, 7)
    bench.join(2)
    bench.member.answered(ticket, SyncGroupResponse(assignment=encode_assignment(places(9))), bench.now)
    bench.sync(3)
    assert bench.poll() == [AssignmentChange(ChangeKind.ASSIGNED, places(3))]


def test_a_coordinator_that_loads_is_given_time() -> None:
    bench = Bench()
    bench.subscribe()
    loading = JoinGroupResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.answer(JoinGroupRequest, loading)
    assert bench.taken() == []
    assert bench.member.wake_at == 100
    bench.after(100)
    bench.join()


def test_a_rebalance_that_overtakes_the_sync() -> None:
    bench = Bench()
    bench.subscribe()
    bench.join()
    bench.answer(SyncGroupRequest, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert bench.join(2).member_id == "me"


def test_who_does_not_poll_leaves_until_it_does() -> None:
    bench = Bench(max_poll_interval_ms=4_000)
    bench.stable(0)
    bench.beat()
    bench.after(1_000)
    _, farewell = bench.asked(LeaveGroupRequest)
    assert "max.poll.interval.ms" in (farewell.members[0].reason or "")
    bench.after(60_000)
    assert bench.taken() == []
    assert bench.poll() == [AssignmentChange(ChangeKind.LOST, places(0))]
    assert bench.join(4).member_id == ""


def test_who_waits_for_records_is_never_late() -> None:
    bench = Bench(max_poll_interval_ms=4_000)
    bench.stable(0)
    bench.member.poll_begins(bench.now)
    for _ in range(5):
        bench.beat()
    bench.member.poll_ends(bench.now)
    bench.after(2_999)
    assert bench.taken() == []


def test_a_static_member_does_not_say_farewell() -> None:
    bench = Bench(group_instance_id="i")
    bench.stable(0)
    bench.member.leave(bench.now)
    bench.poll()
    assert bench.taken() == []
    assert bench.member.phase is Phase.OUT


def test_a_fenced_member_stays_out() -> None:
    bench = Bench(group_instance_id="i")
    bench.stable(0)
    bench.beat(ErrorCode.FENCED_INSTANCE_ID)
    assert [change.kind for change in bench.poll()] == [ChangeKind.LOST]
    for _ in range(2):
        error = bench.member.take_error()
        assert isinstance(error, KafkaError)
        assert "give every consumer one of its own" in str(error)
        bench.poll()
    assert bench.taken() == []


def test_a_refusal_is_told_once_and_the_next_poll_tries_again() -> None:
    bench = Bench()
    bench.subscribe()
    bench.answer(JoinGroupRequest, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
    bench.after(60_000)
    assert bench.taken() == []
    assert "group.max.size" in str(bench.member.take_error())
    bench.poll()
    bench.join()


def test_an_older_broker_gets_a_session_timeout_that_it_allows() -> None:
    bench = Bench(may_lower_session_timeout=True)
    bench.subscribe()
    refusal = JoinGroupResponse(error_code=ErrorCode.INVALID_SESSION_TIMEOUT)
    assert bench.answer(JoinGroupRequest, refusal).session_timeout_ms == 45_000
    assert bench.answer(JoinGroupRequest, refusal).session_timeout_ms == 30_000
    assert "session.timeout.ms" in str(bench.member.take_error())


class Broken(Assignor):
    name = "broken"

    def assign(self, partition_counts: object, members: object) -> dict[str, list[TopicPartition]]:
        raise ZeroDivisionError


def test_an_assignor_that_fails_leaves_the_group_and_says_so() -> None:
    bench = Bench(Broken())
    bench.subscribe()
    ticket, request = bench.asked(JoinGroupRequest)
    member = JoinGroupResponseMember(member_id="me", metadata=request.protocols[0].metadata)
    answer = JoinGroupResponse(
        member_id="me", generation_id=1, leader="me", protocol_name="broken", members=[member]
    )
    bench.member.answered(ticket, answer, 0)
    bench.answer(CountPartitions, {"t": 1})
    bench.asked(LeaveGroupRequest)
    assert "assignor 'broken' failed" in str(bench.member.take_error())


def test_a_leader_calls_for_a_rebalance_when_partitions_are_added() -> None:
    bench = Bench("cooperative-sticky")
    bench.subscribe()
    ticket, request = bench.asked(JoinGroupRequest)
    member = JoinGroupResponseMember(member_id="me", metadata=request.protocols[0].metadata)
    answer = JoinGroupResponse(
        member_id="me", generation_id=1, leader="me", protocol_name=bench.name, members=[member]
    )
    bench.member.answered(ticket, answer, 0)
    bench.answer(CountPartitions, {"t": 1})
    bench.sync(0)
    bench.poll()
    bench.member.counted({"t": 1}, bench.now)
    assert bench.taken() == []
    bench.member.counted({"t": 2}, bench.now)
    bench.asked(JoinGroupRequest)


def test_who_leaves_before_it_has_joined_turns_the_id_down() -> None:
    bench = Bench()
    bench.subscribe()
    ticket, _ = bench.asked(JoinGroupRequest)
    bench.member.leave(bench.now)
    answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="late")
    bench.member.answered(ticket, answer, bench.now)
    assert bench.asked(LeaveGroupRequest)[1].members[0].member_id == "late"


def test_a_new_subscription_gives_up_what_is_no_longer_wanted() -> None:
    bench = Bench("cooperative-sticky")
    bench.stable(0)
    bench.member.subscribe(["u"], bench.now)
    assert bench.taken() == []
    assert bench.poll() == [AssignmentChange(ChangeKind.REVOKED, places(0))]
    bench.join(2)


def test_a_commit_that_is_refused_says_something_about_the_member() -> None:
    bench = Bench()
    bench.stable(0)
    bench.member.refused(ErrorCode.UNKNOWN_MEMBER_ID, 0, bench.now)  # of an earlier generation
    assert bench.member.is_member
    bench.member.refused(ErrorCode.UNKNOWN_MEMBER_ID, 1, bench.now)
    assert not bench.member.is_member


@pytest.mark.parametrize("error", [error_for(30, "g"), UnsupportedVersionError("too old")])
def test_what_no_repetition_mends_is_the_applications_business(error: Exception) -> None:
    bench = Bench()
    bench.member.subscribe(["t"], 0)
    bench.poll()
    bench.answer(FindGroupCoordinator, error)
    assert bench.member.take_error() is error
