"""Tests of electing a schema registry in a group: protocol messages, results and membership."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from for_each import for_each
from penstock.errors import DecodeError, NetworkError, PenstockError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse
from penstock.protocol.messages.sync_group_request import SyncGroupRequest
from penstock.protocol.messages.sync_group_response import SyncGroupResponse
from penstock.registry.server.election import NO_OUTCOME, Election
from penstock.registry.server.group_protocol import (
    DOCUMENT_BYTES_MAX,
    DUPLICATE_URLS,
    Assignment,
    RegistryIdentity,
    assignment_bytes,
    assignment_in,
    elect,
    identity_bytes,
    identity_in,
)
from penstock.registry.server.membership import MembershipSettings, RegistryMembership

A, B, C = RegistryIdentity("a", 8081), RegistryIdentity("b", 8081), RegistryIdentity("c", 8081)


def test_the_words_are_those_of_confluents_registry() -> None:
    """The JSON has the names and values of two Java classes of Confluent's registry.

    The classes are `SchemaRegistryIdentity` and `SchemaRegistryProtocol.Assignment`.
    """
    identity = {
        "version": 1,
        "host": "a",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
        "leader": False,
    }
    assert json.loads(identity_bytes(A)) == identity
    assert json.loads(assignment_bytes(Assignment("m", A))) == {
        "version": 1,
        "error": 0,
        "master": "m",
        "master_identity": identity,
    }
    assert json.loads(assignment_bytes(Assignment(None, None))) == {"version": 1, "error": 0}


def test_older_and_newer_members_are_understood() -> None:
    older = b'{"version":1,"host":"kafka-1","port":8081,"master_eligibility":false}'
    assert identity_in(older) == RegistryIdentity("kafka-1", 8081, "http", False)
    newer = b'{"version":9,"host":"::1","port":1,"master_eligibility":true,"scheme":"https","more":[]}'
    assert identity_in(newer).url == "https://[::1]:1"
    assert assignment_in(b'{"version":1,"error":1}') == Assignment(None, None, DUPLICATE_URLS)


MALFORMED = [
    b"",
    b"{",
    b"[]",
    b"\xff",
    b'{"host":1,"port":1}',
    b'{"host":"a","port":"1"}',
    b'{"host":"a","port":true}',
    b'{"host":"a","port":0}',
    b'{"host":"","port":1}',
    b'{"host":"a","port":1,"scheme":"ftp"}',
    b"[" * 100_000,
    b" " * (DOCUMENT_BYTES_MAX + 1),
]


@for_each(MALFORMED)
def test_what_is_malformed_is_an_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        identity_in(data)
    with pytest.raises(DecodeError):
        assignment_in(b'{"master":"m","master_identity":' + (data or b"1") + b"}")


def test_who_is_elected() -> None:
    def won(**members: RegistryIdentity) -> str | None:
        return elect(members).leader_id

    never = RegistryIdentity("0", 1, is_eligible=False)
    before = RegistryIdentity("c", 8081, is_leader=True)
    assert won(x=B, y=A, z=never) == "y"
    assert won(x=A, y=before) == "y"
    assert won(x=A, y=before, z=RegistryIdentity("b", 8081, is_leader=True)) == "x"  # two claim it: neither
    assert won(x=A, y=RegistryIdentity("c", 1, is_eligible=False, is_leader=True)) == "x"
    assert elect({"x": never}) == Assignment(None, None)
    assert elect({"x": A, "y": A}).error == DUPLICATE_URLS
    for seed in range(20):
        members = {str(number): RegistryIdentity(str(number), 1) for number in range(5)}
        names = list(members)
        random.Random(seed).shuffle(names)
        assert won(**{name: members[name] for name in names}) == "0"


class Script:
    """A stand-in for a group coordinator with prepared responses, and a clock that only pauses advance."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.now = 0.0
        self.forgotten = 0

    async def known(self) -> int:
        return 1

    def forget(self, node: int | None) -> None:
        self.forgotten += 1

    async def request(self, message: Any, node: int, timeout_s: float) -> Any:
        if isinstance(message, LeaveGroupRequest):
            self.asked.append(message)
            return LeaveGroupResponse()
        if not self.answers:
            raise asyncio.CancelledError
        self.asked.append(message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def pause(self, seconds: float) -> None:
        self.now += seconds


class Diary:
    """A list of the elections and revocations that a registry's membership has reported."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    async def assigned(self, assignment: Assignment, *, is_own: bool) -> None:
        self.lines.append((assignment.leader_id, is_own))

    async def revoked(self) -> None:
        self.lines.append("revoked")

    def failed(self, error: PenstockError) -> None:
        self.lines.append(str(error).partition(" (")[2].rstrip(")") or "no answer")


def joined(
    *members: tuple[str, RegistryIdentity], leader: str = "m", generation: int = 1
) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation,
        protocol_name="v0",
        leader=leader,
        member_id="m",
        members=[
            JoinGroupResponseMember(member_id=name, metadata=identity_bytes(each)) for name, each in members
        ],
    )


def synced(leader_id: str | None, leader: RegistryIdentity | None) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=assignment_bytes(Assignment(leader_id, leader)))


def lived(script: Script) -> tuple[list[Any], RegistryMembership]:
    """Run the membership of registry `A` until the script ends; return its reports and the membership."""
    diary = Diary()
    membership = RegistryMembership(script, A, MembershipSettings(), diary, lambda: script.now, script.pause)

    async def life() -> None:
        with pytest.raises(asyncio.CancelledError):
            await membership.run()

    asyncio.run(life())
    return diary.lines, membership


def test_a_member_joins_beats_rejoins_and_leaves() -> None:
    script = Script(
        JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m"),
        joined(("m", A), ("other", B)),
        synced("m", A),
        HeartbeatResponse(),
        HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
        joined(leader="other", generation=2),
        synced("other", B),
    )
    lines, _ = lived(script)
    first, again, sync, beat, _, rejoin, resync, leave = script.asked
    assert lines == ["revoked", "revoked", ("m", True), "revoked", ("other", False), "revoked"]
    assert (first.member_id, again.member_id, first.protocol_type) == ("", "m", "sr")
    assert [each.name for each in first.protocols] == ["v0"]
    assert not identity_in(bytes(again.protocols[0].metadata)).is_leader
    assert identity_in(bytes(rejoin.protocols[0].metadata)).is_leader  # it wishes to stay
    assert {each.member_id: assignment_in(bytes(each.assignment)).leader_id for each in sync.assignments} == {
        "m": "m",
        "other": "m",
    }
    assert (beat.generation_id, resync.generation_id, resync.assignments) == (1, 2, [])
    assert leave.members[0].member_id == "m"


def test_a_member_that_is_forgotten_begins_anew() -> None:
    script = Script(
        joined(("m", A)),
        synced("m", A),
        HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID),
        joined(("m", A)),
    )
    lines, _ = lived(script)
    assert lines[:4] == ["revoked", ("m", True), "UNKNOWN_MEMBER_ID", "revoked"]
    assert script.asked[3].member_id == ""


def test_one_that_hears_nothing_for_a_session_stops_writing() -> None:
    silence = [NetworkError("no answer") for _ in range(4)]
    script = Script(joined(("m", A)), synced("m", A), HeartbeatResponse(), *silence)
    lines, _ = lived(script)
    # A heartbeat every 3 s, and 0.2 s after a failure: the session of 10 s ends with the fourth.
    assert lines == ["revoked", ("m", True), *["no answer"] * 4, "revoked", "revoked", "revoked"]
    assert script.forgotten == 4
    assert isinstance(script.asked[-2], HeartbeatRequest)


def test_a_coordinator_that_moves_is_found_again() -> None:
    script = Script(
        JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR),
        joined(("m", A)),
        SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
        joined(("m", A)),
        synced(None, None),
    )
    lines, _ = lived(script)
    assert script.forgotten == 1
    assert lines[-2:] == [(None, False), "revoked"]


def test_a_member_of_another_kind_has_no_say() -> None:
    strange = JoinGroupResponseMember(member_id="strange", metadata=b"\x00\x01")
    answer = joined(("m", A))
    answer.members.append(strange)
    script = Script(answer, synced("m", A))
    lived(script)
    sync = script.asked[1]
    assert isinstance(sync, SyncGroupRequest)
    assert [each.member_id for each in sync.assignments] == ["m", "strange"]


def test_one_that_was_fenced_does_not_claim_to_be_elected() -> None:
    script = Script(joined(("m", A)), synced("m", A), HeartbeatResponse())
    _, membership = lived(script)
    assert membership.identity.is_leader
    membership.rejoin()
    assert not membership.identity.is_leader


def elections_of(seed: int) -> Callable[[], str | None]:
    """Return a function that adds or removes a random group member, and returns the elected leader."""
    dice = random.Random(seed)
    members: dict[str, RegistryIdentity] = {}
    names = iter(range(1_000))

    def change() -> str | None:
        if members and dice.random() < 0.4:
            del members[dice.choice(sorted(members))]
        else:
            number = next(names)
            members[f"m{number}"] = RegistryIdentity(
                f"h{number % 7}", number + 1, is_eligible=dice.random() < 0.8
            )
        found = elect(members)
        for name, each in members.items():
            members[name] = RegistryIdentity(
                each.host, each.port, each.scheme, each.is_eligible, name == found.leader_id
            )
        assert found.leader_id is None or members[found.leader_id].is_eligible
        assert (found.leader_id is None) == (not any(each.is_eligible for each in members.values()))
        return found.leader_id if members else None

    return change


@for_each(range(10))
def test_the_elected_one_stays_until_it_goes(seed: int) -> None:
    change = elections_of(seed)
    past: list[str | None] = []
    for _ in range(100):
        found = change()
        if found is not None and past and past[-1] != found:
            assert found not in past[:-1] or past[-1] is None  # nobody comes back who was replaced
        past.append(found)


def test_requests_are_of_the_settings() -> None:
    script = Script(joined(("m", A)), synced("m", A))
    lived(script)
    join = script.asked[0]
    assert isinstance(join, JoinGroupRequest)
    assert (join.group_id, join.session_timeout_ms, join.rebalance_timeout_ms) == (
        "schema-registry",
        10_000,
        300_000,
    )


class Unheeded:
    """A stand-in for a registry's right to write, which must not be used: its tests elect no registry."""

    def lead(self) -> None:
        raise AssertionError("nothing was elected")

    resign = lead


def test_an_unexpected_error_ends_the_wait_for_the_first_election(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def wrong(self: Election) -> None:
        raise ZeroDivisionError("unexpected")

    monkeypatch.setattr(Election, "_take_part", wrong)
    election = Election("127.0.0.1:1", None, A, MembershipSettings(), Unheeded())
    with (
        caplog.at_level("CRITICAL", "penstock.registry"),
        pytest.raises(ZeroDivisionError, match="unexpected"),
    ):
        election.start()
    assert election._is_settled.is_set()
    assert election.outcome == NO_OUTCOME
    election.stop()
