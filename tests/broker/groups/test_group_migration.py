"""Tests of groups whose members change, while running, from the classic protocol to KIP-848 and back.

Clients observe the behavior of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import Any

import pytest

from broker.groups.bench_group import Bench
from broker.groups.mixed_bench import ClassicMember, MixedBench, tops
from broker.groups.requests import join_request, leave_request
from broker.groups.test_consumer_storing import order
from penstock.client.assignors.member_metadata import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)


def listed(bench: Bench) -> list[tuple[str, str, str]]:
    """Send ListGroups; return the type, the state and the protocol type of every group."""
    groups = bench.ask(ListGroupsRequest(), 5).response.groups
    return [(each.group_type, each.group_state, each.protocol_type) for each in groups]


def upgraded(**settings: Any) -> tuple[MixedBench, ClassicMember, int]:
    """Upgrade a group: classic member ``a`` owned all of ``t``, then KIP-848 consumer ``b`` joined.

    Returns the bench, the classic member and the epoch of ``b``.
    """
    bench = MixedBench(**settings)
    (classic,) = bench.classic_group("a")
    answer = bench.new.join("b")
    return bench, classic, answer.member_epoch


def shared(**settings: Any) -> tuple[MixedBench, ClassicMember, int]:
    """Upgrade a group until classic member ``a`` and KIP-848 consumer ``b`` own half of ``t`` each.

    Returns the bench, the classic member and the epoch of ``b``.
    """
    bench, classic, epoch = upgraded(**settings)
    assert [classic.rejoin(), classic.rejoin()] == [0, 0]
    answer = bench.new.beat("b", epoch)
    assert bench.new.assigned(answer) == {"t": [2, 3]}
    return bench, classic, answer.member_epoch


# --- the way up ------------------------------------------------------------------------------------------


def test_a_consumer_turns_a_classic_group_and_gets_its_share_step_by_step() -> None:
    bench = MixedBench()
    (classic,) = bench.classic_group("a")
    assert (classic.epoch, classic.owned) == (1, [0, 1, 2, 3])
    answer = bench.new.join("b")
    assert (answer.error_code, answer.member_epoch, bench.new.assigned(answer)) == (0, 2, {})
    assert listed(bench) == [("consumer", "Reconciling", "consumer")]
    assert classic.beat() == E.REBALANCE_IN_PROGRESS
    assert (classic.join(), classic.epoch) == (0, 1)
    assert (classic.sync(), classic.owned) == (0, [0, 1])
    assert bench.new.assigned(bench.new.beat("b", 2)) is None
    assert classic.beat() == E.REBALANCE_IN_PROGRESS
    assert (classic.join(), classic.epoch) == (0, 2)
    assert (classic.sync(), classic.owned) == (0, [0, 1])
    assert classic.beat() == 0
    assert bench.new.assigned(bench.new.beat("b", 2)) == {"t": [2, 3]}
    assert listed(bench) == [("consumer", "Stable", "consumer")]


def test_an_eager_member_gives_everything_up_with_one_join() -> None:
    bench = MixedBench()
    (classic,) = bench.classic_group("a", is_cooperative=False)
    bench.new.join("b")
    assert classic.beat() == E.REBALANCE_IN_PROGRESS
    assert (classic.rejoin(), classic.epoch, classic.owned) == (0, 2, [0, 1])
    assert bench.new.assigned(bench.new.beat("b", 2)) == {"t": [2, 3]}


def test_records_of_both_ways_are_those_of_apache_kafka_in_one_batch() -> None:
    bench, classic, _epoch = shared()
    way_up = [-2, 5, 3, 7, 6, 8, 5, 3, 7, 7, 6, 8]
    assert way_up in order(bench.new)
    bench.new.beat("b", -1)
    assert order(bench.new)[-1] == [-8, -8, -7, -7, -6, -5, -5, -4, -3, 2]
    assert listed(bench) == [("classic", "PreparingRebalance", "consumer")]
    assert classic.beat() == E.REBALANCE_IN_PROGRESS


def test_members_that_wait_for_a_rebalance_are_told_to_join_again() -> None:
    bench = MixedBench()
    first, second = bench.classic_group("a", "b")
    waits = first.send_join(protocol_type="consumer")  # the leader: a rebalance begins
    assert waits.waits
    answer = bench.new.join("c")
    bench.run()
    assert (answer.error_code, answer.member_epoch) == (0, first.epoch + 1)
    assert (waits.code, waits.response.member_id) == (E.REBALANCE_IN_PROGRESS, first.id)
    for member in (first, second):
        assert member.rejoin() == 0
        assert member.rejoin() == 0
    targets = [each.target_assignment.topic_partitions for each in bench.new.describe().members]
    assert sorted(place for topics in targets for place in topics[0].partitions) == [0, 1, 2, 3]


def test_what_a_generation_that_was_cut_short_had_is_not_given_to_others() -> None:
    """A generation has begun, but its leader has not assigned yet when a KIP-848 consumer joins.

    The cooperative member still owns its partitions, and the consumer does not get them.
    """
    bench = MixedBench()
    (first,) = bench.classic_group("a")
    first.asked = first.send_join()
    first.joined()  # the generation begins, and nobody has assigned
    late = ClassicMember(bench, "late")
    late.asked = late.send_join()
    assert bench.state() == "PreparingRebalance"
    answer = bench.new.join("b")
    assert bench.new.assigned(answer) == {}
    described = {each.member_id: each for each in bench.new.describe().members}
    held = described[first.id].assignment.topic_partitions
    assert [sorted(each.partitions) for each in held] == [[0, 1, 2, 3]]


def test_a_group_in_its_first_rebalance_is_turned_too() -> None:
    bench = MixedBench(group_initial_rebalance_delay_ms=3000)
    member = ClassicMember(bench, "a")
    member.asked = member.send_join()
    assert member.asked.waits
    answer = bench.new.join("b")
    bench.run()
    assert (answer.error_code, answer.member_epoch) == (0, 2)
    assert member.asked.code == E.REBALANCE_IN_PROGRESS
    member.id = member.asked.response.member_id
    assert member.rejoin() == 0
    assert member.owned
    assert bench.new.describe().group_epoch == 2


def test_a_static_member_that_turns_a_group_in_a_rebalance_has_it_assigned_anew() -> None:
    """A KIP-848 consumer replaces a classic static member with the same subscription during a rebalance.

    Such a replacement alone needs no new assignment, but the interrupted rebalance does.
    """
    bench = MixedBench()
    (static,) = bench.classic_group("a", instance="i")
    other = ClassicMember(bench, "b")
    other.asked = other.send_join()
    assert bench.state() == "PreparingRebalance"
    assert bench.new.join("new", instance_id="i").member_epoch == static.epoch + 1
    bench.new.beat("new", static.epoch + 1, owned=[0, 1, 2, 3])
    targets = [each.target_assignment.topic_partitions for each in bench.new.describe().members]
    assert sorted(len(topics[0].partitions) for topics in targets) == [2, 2]


@pytest.mark.parametrize("policy", ["disabled", "Downgrade"])
def test_the_policy_may_forbid_the_way_up(policy: str) -> None:
    bench = MixedBench(group_consumer_migration_policy=policy)
    (classic,) = bench.classic_group("a")
    answer = bench.new.join("b")
    assert answer.error_code == E.GROUP_ID_NOT_FOUND
    assert policy.lower() in answer.error_message
    assert classic.beat() == 0
    assert bench.state() == "Stable"


def test_what_cannot_be_turned_stays_classic() -> None:
    bench = MixedBench()
    user_data = encode_assignment(tops(0), b"mine")
    for group, fields, assignment in (
        ("connect", {"protocol_type": "connect"}, b""),
        ("odd", {"protocols": {"range": b"\xff"}}, b""),
        ("own", {}, user_data),
        ("torn", {}, b"\0\1\0"),
    ):
        response = bench.join("", group=group, **fields).response
        bench.sync(response.member_id, 1, {response.member_id: assignment}, group=group)
        assert bench.new.join("b", group).error_code == E.GROUP_ID_NOT_FOUND, group
        assert bench.new.beat("b", 5, group).error_code == E.GROUP_ID_NOT_FOUND
        assert bench.state(group) == "Stable"
    assert {kind for kind, _, _ in listed(bench)} == {"classic"}
    assert "an unsupported custom assignor is in use" in bench.new.join("b", "own").error_message


def test_a_group_with_too_many_members_stays_classic() -> None:
    bench = MixedBench(group_consumer_max_size=1)
    bench.classic_group("a", "b")
    assert bench.new.join("c").error_code == E.GROUP_ID_NOT_FOUND
    (alone,) = MixedBench(group_consumer_max_size=1).classic_group("a")
    assert alone.bench.new.join("c").error_code == E.GROUP_MAX_SIZE_REACHED
    assert alone.beat() == 0


def test_a_group_that_cannot_be_stored_stays_classic(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = MixedBench()
    (classic,) = bench.classic_group("a")
    with monkeypatch.context() as patch:
        patch.setattr(bench.node.groups.store.topic, "append", _refuse)
        assert bench.new.join("b").error_code == E.NOT_COORDINATOR
    assert classic.beat() == 0
    assert bench.new.join("b").member_epoch == 2


def _refuse(*what: Any) -> None:
    raise StorageError("the disk refuses")


# --- the way down ----------------------------------------------------------------------------------------


def test_the_last_consumer_that_leaves_makes_the_group_classic() -> None:
    bench, classic, epoch = shared()
    assert bench.new.beat("b", -1).error_code == 0
    assert listed(bench) == [("classic", "PreparingRebalance", "consumer")]
    assert classic.beat() == E.REBALANCE_IN_PROGRESS
    classic.asked = classic.send_join()
    classic.joined()
    assert classic.epoch == epoch + 1, "the generation goes on from the epoch"
    answer = bench.sync(classic.id, classic.epoch, {classic.id: encode_assignment(tops(0, 1, 2, 3))})
    classic.take(answer.response.assignment)
    assert classic.owned == [0, 1, 2, 3]
    assert classic.beat() == 0
    assert bench.new.join("c").member_epoch == epoch + 2, "and back"


@pytest.mark.parametrize("seconds", [46, 31])
def test_the_last_consumer_that_is_fenced_makes_the_group_classic(seconds: int) -> None:
    """The consumer is fenced because its session ends, or because it does not revoke partitions in time."""
    bench, classic, epoch = shared()
    if seconds == 31:
        late = ClassicMember(bench, "late")
        assert late.join() == 0
        bench.wait(1100)
        assert late.rejoin() == 0
        bench.new.beat("b", epoch)
    for _ in range(seconds // 5 + 1):
        bench.wait(5000)
        if seconds == 31 and bench.node.groups.consumer.groups:
            bench.new.beat("b", epoch)
        classic.beat()
    assert [kind for kind, _, _ in listed(bench)] == ["classic"]


@pytest.mark.parametrize("instance_id", [None, "i", "j"])
def test_a_disabled_policy_keeps_classic_members_out_of_a_consumer_group(instance_id: str | None) -> None:
    bench = MixedBench(group_consumer_migration_policy="disabled")
    assert bench.new.join("a", instance_id="i").error_code == 0
    classic = ClassicMember(bench, "b", instance_id)
    assert classic.join() == E.INCONSISTENT_GROUP_PROTOCOL
    assert bench.ask(join_request(""), 5).response.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert listed(bench) == [("consumer", "Stable", "consumer")]


def test_the_policy_may_forbid_the_way_down() -> None:
    bench, classic, _ = shared(group_consumer_migration_policy="upgrade")
    bench.new.beat("b", -1)
    assert listed(bench) == [("consumer", "Assigning", "consumer")]
    assert classic.beat() == 0
    bench.wait(1100)
    assert classic.beat() == E.REBALANCE_IN_PROGRESS  # nobody else would have the target computed
    assert (classic.rejoin(), classic.owned) == (0, [0, 1, 2, 3])
    assert classic.beat() == 0
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=6, assignments=None)], timeout_ms=1000
    )
    assert bench.ask(more).response.results[0].error_code == 0
    bench.wait(1100)
    assert classic.beat() == E.REBALANCE_IN_PROGRESS
    assert (classic.rejoin(), classic.owned) == (0, [0, 1, 2, 3, 4, 5])
    assert classic.beat() == 0


def test_too_many_members_for_a_classic_group_stay_a_consumer_group() -> None:
    bench = MixedBench(group_max_size=1)
    (classic,) = bench.classic_group("a")
    bench.new.join("b")
    assert ClassicMember(bench, "c").join() == 0
    bench.new.beat("b", -1)
    assert [kind for kind, _, _ in listed(bench)] == ["consumer"]
    assert classic.leave() == 0  # and now there is one
    assert [kind for kind, _, _ in listed(bench)] == ["classic"]


def test_a_way_down_that_cannot_be_stored_has_not_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, classic, epoch = shared()
    with monkeypatch.context() as patch:
        patch.setattr(bench.node.groups.store.topic, "append", _refuse)
        assert bench.new.beat("b", -1).error_code == E.NOT_COORDINATOR
    assert bench.new.beat("b", epoch).error_code == 0
    assert classic.beat() == 0
    assert not bench.node.groups.coordinator.groups


def test_a_static_member_comes_back_by_the_other_protocol_and_keeps_its_partitions() -> None:
    bench = MixedBench()
    first = bench.new.join("one", instance_id="i")
    assert (first.member_epoch, bench.new.assigned(first)) == (2, {"t": [0, 1, 2, 3]})
    classic = ClassicMember(bench, "two", "i")
    assert classic.join() == 0
    assert classic.epoch == 2
    assert listed(bench) == [("classic", "Stable", "consumer")]
    assert (classic.sync(), classic.owned) == (0, [0, 1, 2, 3])
    assert order(bench.new)[-1] == [-8, -7, -5, 5, 7, 8, 5, 8, -8, -7, -6, -5, -4, -3, 2]
    assert bench.new.beat("one", 2, instance_id="i").error_code == E.GROUP_ID_NOT_FOUND
    back = bench.new.join("three", instance_id="i")
    assert (back.member_epoch, bench.new.assigned(back)) == (2, {"t": [0, 1, 2, 3]})
    assert classic.beat() == E.FENCED_INSTANCE_ID
    assert listed(bench) == [("consumer", "Stable", "consumer")]


def test_a_static_member_with_its_own_id_has_to_be_the_one_with_the_instance_id() -> None:
    bench = MixedBench()
    bench.new.join("one", instance_id="i")
    bench.new.join("other")
    for member_id, instance, code in (("one", "j", E.UNKNOWN_MEMBER_ID), ("x", "i", E.FENCED_INSTANCE_ID)):
        answer = bench.join(member_id, instance=instance, version=5).response
        assert (answer.error_code, answer.member_id) == (code, "")


# --- classic members -------------------------------------------------------------------------------------


def test_who_may_join_a_consumer_group() -> None:
    bench = MixedBench(group_consumer_max_size=2)
    bench.new.join("b")
    for fields, code in (
        ({"protocol_type": "connect"}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_timeout_ms": 1}, E.INVALID_SESSION_TIMEOUT),
        ({"protocols": {"range": b"\0"}}, E.UNKNOWN_SERVER_ERROR),
    ):
        assert bench.join(**fields).code == code
    given = bench.join(version=4).response
    assert given.error_code == E.MEMBER_ID_REQUIRED
    assert given.member_id
    joined = bench.join("of-its-own", version=4).response
    assert (joined.error_code, joined.member_id) == (0, "of-its-own")
    full = bench.join().response
    assert (full.error_code, full.member_id) == (E.GROUP_MAX_SIZE_REACHED, "")
    alien = bench.join("of-its-own", protocols=("sticky",)).response
    assert alien.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    members = {each.member_id: each.member_type for each in bench.new.describe().members}
    assert members == {"b": 1, "of-its-own": 0}
    old = bench.ask(DescribeGroupsRequest(groups=["g"]), 5).response.groups[0]
    assert (old.error_code, old.group_state, old.members) == (0, "Dead", [])


def test_a_member_that_is_out_gives_up_what_it_had_before_it_is_let_in_again() -> None:
    """A classic member whose session ended gets UNKNOWN_MEMBER_ID first, so that it drops its partitions.

    Other members may own them already; Apache Kafka lets it in at once, and both read the partitions.
    """
    bench, classic, epoch = shared()
    for _ in range(13):
        bench.wait(1000)  # the session of the classic member ends
        bench.new.beat("b", epoch)
    assert classic.join() == E.UNKNOWN_MEMBER_ID
    classic.owned = []
    assert classic.rejoin() == 0


def test_what_a_classic_member_is_refused() -> None:
    bench, classic, _epoch = shared()
    member_id = classic.id
    classic.epoch += 1
    assert [classic.beat(), classic.sync()] == [E.ILLEGAL_GENERATION] * 2
    classic.epoch -= 1
    classic.protocols = ("sticky",)
    assert classic.sync() == E.INCONSISTENT_GROUP_PROTOCOL
    classic.protocols = ("range",)
    classic.id = "b"  # a member of the other protocol
    assert [classic.beat(), classic.sync()] == [E.UNKNOWN_MEMBER_ID] * 2
    classic.id, classic.instance = member_id, "nobody"
    assert [classic.beat(), classic.sync()] == [E.UNKNOWN_MEMBER_ID] * 2
    classic.instance = None
    bench.wait(1100)
    bench.new.join("c")
    assert classic.sync() == E.REBALANCE_IN_PROGRESS


def refusals(bench: Bench, member_id: str, generation: int) -> list[int]:
    """Send classic requests with wrong member ids, epochs or instance ids; return the error codes."""
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    wrong = [
        ("nobody", generation, None),
        (member_id, generation + 1, None),
        (member_id, generation, "nobody"),
        ("nobody", generation, "i"),
    ]
    codes = [bench.heartbeat(one, epoch, group_instance_id=instance) for one, epoch, instance in wrong]
    codes += [
        bench.sync(one, epoch, group_instance_id=instance, **named).code for one, epoch, instance in wrong
    ]
    codes += [
        bench.sync(member_id, generation, protocol_type=kind, protocol_name=name).code
        for kind, name in (("connect", "range"), ("consumer", "sticky"))
    ]
    codes += [
        bench.join(version=5, **fields).code
        for fields in (
            {"session_timeout_ms": 1},
            {"protocol_type": "connect"},
            {"protocols": ("sticky",)},
            {"member_id": "nobody", "instance": "i"},
            {"member_id": "nobody", "instance": "nobody"},
            {},
        )
    ]
    return codes + bench.leave("nobody", ("nobody", "i"), ("", "nobody"), (member_id, "nobody"))


def test_groups_of_both_types_refuse_the_same_with_the_same_errors() -> None:
    classic = MixedBench()
    leader, static = classic.classic_group("a")[0], ClassicMember(classic, "s", "i")
    waits = static.send_join()
    leader.asked = leader.send_join()
    assert waits.code == leader.asked.code == 0
    leader.joined()
    consumer, member, _ = shared()
    assert consumer.new.join("s", instance_id="i").error_code == 0
    codes = refusals(classic, leader.id, leader.epoch)
    assert codes == refusals(consumer, member.id, member.epoch)
    of_member = [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID]
    of_protocol = [E.INCONSISTENT_GROUP_PROTOCOL] * 2
    of_join = [
        E.INVALID_SESSION_TIMEOUT,
        *of_protocol,
        E.FENCED_INSTANCE_ID,
        E.UNKNOWN_MEMBER_ID,
        E.MEMBER_ID_REQUIRED,
    ]
    of_leave = [E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID, E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID]
    assert codes == [*of_member, *of_member, *of_protocol, *of_join, *of_leave]


def test_who_leaves_twice_in_one_request() -> None:
    """LeaveGroup names one member twice. A classic group answers UNKNOWN_MEMBER_ID for the second entry.

    A consumer group looks up all entries before it removes one, and answers 0 for both. Apache Kafka does so,
    too.
    """
    bench = MixedBench()
    (member,) = bench.classic_group("a")
    assert bench.leave(member.id, member.id) == [0, E.UNKNOWN_MEMBER_ID]
    bench, member, _ = shared()
    assert bench.leave(member.id, member.id) == [0, 0]


def test_a_classic_member_has_its_session_and_its_times_to_join_and_to_sync() -> None:
    bench, classic, epoch = shared()
    bench.wait(10_100)  # the session of the classic member is 10 s
    assert {each.member_id for each in bench.new.describe().members} == {"b"}

    def keeps(seconds: int) -> bool:
        for _ in range(seconds):
            bench.wait(1000)
            bench.new.beat("b", epoch)
            classic.beat()
        return classic.id in {each.member_id for each in bench.new.describe().members}

    bench, classic, epoch = shared()
    assert keeps(40), "it does what it was asked to do"
    bench.new.join("c")
    bench.wait(1100)
    bench.new.beat("c", epoch)
    assert classic.beat() == E.REBALANCE_IN_PROGRESS
    assert keeps(25)
    assert not keeps(10), "it has not joined again within 30 s"
    bench, classic, epoch = shared()
    assert classic.join() == 0
    assert keeps(25)
    assert not keeps(10), "it has joined and not asked for its assignment"


def test_a_classic_member_turns_by_a_heartbeat_of_its_own() -> None:
    bench, classic, _epoch = shared()
    answer = bench.new.beat(classic.id, classic.epoch, owned=[0, 1])
    assert (answer.error_code, answer.member_epoch) == (0, classic.epoch)
    assert {each.member_type for each in bench.new.describe().members} == {1}
    assert classic.beat() == E.UNKNOWN_MEMBER_ID


def test_members_of_both_protocols_leave_by_the_classic_one() -> None:
    bench, classic, _epoch = shared()
    bench.new.join("s", instance_id="i")
    response = bench.ask(leave_request(classic.id, ("", "i"), "nobody", ("x", "i"))).response
    codes = [each.error_code for each in response.members]
    assert codes == [0, 0, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID]
    assert [each.member_id for each in bench.new.describe().members] == ["b"]
    assert bench.leave("nobody") == [E.UNKNOWN_MEMBER_ID]


def test_members_of_both_protocols_commit() -> None:
    bench, classic, epoch = shared()
    assert bench.commit(7, classic.id, classic.epoch) == 0
    assert bench.new.commit("b", epoch, (2,)) == [0]
    assert bench.commit(7, classic.id, classic.epoch + 1) == E.ILLEGAL_GENERATION
    assert bench.commit(7, classic.id, 0) == E.ILLEGAL_GENERATION
    assert bench.new.commit(classic.id, classic.epoch, (0,), version=5) == [0]
    assert bench.new.commit("b", epoch, (2,), version=5) == [E.UNSUPPORTED_VERSION]
    for member, generation, code in ((classic.id, classic.epoch, 0), (classic.id, 9, 22), ("b", 9, 113)):
        asked = OffsetFetchRequestGroup(
            group_id="g",
            member_id=member,
            member_epoch=generation,
            topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
        )
        answer = bench.ask(OffsetFetchRequest(groups=[asked]), 9).response.groups[0]
        assert answer.error_code == code
    bench.new.beat("b", -1)
    assert bench.committed("t", 2) == 5
    assert bench.committed("t", 0) == 5


# --- restarts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", range(8))
def test_a_restart_at_any_step_changes_nothing(when: int) -> None:
    bench = MixedBench()
    (classic,) = bench.classic_group("a")
    steps = [
        lambda: bench.new.join("b").member_epoch == 2,
        lambda: classic.beat() == E.REBALANCE_IN_PROGRESS,
        lambda: classic.join() == 0,
        lambda: (classic.sync(), classic.owned) == (0, [0, 1]),
        lambda: classic.rejoin() == 0,
        lambda: bench.new.assigned(bench.new.beat("b", 2)) == {"t": [2, 3]},
        lambda: classic.beat() == 0,
        lambda: bench.new.beat("b", -1).error_code == 0,
        lambda: classic.beat() == E.REBALANCE_IN_PROGRESS,
    ]
    for number, step in enumerate(steps[: 8 if when == 7 else 9]):
        if number == when:
            bench = classic.bench = bench.again()
        assert step(), number


def test_a_group_that_has_come_down_is_classic_after_a_restart() -> None:
    bench, classic, epoch = shared()
    bench.new.beat("b", -1)
    bench = classic.bench = bench.again()
    assert bench.state() == "Stable"
    assert listed(bench) == [("classic", "Stable", "consumer")]
    member = bench.node.groups.coordinator.groups["g"].members[classic.id]
    assert [place.partition for place in decode_assignment(member.assignment)] == [0, 1]
    assert bench.node.groups.coordinator.groups["g"].generation == epoch


def test_subscriptions_of_every_version_are_read() -> None:
    for version in range(5):
        bench = MixedBench()
        bench.new.join("b")
        written = encode_subscription(Subscription(("t",), rack="r"), min(version, 3))
        metadata = version.to_bytes(2, "big") + written[2:]
        answer = bench.ask(join_request("m", protocols={"range": metadata}), 4).response
        assert answer.error_code == 0
        synced = bench.sync("m", answer.generation_id).response
        assert synced.assignment[:2] == min(version, 3).to_bytes(2, "big")
        (rack,) = {each.rack_id for each in bench.new.describe().members if each.member_id == "m"}
        assert rack == ("r" if version >= 3 else None)
