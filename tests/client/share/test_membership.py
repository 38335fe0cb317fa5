"""Tests of a share group member as a state machine: its requests, its assignment, its recovery."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.group.requests import FindGroupCoordinator, MemberSettings, NameTopics, is_farewell
from penstock.client.group.state_machine import Phase
from penstock.client.share.membership import ShareMembership
from penstock.errors import DecodeError, KafkaError, NetworkError, ProtocolViolationError, RequestTimeoutError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

INTERVAL_MS = 1_000
T, U = b"t" * 16, b"u" * 16
NAMES = {T: "t", U: "u"}


class Bench:
    """A group member, and a coordinator that gives the responses a test specifies."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.member = ShareMembership(MemberSettings("g", **settings), "m", lambda tries: 100.0)

    def after(self, ms: float) -> None:
        self.now += ms
        self.member.advance(self.now)

    def answer(self, outcome: object, kind: type[Any] = ShareGroupHeartbeatRequest) -> Any:
        """Answer the only pending request, which must be of this class; return the request."""
        (outgoing,) = self.member.take_requests()
        assert isinstance(outgoing.call, kind)
        self.member.answered(outgoing.ticket, outcome, self.now)
        return outgoing.call

    def reply(self, epoch: int, assigned: dict[bytes, list[int]] | None = None) -> Any:
        """Answer a heartbeat, and the lookups of topic names that follow; return the heartbeat request."""
        topics = None
        if assigned is not None:
            topics = [TopicPartitions(topic_id=i, partitions=n) for i, n in assigned.items()]
        call = self.answer(
            ShareGroupHeartbeatResponse(
                member_id="m",
                member_epoch=epoch,
                heartbeat_interval_ms=INTERVAL_MS,
                assignment=None if topics is None else Assignment(topic_partitions=topics),
            )
        )
        for outgoing in self.member.take_requests():
            assert isinstance(outgoing.call, NameTopics)
            names = {each: NAMES[each] for each in outgoing.call.topic_ids}
            self.member.answered(outgoing.ticket, names, self.now)
        return call

    def refuse(self, code: int, detail: str | None = None) -> Any:
        return self.answer(ShareGroupHeartbeatResponse(error_code=code, error_message=detail))

    def begin(self) -> None:
        self.member.subscribe(["t"], self.now)
        self.member.polled(self.now)
        self.answer(7, FindGroupCoordinator)

    def stable(self, assigned: dict[bytes, list[int]] | None = None) -> None:
        self.begin()
        self.reply(2, {T: [0, 1]} if assigned is None else assigned)


def test_joining_begins_with_the_first_poll_and_says_everything() -> None:
    bench = Bench(client_rack="r1")
    bench.member.subscribe(["u", "t"], bench.now)
    assert not bench.member.outbox
    bench.member.polled(bench.now)
    bench.answer(7, FindGroupCoordinator)
    call = bench.reply(2, {})
    assert (call.member_id, call.member_epoch, call.rack_id) == ("m", 0, "r1")
    assert call.subscribed_topic_names == ["t", "u"]
    assert bench.member.phase is Phase.STABLE
    assert bench.member.assignment == {}


def test_keep_alives_are_short_and_at_the_broker_s_interval() -> None:
    bench = Bench(client_rack="r1")
    bench.stable({})
    bench.after(INTERVAL_MS - 1)
    assert not bench.member.outbox
    assert bench.member.wake_at == INTERVAL_MS
    bench.after(1)
    call = bench.reply(3, {T: [1]})
    assert (call.member_epoch, call.rack_id, call.subscribed_topic_names) == (2, None, None)
    assert bench.member.assignment == {TopicPartition("t", 1): T}


def test_an_assignment_holds_until_another_one_comes() -> None:
    bench = Bench()
    bench.stable()
    bench.after(INTERVAL_MS)
    bench.reply(3, None)
    assert list(bench.member.assignment) == [TopicPartition("t", 0), TopicPartition("t", 1)]
    changes = bench.member.changes
    bench.after(INTERVAL_MS)
    bench.reply(4, {U: [0]})
    assert bench.member.assignment == {TopicPartition("u", 0): U}
    assert bench.member.changes > changes


def test_another_subscription_is_sent_at_once() -> None:
    bench = Bench()
    bench.stable()
    bench.member.subscribe(["u"], bench.now)
    assert bench.reply(3, {U: [0]}).subscribed_topic_names == ["u"]


def test_a_subscription_that_changes_while_an_answer_is_due_is_sent_after_it() -> None:
    bench = Bench()
    bench.begin()
    bench.member.subscribe(["u"], bench.now)
    joined = ShareGroupHeartbeatResponse(member_epoch=2, heartbeat_interval_ms=INTERVAL_MS)
    assert bench.answer(joined).subscribed_topic_names == ["t"]
    assert bench.reply(3, {}).subscribed_topic_names == ["u"]


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_fenced_member_joins_again_under_its_id(code: ErrorCode) -> None:
    bench = Bench()
    bench.stable()
    bench.after(INTERVAL_MS)
    bench.refuse(code)
    assert bench.member.assignment == {}
    assert bench.member.error is None
    bench.after(100)
    call = bench.reply(5, {T: [0]})
    assert (call.member_id, call.member_epoch, call.subscribed_topic_names) == ("m", 0, ["t"])
    assert list(bench.member.assignment) == [TopicPartition("t", 0)]


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_has_moved_is_looked_for(code: ErrorCode) -> None:
    bench = Bench()
    bench.stable()
    bench.after(INTERVAL_MS)
    bench.refuse(code)
    bench.after(100)
    bench.answer(8, FindGroupCoordinator)
    (outgoing,) = bench.member.outbox
    assert outgoing.node == 8
    assert bench.reply(2, None).member_epoch == 2
    assert len(bench.member.assignment) == 2


def test_a_loading_coordinator_is_asked_again() -> None:
    bench = Bench()
    bench.stable()
    bench.after(INTERVAL_MS)
    bench.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert not bench.member.outbox
    bench.after(100)
    assert bench.reply(2, None).subscribed_topic_names == ["t"]  # what was lost is not known


def test_a_lost_answer_does_not_lose_the_assignment() -> None:
    bench = Bench()
    bench.stable()
    bench.after(INTERVAL_MS)
    bench.answer(NetworkError("gone"))
    assert len(bench.member.assignment) == 2
    bench.after(100)
    bench.answer(7, FindGroupCoordinator)
    assert bench.reply(2, None).member_epoch == 2


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, "one of another type"),
        (ErrorCode.UNSUPPORTED_VERSION, "share.version is 1"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "group.share.max.size"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "READ on the group"),
        (ErrorCode.INVALID_REQUEST, "INVALID_REQUEST"),
    ],
)
def test_a_refusal_for_good_is_the_application_s(code: ErrorCode, advice: str) -> None:
    bench = Bench()
    bench.begin()
    bench.refuse(code, "why")
    error = bench.member.take_error()
    assert isinstance(error, KafkaError)
    assert error.code == code
    assert advice in str(error)
    assert "why" in str(error)
    bench.after(60_000)
    assert not bench.member.outbox  # until the next poll
    bench.member.polled(bench.now)
    assert bench.reply(2, {}).member_epoch == 0


def test_a_missing_right_on_a_topic_leaves_the_member_in_its_group() -> None:
    bench = Bench()
    bench.stable()
    bench.after(INTERVAL_MS)
    bench.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert "DESCRIBE" in str(bench.member.take_error())
    assert bench.member.phase is Phase.STABLE


def test_a_member_that_is_never_let_in_says_so() -> None:
    bench = Bench(max_poll_interval_ms=1_000_000, request_timeout_ms=1_000)
    bench.begin()
    bench.member.poll_begins(bench.now)
    error = None
    for _ in range(20):
        bench.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        error = bench.member.take_error()
        if error is not None:
            break
        bench.after(100_000)
    assert isinstance(error, RequestTimeoutError)
    assert "COORDINATOR_LOAD_IN_PROGRESS" in str(error)


def test_an_application_that_does_not_poll_leaves_the_group_and_comes_back() -> None:
    bench = Bench(max_poll_interval_ms=500)
    bench.stable()
    bench.after(500)
    call = bench.answer(ShareGroupHeartbeatResponse(member_epoch=-1))
    assert call.member_epoch == -1
    assert is_farewell(call)
    assert bench.member.assignment == {}
    bench.after(10_000)
    assert not bench.member.outbox
    bench.member.polled(bench.now)
    assert bench.reply(4, {T: [0]}).member_epoch == 0


def test_an_application_that_waits_for_records_is_alive() -> None:
    bench = Bench(max_poll_interval_ms=500)
    bench.stable()
    bench.member.poll_begins(bench.now)
    bench.after(600)
    assert bench.member.phase is Phase.STABLE
    bench.member.poll_ends(bench.now)
    assert bench.member.wake_at <= bench.now + 500


def test_leaving_says_so_once() -> None:
    bench = Bench()
    bench.stable()
    bench.member.leave(bench.now)
    (outgoing,) = bench.member.take_requests()
    assert isinstance(outgoing.call, ShareGroupHeartbeatRequest)
    assert outgoing.call.member_epoch == -1
    assert bench.member.phase is Phase.OUT
    bench.member.leave(bench.now)
    assert not bench.member.outbox


def test_a_member_that_never_joined_leaves_without_a_word() -> None:
    bench = Bench()
    bench.member.subscribe(["t"], bench.now)
    bench.member.leave(bench.now)
    assert not bench.member.outbox


def test_names_that_are_missing_are_asked_for_again() -> None:
    bench = Bench()
    bench.begin()
    topics = [TopicPartitions(topic_id=T, partitions=[0])]
    bench.answer(
        ShareGroupHeartbeatResponse(
            member_epoch=2, heartbeat_interval_ms=60_000, assignment=Assignment(topic_partitions=topics)
        )
    )
    bench.answer({}, NameTopics)
    assert bench.member.assignment == {}
    bench.after(100)
    bench.answer(NetworkError("gone"), NameTopics)
    bench.after(100)
    bench.answer(NAMES, NameTopics)
    assert bench.member.assignment == {TopicPartition("t", 0): T}


@pytest.mark.parametrize("epoch", [0, -1])
def test_an_answer_without_an_epoch_is_refused(epoch: int) -> None:
    bench = Bench()
    bench.begin()
    bench.answer(ShareGroupHeartbeatResponse(member_epoch=epoch))
    assert isinstance(bench.member.take_error(), ProtocolViolationError)


def test_an_answer_of_another_kind_is_an_error() -> None:
    bench = Bench()
    bench.begin()
    bench.answer("nonsense")
    assert isinstance(bench.member.take_error(), DecodeError)


def test_late_answers_do_not_matter() -> None:
    bench = Bench()
    bench.stable()
    bench.member.answered(99, "nonsense", bench.now)
    bench.member.counted({}, bench.now)
    assert bench.member.error is None
    assert bench.member.group_topics == {"t"}
