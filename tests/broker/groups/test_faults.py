"""Tests of classic groups with requests that no real client sends, and with errors in the coordinator.

The other members of the group continue: at most they have to join again.
"""

from __future__ import annotations

from typing import Any

import pytest

from broker.groups.bench_group import Bench
from broker.groups.requests import REBALANCE_MS, SESSION_MS, join_request
from penstock.broker.coordination.timers import Timer, Timers
from penstock.broker.groups.classic.group import ClassicGroup
from penstock.broker.groups.classic.roster import Roster
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol

E = ErrorCode
LONG_NAME = "n" * 40_000

ERRORS = [ValueError("a fault"), MemoryError(), RecursionError(), KeyError("a fault")]


def join_naming(bench: Bench, *protocols: tuple[str, bytes], member_id: str = "", version: int = 3) -> Any:
    request = join_request(member_id)
    request.protocols = [JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols]
    return bench.ask(request, version)


# --- what is named twice, or is too long -----------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3])
def test_a_protocol_that_is_named_twice_counts_once_and_its_first_metadata_hold(version: int) -> None:
    bench = Bench()
    asked = join_naming(bench, ("range", b"1"), ("range", b"2"), ("other", b"3"), version=version)
    assert (asked.code, asked.response.protocol_name) == (0, "range")
    assert [member.metadata for member in asked.response.members] == [b"1"]


def test_a_member_that_names_a_protocol_twice_leaves_the_others_their_group() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    third = join_naming(bench, ("range", b"1"), ("range", b"2"))
    bench.join(leader)
    again = bench.join(follower)
    assert (again.code, third.code) == (0, 0)
    assert again.response.generation_id == third.response.generation_id == 3
    bench.wait(REBALANCE_MS + 1)  # nobody syncs: all of them are out, by a timer
    assert bench.state() == "Empty"
    assert bench.join().code == 0
    assert bench.node.failures.counts == {}


def test_the_vote_is_counted_rightly_after_a_member_with_repetitions_has_gone() -> None:
    bench = Bench()
    join_naming(bench, ("range", b""), ("range", b""), ("range", b""))
    bench.wait(REBALANCE_MS + SESSION_MS)
    assert bench.state() == "Empty"
    assert join_naming(bench, ("roundrobin", b""), ("range", b"")).response.protocol_name == "roundrobin"


def test_a_stored_group_that_names_a_member_twice_has_it_once() -> None:
    bench = Bench()
    member = MemberMetadata(member_id="m", client_id="c", client_host="/h", session_timeout=SESSION_MS)
    stored = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol="range", leader="m", members=[member, member]
    )
    service = bench.node.groups
    group = service.coordinator.restore("g", stored, bench.clock.monotonic())
    assert list(group.members) == ["m"]
    assert bench.join().waits  # it knows range, as everybody does
    bench.wait(SESSION_MS + REBALANCE_MS)
    assert bench.state() != "Stable"
    assert bench.node.failures.counts == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"group": LONG_NAME},
        {"instance": LONG_NAME},
        {"protocol_type": LONG_NAME},
        {"protocols": (LONG_NAME,)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_names_that_no_record_holds_are_refused(fields: dict[str, Any]) -> None:
    """A name of more than 32,767 bytes fits into a request of a flexible version, but not into a record.

    JoinGroup with such a name is answered with INVALID_REQUEST.
    """
    assert Bench().join(version=9, **fields).code == E.INVALID_REQUEST


def test_a_client_with_the_longest_name_gets_an_id_that_can_be_sent_and_stored() -> None:
    bench = Bench()
    joined = bench.ask(join_request(), 3, client="ä" * 16_000)
    assert joined.code == 0
    assert len(joined.response.member_id.encode()) < 1000
    assert bench.sync(joined.response.member_id, 1, {joined.response.member_id: b"all"}).code == 0
    assert bench.again().state() == "Stable"


def test_a_commit_for_a_group_whose_name_no_record_holds_is_refused() -> None:
    assert Bench().commit(1, group=LONG_NAME) == E.INVALID_GROUP_ID


def test_metadata_that_no_record_holds_are_refused_whatever_the_setting() -> None:
    bench = Bench(offset_metadata_max_bytes=100_000)
    assert bench.commit(1, metadata="m" * 32_768) == E.OFFSET_METADATA_TOO_LARGE
    assert bench.commit(1, metadata="m" * 32_767) == 0


def test_the_longest_retention_ends_at_the_end_of_time() -> None:
    bench = Bench()
    for keep_ms in (2**63 - 1, 2**63 - 2, 2**62):
        from broker.groups.requests import commit_request

        request = commit_request({("t", 0): 5}, retention_time_ms=keep_ms)
        assert bench.ask(request, 2).response.topics[0].partitions[0].error_code == 0
    bench.wait(1000)
    assert bench.committed() == 5
    assert bench.again().committed() == 5


# --- timeouts that are none -------------------------------------------------------------------------------


@pytest.mark.parametrize("rebalance_ms", [0, -1, -(2**31)])
def test_static_members_without_time_to_rejoin_do_not_keep_a_timer_firing(rebalance_ms: int) -> None:
    bench = Bench()

    def join(member_id: str = "", instance: str | None = None) -> Any:
        return bench.join(member_id, instance=instance, rebalance_timeout_ms=rebalance_ms)

    members = [join(instance="a").response.member_id]
    bench.sync(members[0], 1, {})
    third = join()
    bench.run()
    again = join(members[0], "a")
    assert again.response is not None
    bench.sync(members[0], again.response.generation_id, {})
    if third.response is not None and not third.code:
        bench.leave(third.response.member_id)
    timers = bench.node.groups.coordinator.timers
    for _ in range(5):
        bench.wait(1000)
    assert len(timers) < 10
    assert bench.node.failures.counts == {}


def test_a_timer_that_is_due_again_at_once_waits_for_the_next_call() -> None:
    timers, fired = Timers(), []

    def fire(now: float) -> None:
        fired.append(now)
        timers.set(timer, now - 1)

    timer = Timer(fire)
    timers.set(timer, 1.0)
    timers.run(2.0)
    assert fired == [2.0]
    timers.run(3.0)
    assert fired == [2.0, 3.0]


def test_a_timer_that_raises_keeps_no_other_from_firing() -> None:
    timers, fired, failed = Timers(), [], []

    def fire(now: float) -> None:
        raise ValueError

    timers.set(Timer(fire, failed.append), 1.0)
    timers.set(Timer(fired.append), 1.5)
    timers.run(2.0)
    assert (fired, failed) == ([2.0], [2.0])


# --- exceptions ------------------------------------------------------------------------------------------


class Once:
    """A replacement for a method that raises an error on its first call, or on every call."""

    def __init__(self, method: Any, error: Exception, always: bool) -> None:
        self.method, self.error, self.always = method, error, always
        self.calls = 0

    def __get__(self, holder: Any, kind: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.always or self.calls == 1:
                raise self.error
            return self.method(holder, *arguments, **named)

        return call


class Healthy:
    """A member that behaves as clients do: it joins, syncs, sends heartbeats, and rejoins when asked to."""

    def __init__(self, bench: Bench, member_id: str) -> None:
        self.bench = bench
        self.member_id = member_id
        self.generation = -1
        self.is_settled = False
        self._joining: Any = bench.join(member_id)
        self._syncing: Any = None

    def step(self) -> None:
        if self._joining is not None and not self._joining.waits:
            self._joined(self._joining)
        elif self._syncing is not None and not self._syncing.waits:
            code, self._syncing = self._syncing.code, None
            self.is_settled = code == 0
            if code:
                self._join(code)
        elif self.is_settled:
            code = self.bench.heartbeat(self.member_id, self.generation)
            if code:
                self._join(code)

    def _joined(self, asked: Any) -> None:
        self._joining = None
        if asked.code:
            self._join(asked.code)
            return
        response = asked.response
        self.member_id, self.generation = response.member_id, response.generation_id
        given = {one.member_id: b"some" for one in response.members}
        self._syncing = self.bench.sync(self.member_id, self.generation, given)

    def _join(self, code: int) -> None:
        assert code in (E.REBALANCE_IN_PROGRESS, E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.NOT_COORDINATOR)
        self.is_settled = False
        if code == E.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._joining = self.bench.join(self.member_id)


def find_together(bench: Bench, members: tuple[str, ...]) -> int:
    """Let healthy members take steps until all are in one generation; return its number."""
    healthy = [Healthy(bench, one) for one in members]
    for _ in range(200):
        for one in healthy:
            one.step()
        bench.wait(1000)
        generations = {one.generation for one in healthy}
        if all(one.is_settled for one in healthy) and len(generations) == 1:
            group = bench.node.groups.coordinator.groups["g"]
            assert set(group.members) == {one.member_id for one in healthy}
            return generations.pop()
    raise AssertionError("the members do not find together again")


PLACES: list[tuple[type, str]] = [
    (Roster, "vote"),
    (Roster, "elect"),
    (Roster, "remove"),
    (ClassicGroup, "_complete_join"),
    (ClassicGroup, "_session_is_over"),
    (ClassicGroup, "_sync_time_is_up"),
    (ClassicGroup, "_dismiss"),
    (ClassicGroup, "members_have_gone"),
    (ClassicGroup, "_rebalance"),
    (ClassicGroup, "_joined"),
    (ClassicGroup, "renew"),
    (ClassicGroup, "go_on"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("part", "place"), PLACES)
def test_a_timer_that_raises_in_a_group_leaves_it_working(
    part: type, place: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    leader, follower = bench.pair()
    bench.commit(7, leader, 2)
    other = bench.join(group="other").response
    bench.sync(other.member_id, 1, {other.member_id: b"O"}, group="other")
    fault = Once(getattr(part, place), error, always=False)
    with monkeypatch.context() as patch:
        patch.setattr(part, place, fault)
        for _ in range(4):
            # The leader is heard of no more, so that its session ends; the other group is well.
            bench.wait(SESSION_MS // 3)
            try:
                bench.heartbeat(follower, 2)
                bench.heartbeat(other.member_id, 1, group="other")
            except type(error):
                pass  # the request ends its connection
        bench.wait(SESSION_MS + REBALANCE_MS)
    assert bench.state() in ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
    assert find_together(bench, (leader, follower)) >= 2
    assert bench.state() == "Stable"
    assert bench.committed() == 7
    assert bench.again().committed() == 7


@pytest.mark.parametrize(
    ("part", "place"),
    [
        (Roster, "vote"),
        (ClassicGroup, "_complete_join"),
        (ClassicGroup, "_joined"),
        (Roster, "recompute"),
        (ClassicGroup, "recover"),
    ],
)
def test_a_request_that_raises_is_answered_by_its_end_and_others_by_their_answers(
    part: type, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    leader, follower = bench.pair()
    waits = bench.join(follower, protocols={"range": b"changed"})
    assert waits.waits
    with monkeypatch.context() as patch:
        patch.setattr(part, place, Once(getattr(part, place), ValueError("a fault"), always=True))
        if place in ("recompute", "recover"):
            patch.setattr(Roster, "vote", Once(Roster.vote, ValueError("a fault"), always=True))
        for _ in range(2):
            if waits.waits:
                with pytest.raises(ValueError, match="a fault"):
                    bench.join(leader)
            bench.run()
    assert waits.response is not None
    assert waits.code == E.UNKNOWN_MEMBER_ID
    assert bench.state() == "Empty"
    assert find_together(bench, (leader, follower)) > 2


def test_a_request_that_raises_once_has_the_others_join_again_with_their_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    leader, follower = bench.pair()
    with monkeypatch.context() as patch:
        patch.setattr(
            ClassicGroup, "heartbeat", Once(ClassicGroup.heartbeat, ValueError("a fault"), always=False)
        )
        with pytest.raises(ValueError, match="a fault"):
            bench.heartbeat(follower, 2)
    assert bench.heartbeat(leader, 2) == E.REBALANCE_IN_PROGRESS
    assert bench.commit(3, leader, 2) == 0
    first = bench.join(leader)
    second = bench.join(follower)
    assert first.response.generation_id == second.response.generation_id == 3


def test_a_group_that_cannot_be_stored_for_an_error_of_ours_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    with monkeypatch.context() as patch:
        patch.setattr("penstock.broker.groups.service.snapshot", lambda group, now_ms: 1 // 0)
        first = bench.join()
        assert first.code == E.NOT_COORDINATOR  # and it is answered
    assert bench.node.failures.counts == {"group": 1}
    assert bench.join().response is not None or bench.state() == "PreparingRebalance"
    bench.wait(REBALANCE_MS + 1)
    assert bench.join().response.error_code == 0


def test_groups_whose_offsets_expire_with_an_error_do_not_keep_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    for group in ("a", "bad", "c"):
        bench.commit(1, group=group)
    service = bench.node.groups
    expired = service.offsets.expired

    def raising(group_id: str, *rest: Any) -> Any:
        if group_id == "bad":
            raise RecursionError
        return expired(group_id, *rest)

    monkeypatch.setattr(service.offsets, "expired", raising)
    bench.clock.advance(120_000)
    assert service.maintain(bench.clock.now_ms()) == []
    assert set(service.coordinator.groups) == {"bad"}
    assert bench.node.failures.counts == {"group": 1}


def test_the_generation_after_the_last_there_is() -> None:
    bench = Bench()
    member = MemberMetadata(member_id="m", client_id="c", client_host="/h", session_timeout=SESSION_MS)
    stored = GroupMetadataValue(
        protocol_type="consumer", generation=2**31 - 1, protocol="range", leader="m", members=[member]
    )
    bench.node.groups.coordinator.restore("g", stored, bench.clock.monotonic())
    bench.wait(SESSION_MS + REBALANCE_MS)
    assert bench.join().response.generation_id >= 1
    assert bench.node.failures.counts == {}


def test_a_join_with_nothing_in_it() -> None:
    bench = Bench()
    assert bench.ask(JoinGroupRequest(group_id="g", session_timeout_ms=SESSION_MS), 9).code == (
        E.INCONSISTENT_GROUP_PROTOCOL
    )
    assert join_naming(bench, ("", b"")).code == 0  # a name is a name
    assert bench.state() == "CompletingRebalance"
