"""Tests of the classic group coordinator: its decision for each request in each state of the group."""

from __future__ import annotations

import pytest

from broker.groups.bench_group import Bench
from broker.groups.requests import REBALANCE_MS, SESSION_MS, join_request, subscription
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest

E = ErrorCode


# --- joining ---------------------------------------------------------------------------------------------


def test_a_first_member_leads_generation_1_and_sees_what_members_said() -> None:
    bench = Bench()
    response = bench.join(protocols={"range": b"r", "roundrobin": b"rr"}).response
    assert (response.error_code, response.generation_id, response.protocol_name) == (0, 1, "range")
    assert response.leader == response.member_id
    assert response.member_id.startswith("bench-")
    [member] = response.members
    assert (member.member_id, member.metadata) == (response.member_id, b"r")


def test_from_version_4_on_a_member_needs_an_id_first() -> None:
    bench = Bench()
    first = bench.join(version=4)
    assert first.code == E.MEMBER_ID_REQUIRED
    member_id = first.response.member_id
    assert bench.state() == "Empty"
    second = bench.join(member_id, version=4)
    assert (second.code, second.response.generation_id) == (0, 1)
    assert second.response.member_id == member_id


def test_an_id_that_nobody_uses_goes_after_a_session() -> None:
    bench = Bench()
    member_id = bench.join(version=4).response.member_id
    bench.wait(SESSION_MS + 1)
    assert bench.join(member_id, version=4).code == E.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_ids_that_were_given_away() -> None:
    bench = Bench()
    leader = bench.join().response.member_id
    bench.sync(leader, 1)
    given = bench.join(version=4).response.member_id
    rejoined = bench.join(leader)
    assert rejoined.waits
    bench.join(given, version=4)
    assert rejoined.response.generation_id == 2


def test_giving_an_id_back_is_enough_to_go_on() -> None:
    bench = Bench()
    leader = bench.join().response.member_id
    bench.sync(leader, 1)
    given = bench.join(version=4).response.member_id
    rejoined = bench.join(leader)
    assert rejoined.waits
    assert bench.leave(given) == [0]
    assert rejoined.response.generation_id == 2


def test_a_new_member_has_everybody_join_again() -> None:
    bench = Bench()
    leader = bench.join().response.member_id
    bench.sync(leader, 1, {leader: b"all"})
    second = bench.join()
    assert second.waits
    assert bench.heartbeat(leader, 1) == E.REBALANCE_IN_PROGRESS
    again = bench.join(leader)
    assert (again.response.generation_id, second.response.generation_id) == (2, 2)
    assert len(again.response.members) == 2
    assert second.response.members == []
    assert second.response.leader == leader


def test_who_does_not_join_again_is_out_after_the_rebalance_timeout() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    rejoined = bench.join(follower, protocols={"range": b"changed"})
    for _ in range(4):
        bench.wait(REBALANCE_MS // 4 - 100)
        assert rejoined.waits
        assert bench.heartbeat(leader, 2) == E.REBALANCE_IN_PROGRESS
    bench.wait(500)
    assert (rejoined.response.generation_id, rejoined.response.leader) == (3, follower)
    assert len(rejoined.response.members) == 1


def test_version_0_means_both_timeouts_by_its_one() -> None:
    bench = Bench()
    first = bench.join(version=0, rebalance_timeout_ms=-1).response.member_id
    bench.sync(first, 1)
    second = bench.join(version=0, rebalance_timeout_ms=-1)
    bench.heartbeat(first, 1)
    bench.wait(SESSION_MS - 1)
    assert second.waits
    bench.wait(2)
    assert second.response.generation_id == 2
    assert len(second.response.members) == 1


def test_a_follower_that_asks_again_gets_the_current_generation() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    again = bench.join(follower).response
    assert (again.generation_id, again.leader, again.members) == (2, leader, [])
    assert bench.state() == "Stable"


def test_the_leader_that_asks_again_begins_a_rebalance() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    again = bench.join(leader)
    assert again.waits
    assert bench.heartbeat(follower, 2) == E.REBALANCE_IN_PROGRESS
    bench.join(follower)
    assert again.response.generation_id == 3


def test_changed_metadata_begin_a_rebalance_and_so_does_another_order() -> None:
    bench = Bench()
    _, follower = bench.pair()
    assert bench.join(follower, protocols={"range": subscription("other")}).waits
    assert bench.state() == "PreparingRebalance"


def test_asking_again_before_the_leader_has_assigned_repeats_the_answer() -> None:
    bench = Bench()
    first = bench.join().response
    again = bench.join(first.member_id).response
    assert again == first
    assert bench.state() == "CompletingRebalance"
    assert bench.join(first.member_id, protocols={"range": b"x"}).response.generation_id == 2


@pytest.mark.parametrize("member_id", ["nobody", "bench-1"])
def test_ids_that_were_not_given_away_are_unknown(member_id: str) -> None:
    bench = Bench()
    assert bench.join(member_id).code == E.UNKNOWN_MEMBER_ID
    bench.join()
    answer = bench.join(member_id)
    assert (answer.code, answer.response.member_id) == (E.UNKNOWN_MEMBER_ID, member_id)


def test_an_empty_group_has_forgotten_its_members() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    assert bench.leave(leader, follower) == [0, 0]
    assert bench.state() == "Empty"
    assert bench.join(leader).code == E.UNKNOWN_MEMBER_ID
    assert bench.join().response.generation_id == 4


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_session_timeouts_have_bounds(timeout_ms: int) -> None:
    assert Bench().join(session_timeout_ms=timeout_ms).code == E.INVALID_SESSION_TIMEOUT


def test_the_bounds_can_be_set() -> None:
    bench = Bench(group_min_session_timeout_ms=10, group_max_session_timeout_ms=20)
    assert bench.join(session_timeout_ms=10).code == 0
    assert bench.join(session_timeout_ms=21).code == E.INVALID_SESSION_TIMEOUT


def test_a_group_needs_an_id() -> None:
    bench = Bench()
    assert bench.join(group="").code == E.INVALID_GROUP_ID
    assert bench.sync("m", 1, group="").code == E.INVALID_GROUP_ID
    assert bench.heartbeat("m", 1, group="") == E.INVALID_GROUP_ID
    assert bench.ask(LeaveGroupRequest(group_id="", member_id="m"), 2).code == E.INVALID_GROUP_ID


@pytest.mark.parametrize("fields", [{"protocol_type": ""}, {"protocols": ()}])
def test_a_first_member_has_to_say_what_it_can_do(fields: dict[str, object]) -> None:
    bench = Bench()
    assert bench.join(**fields).code == E.INCONSISTENT_GROUP_PROTOCOL
    assert bench.state() == "?"


def test_a_group_is_of_one_type_and_needs_a_protocol_that_all_know() -> None:
    bench = Bench()
    bench.pair()
    assert bench.join(protocol_type="connect").code == E.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join(protocols=("sticky",)).code == E.INCONSISTENT_GROUP_PROTOCOL
    assert bench.join(protocols=("sticky", "range")).waits


def test_a_group_has_room_for_so_many() -> None:
    bench = Bench(group_max_size=2)
    leader, follower = bench.pair()
    third = bench.join()
    assert (third.code, third.response.member_id) == (E.GROUP_MAX_SIZE_REACHED, "")
    waits = bench.join(leader)
    assert bench.join(follower).response.generation_id == 3
    assert waits.response.generation_id == 3


def test_in_a_group_that_has_become_too_large_the_last_to_come_back_go() -> None:
    bench = Bench(group_max_size=1)
    leader = bench.join().response.member_id
    group = bench.node.groups.coordinator.groups["g"]
    group._settings = group._settings._replace(max_size=2)
    bench.sync(leader, 1)
    second = bench.join()
    group._settings = group._settings._replace(max_size=1)
    assert bench.join(leader).code == E.GROUP_MAX_SIZE_REACHED
    assert second.response.generation_id == 2


def test_a_new_group_waits_for_more_members_and_longer_while_they_come() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=3000)
    first = bench.join()
    bench.wait(2000)
    second = bench.join()
    bench.wait(2000)
    assert first.waits
    bench.wait(2001)
    assert first.response.generation_id == second.response.generation_id == 1


def test_a_new_group_does_not_wait_longer_than_the_rebalance_timeout() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=3000)
    first = bench.join(rebalance_timeout_ms=5000)
    for _ in range(4):
        assert first.waits
        bench.wait(1500)
        bench.join(rebalance_timeout_ms=5000)
    assert not first.waits


def test_a_first_join_is_dropped_after_five_minutes() -> None:
    bench = Bench()
    leader = bench.join(rebalance_timeout_ms=900_000).response.member_id
    bench.sync(leader, 1)
    second = bench.join(rebalance_timeout_ms=900_000)
    for _ in range(60):
        bench.wait(5000)
        bench.heartbeat(leader, 1)
    bench.wait(10)
    assert (second.code, second.response.member_id) == (E.UNKNOWN_MEMBER_ID, "")


# --- the vote --------------------------------------------------------------------------------------------


def test_a_rolling_upgrade_from_one_assignor_to_another() -> None:
    """The group uses the old assignor as long as one member supports only that one.

    After this member has gone, the group uses the new assignor, which the others prefer.
    """
    bench = Bench()
    old, both, new = ("range",), ("sticky", "range"), ("sticky",)
    a = bench.join(protocols=old).response.member_id
    b = bench.join(protocols=both)
    bench.join(a, protocols=old)
    assert b.response.protocol_name == "range"
    b_id = b.response.member_id
    assert bench.join(protocols=new).code == E.INCONSISTENT_GROUP_PROTOCOL
    bench.leave(a)
    upgraded = bench.join(protocols=both)
    bench.join(b_id, protocols=both)
    assert upgraded.response.protocol_name == "sticky"
    assert bench.join(protocols=new).waits
    assert bench.join(protocols=old).code == E.INCONSISTENT_GROUP_PROTOCOL


def test_most_votes_win() -> None:
    bench = Bench()
    first = bench.join(protocols=("a", "b", "c")).response.member_id
    second = bench.join(protocols=("b", "a", "d"))
    third = bench.join(protocols=("d", "b", "a"))
    answer = bench.join(first, protocols=("a", "b", "c")).response
    assert answer.protocol_name == "b"
    assert second.response.generation_id == third.response.generation_id == 2


# --- syncing ---------------------------------------------------------------------------------------------


def test_members_wait_for_the_leader_and_the_forgotten_get_nothing() -> None:
    bench = Bench()
    first = bench.join().response
    second = bench.join()
    third = bench.join()
    bench.join(first.member_id)
    b, c = second.response.member_id, third.response.member_id
    waits = bench.sync(b, 2)
    assert waits.waits
    leader = bench.sync(first.member_id, 2, {b: b"2", first.member_id: b"1", "nobody": b"?"})
    assert (leader.response.assignment, waits.response.assignment) == (b"1", b"2")
    assert bench.sync(c, 2).response.assignment == b""
    assert (leader.response.protocol_type, leader.response.protocol_name) == ("consumer", "range")


def test_a_rebalance_ends_the_wait_for_the_leader() -> None:
    bench = Bench()
    first = bench.join().response
    second = bench.join()
    bench.join(first.member_id)
    waits = bench.sync(second.response.member_id, 2)
    bench.join()
    assert waits.code == E.REBALANCE_IN_PROGRESS
    assert bench.sync(first.member_id, 2).code == E.REBALANCE_IN_PROGRESS


def test_who_does_not_sync_in_time_is_out() -> None:
    bench = Bench()
    first = bench.join().response
    second = bench.join()
    bench.join(first.member_id)
    follower = second.response.member_id
    bench.sync(first.member_id, 2, {})
    for _ in range(6):
        bench.heartbeat(first.member_id, 2)
        bench.heartbeat(follower, 2)
        bench.wait(REBALANCE_MS // 6)
    bench.wait(10)
    assert bench.heartbeat(first.member_id, 2) == E.REBALANCE_IN_PROGRESS
    assert bench.heartbeat(follower, 2) == E.UNKNOWN_MEMBER_ID


def test_sync_asks_who_and_when_and_of_what_kind() -> None:
    bench = Bench()
    assert bench.sync("nobody", 1).code == E.UNKNOWN_MEMBER_ID
    leader, _ = bench.pair()
    assert bench.sync("nobody", 2).code == E.UNKNOWN_MEMBER_ID
    assert bench.sync(leader, 1).code == E.ILLEGAL_GENERATION
    for kind, name in (("connect", "range"), ("consumer", "sticky"), (None, "range"), ("consumer", None)):
        refused = bench.sync(leader, 2, protocol_type=kind, protocol_name=name)
        assert refused.code == E.INCONSISTENT_GROUP_PROTOCOL
    answer = bench.sync(leader, 2, protocol_type="consumer", protocol_name="range")
    assert (answer.code, answer.response.assignment) == (0, b"L")


# --- sessions --------------------------------------------------------------------------------------------


def test_heartbeats_keep_a_member() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    for _ in range(10):
        bench.wait(SESSION_MS - 1)
        assert bench.heartbeat(leader, 2) == 0
        assert bench.heartbeat(follower, 2) == 0
    bench.wait(SESSION_MS + 1)
    assert bench.heartbeat(leader, 2) == E.UNKNOWN_MEMBER_ID
    assert bench.state() == "Empty"


def test_who_waits_is_alive() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    rejoined = bench.join(leader)
    for _ in range(2):
        bench.wait(SESSION_MS - 1)
        assert bench.heartbeat(follower, 2) == E.REBALANCE_IN_PROGRESS
    assert rejoined.waits
    bench.join(follower)
    assert rejoined.code == 0


def test_a_heartbeat_while_a_generation_begins_is_a_heartbeat() -> None:
    bench = Bench()
    first = bench.join().response.member_id
    assert bench.state() == "CompletingRebalance"
    assert bench.heartbeat(first, 1) == 0


def test_heartbeats_of_others() -> None:
    bench = Bench()
    assert bench.heartbeat("nobody", 1) == E.UNKNOWN_MEMBER_ID
    leader, _ = bench.pair()
    assert bench.heartbeat("nobody", 2) == E.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(leader, 1) == E.ILLEGAL_GENERATION
    assert bench.heartbeat(leader, 3) == E.ILLEGAL_GENERATION


# --- leaving ---------------------------------------------------------------------------------------------


def test_several_leave_each_with_an_outcome() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    assert bench.leave(follower, "nobody", leader) == [0, E.UNKNOWN_MEMBER_ID, 0]
    assert bench.leave(leader) == [E.UNKNOWN_MEMBER_ID]


def test_before_version_3_one_leaves() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    assert bench.ask(LeaveGroupRequest(group_id="g", member_id=follower), 2).code == 0
    assert bench.heartbeat(leader, 2) == E.REBALANCE_IN_PROGRESS
    assert bench.ask(LeaveGroupRequest(group_id="g", member_id=follower), 0).code == E.UNKNOWN_MEMBER_ID
    assert bench.ask(LeaveGroupRequest(group_id="h", member_id=follower), 0).code == E.UNKNOWN_MEMBER_ID


def test_the_leader_leaves_and_another_leads() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    bench.leave(leader)
    assert bench.join(follower).response.leader == follower


def test_leaving_while_joining_answers_the_join() -> None:
    bench = Bench()
    leader, _ = bench.pair()
    rejoined = bench.join(leader)
    bench.leave(leader)
    assert rejoined.code == E.UNKNOWN_MEMBER_ID


# --- static members --------------------------------------------------------------------------------------


def static_pair(bench: Bench) -> tuple[str, str]:
    first = bench.join(instance="i1", version=9).response.member_id
    second = bench.join(instance="i2", version=9)
    leader = bench.join(first, instance="i1", version=9).response.member_id
    follower = second.response.member_id
    bench.sync(leader, 2, {leader: b"L", follower: b"F"}, group_instance_id="i1")
    bench.sync(follower, 2, group_instance_id="i2")
    return leader, follower


def test_a_static_member_needs_no_id_first() -> None:
    response = Bench().join(instance="i1", version=9).response
    assert (response.error_code, response.generation_id) == (0, 1)
    assert response.member_id.startswith("i1-")


def test_a_static_follower_that_comes_back_has_what_it_had() -> None:
    bench = Bench()
    leader, follower = static_pair(bench)
    back = bench.join(instance="i2", version=9).response
    assert (back.error_code, back.generation_id, back.leader) == (0, 2, leader)
    assert (back.skip_assignment, back.members) == (False, [])
    assert back.member_id != follower
    assert bench.state() == "Stable"
    assert bench.sync(back.member_id, 2, group_instance_id="i2").response.assignment == b"F"
    assert bench.heartbeat(follower, 2, group_instance_id="i2") == E.FENCED_INSTANCE_ID
    assert bench.heartbeat(follower, 2) == E.UNKNOWN_MEMBER_ID
    assert bench.join(follower, instance="i2", version=9).code == E.FENCED_INSTANCE_ID
    assert bench.commit(1, follower, 2, group_instance_id="i2") == E.FENCED_INSTANCE_ID
    assert bench.leave((follower, "i2")) == [E.FENCED_INSTANCE_ID]


def test_a_static_leader_that_comes_back_skips_the_assignment_or_takes_itself_for_a_follower() -> None:
    bench = Bench()
    leader, _ = static_pair(bench)
    back = bench.join(instance="i1", version=9).response
    assert (back.skip_assignment, back.leader, len(back.members)) == (True, back.member_id, 2)
    older = bench.join(instance="i1", version=8).response
    assert (older.leader, older.members) == (back.member_id, [])
    assert older.member_id not in (leader, back.member_id)


def test_a_static_member_that_wants_something_else_makes_a_rebalance_where_the_vote_changes() -> None:
    bench = Bench()
    both = ("range", "sticky")
    first = bench.join(instance="i1", protocols=both, version=9).response.member_id
    bench.sync(first, 1, {first: b"x"}, group_instance_id="i1")
    same = bench.join(instance="i1", protocols={"range": b"changed", "sticky": b""}, version=9).response
    assert same.generation_id == 1
    other = bench.join(instance="i1", protocols=("sticky", "range"), version=9).response
    assert (other.generation_id, other.protocol_name) == (2, "sticky")


def test_a_static_member_is_missed_only_when_its_session_ends() -> None:
    bench = Bench()
    leader, follower = static_pair(bench)
    rejoined = bench.join(leader, instance="i1", version=9, session_timeout_ms=60_000)
    assert rejoined.waits
    bench.wait(SESSION_MS + 1)
    assert rejoined.response.generation_id == 3
    assert len(rejoined.response.members) == 1
    assert bench.heartbeat(follower, 3, group_instance_id="i2") == E.UNKNOWN_MEMBER_ID


def test_a_waiting_join_of_a_replaced_member_is_fenced() -> None:
    bench = Bench()
    leader, _ = static_pair(bench)
    waits = bench.join(leader, instance="i1", version=9)
    assert waits.waits
    assert bench.join(instance="i1", version=9).waits
    assert waits.code == E.FENCED_INSTANCE_ID


def test_replaced_while_a_generation_begins_there_is_another_generation() -> None:
    bench = Bench()
    first = bench.join(instance="i1", version=9).response.member_id
    assert bench.state() == "CompletingRebalance"
    back = bench.join(instance="i1", version=9).response
    assert back.generation_id == 2
    assert bench.sync(first, 1, group_instance_id="i1").code == E.FENCED_INSTANCE_ID


def test_instance_ids_have_to_fit() -> None:
    bench = Bench()
    leader, follower = static_pair(bench)
    assert bench.join(leader, instance="i9", version=9).code == E.UNKNOWN_MEMBER_ID
    assert bench.join(leader, instance="i2", version=9).code == E.FENCED_INSTANCE_ID
    assert bench.heartbeat(leader, 2, group_instance_id="i2") == E.FENCED_INSTANCE_ID
    assert bench.heartbeat(leader, 2, group_instance_id="i9") == E.UNKNOWN_MEMBER_ID
    assert bench.sync(follower, 2, group_instance_id="i1").code == E.FENCED_INSTANCE_ID


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    bench = Bench()
    leader, follower = static_pair(bench)
    assert bench.leave(("", "i2"), ("", "i9")) == [0, E.UNKNOWN_MEMBER_ID]
    assert bench.heartbeat(follower, 2) == E.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(leader, 2) == E.REBALANCE_IN_PROGRESS


def test_responses_below_version_7_have_an_empty_protocol_name_in_errors() -> None:
    bench = Bench()
    assert bench.ask(join_request("nobody"), 6).response.protocol_name == ""
    assert bench.ask(join_request("nobody"), 7).response.protocol_name is None
