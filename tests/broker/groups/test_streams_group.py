"""Tests of streams groups (KIP-1071) at one broker: members, tasks, topics, offsets and refused requests."""

from __future__ import annotations

from typing import Any

import pytest

from broker.bench_node import ask, make_topic
from broker.groups.requests import join_request
from broker.groups.share_bench import ShareBench
from broker.groups.streams_bench import (
    StreamsBench,
    internal,
    subtopology,
    task_ids,
    tasks_in,
    topology_of,
    word_count,
)
from for_each import for_each
from penstock.broker.groups.streams.reconciliation import reconcile
from penstock.broker.groups.streams.state import Current, MemberState
from penstock.broker.groups.streams.tasks import NO_TASKS, Tasks
from penstock.broker.metadata.planning import Planner
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.field_values import GROUP_RESOURCE
from penstock.protocol.messages import offset_commit_request as commits
from penstock.protocol.messages import streams_group_heartbeat_request as asked
from penstock.protocol.messages.alter_configs_request import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from penstock.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

STALE, NO_SOURCE, WRONG, NO_INTERNAL, SHUTDOWN, DELAYED, NO_TAGS = range(7)
NO_DELAY = {"group_streams_initial_rebalance_delay_ms": 0}

OFFSET = asked.TaskOffset(subtopology_id="1", partition=0, offset=7)

EVERYTHING = {"0": [0, 1, 2], "1": [0, 1, 2]}


def statuses(answer: Any) -> list[int]:
    assert answer.error_code == 0, answer.error_message
    return [each.status_code for each in answer.status]


def partitions(bench: StreamsBench) -> dict[str, int]:
    return {
        name: len(topic.partitions) for name, topic in bench.node.cluster.topics.items() if name[0] != "_"
    }


def commit(
    bench: StreamsBench, member: str, epoch: int, topic: str = "t", index: int = 0, version: int = 9
) -> int:
    part = commits.OffsetCommitRequestPartition(partition_index=index, committed_offset=7)
    request = commits.OffsetCommitRequest(
        group_id="g",
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[commits.OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )
    code: int = ask(bench.node, request, version).topics[0].partitions[0].error_code
    return code


# --- joining, and internal topics ------------------------------------------------------------------------


def test_the_first_member_has_its_internal_topics_made_and_its_tasks_after_the_delay() -> None:
    bench = StreamsBench()
    joined = bench.join("a")
    assert (joined.member_epoch, statuses(joined)) == (1, [DELAYED, NO_INTERNAL])
    assert (joined.active_tasks, joined.standby_tasks, joined.warmup_tasks) == ([], [], [])
    assert partitions(bench) == {"t": 3, "r": 3, "c": 3}
    assert bench.node.cluster.topic("c").config.overrides == {"cleanup.policy": "compact"}
    bench.wait(1)
    waiting = bench.beat("a", 1)
    assert (waiting.member_epoch, statuses(waiting), waiting.active_tasks) == (1, [DELAYED], None)
    bench.wait(2.1)
    beaten = bench.beat("a", 1)
    assert (beaten.member_epoch, statuses(beaten)) == (3, [])
    assert tasks_in(beaten.active_tasks) == EVERYTHING
    assert beaten.heartbeat_interval_ms == 5000
    assert bench.beat("a", 3).active_tasks is None
    assert bench.describe().group_state == "Stable"


def test_members_that_wait_beat_as_soon_as_there_is_something_to_get() -> None:
    bench = StreamsBench()
    assert bench.join("a").heartbeat_interval_ms == 3020
    bench.wait(3.02)
    assert bench.beat("a", 1).member_epoch == 3
    assert bench.join("b").heartbeat_interval_ms == 1020


def test_tasks_are_given_up_before_another_member_gets_them() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a")
    bench.settle("a")
    epoch = bench.epochs["a"]
    joined = bench.join("b")
    assert (joined.member_epoch, joined.active_tasks) == (epoch + 1, [])
    shrunk = bench.beat("a", epoch)
    kept = tasks_in(shrunk.active_tasks)
    assert shrunk.member_epoch == epoch
    assert kept != EVERYTHING
    assert bench.describe().group_state == "Reconciling"
    for owned in (None, (EVERYTHING, {})):
        assert bench.beat("a", epoch, owned=owned).member_epoch == epoch, "nothing has been given up"
        assert bench.beat("b", epoch + 1).active_tasks is None
    assert bench.beat("a", epoch, owned=(kept or {}, {})).member_epoch == epoch + 1
    got = tasks_in(bench.beat("b", epoch + 1).active_tasks)
    assert got == {each: [x for x in range(3) if x not in (kept or {}).get(each, [])] for each in EVERYTHING}
    assert bench.describe().group_state == "Stable"


def test_a_lost_answer_is_told_again() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a")
    bench.wait(1.1)
    lost = bench.beat("a", 2)
    assert tasks_in(lost.active_tasks) == EVERYTHING
    again = bench.beat("a", 2, owned=({}, {}))
    assert (again.member_epoch, tasks_in(again.active_tasks)) == (lost.member_epoch, EVERYTHING)
    assert bench.beat("a", 2).error_code == E.FENCED_MEMBER_EPOCH
    assert bench.beat("a", 2, owned=({"0": [0]}, {"1": [0]})).error_code == E.FENCED_MEMBER_EPOCH


def test_standby_tasks_are_kept_by_other_processes() -> None:
    bench = StreamsBench(**NO_DELAY, group_streams_num_standby_replicas=1)
    for member, process in (("a1", "p"), ("a2", "p"), ("b", "q")):
        bench.join(member, process=process)
    assigned = bench.settle("a1", "a2", "b")
    active = {member: tasks.get("1", []) for member, (tasks, _) in assigned.items()}
    standby = {member: tasks for member, (_, tasks) in assigned.items()}
    assert sorted(index for tasks in active.values() for index in tasks) == [0, 1, 2]
    assert standby["b"].get("1", []) == sorted(active["a1"] + active["a2"])
    assert sorted(standby["a1"].get("1", []) + standby["a2"].get("1", [])) == active["b"]
    assert all("0" not in tasks for tasks in standby.values()), "a subtopology without state has standbys"


def test_the_number_of_standbys_is_a_setting_of_the_group() -> None:
    bench = StreamsBench(**NO_DELAY)
    for member in ("a", "b"):
        bench.join(member)
    assert not any(standby for _, standby in bench.settle("a", "b").values())
    value = AlterableConfig(name="streams.num.standby.replicas", value="1")
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g", configs=[value])
    assert ask(bench.node, AlterConfigsRequest(resources=[resource]), 2).responses[0].error_code == 0
    assert sum(len(tasks["1"]) for _, tasks in bench.settle("a", "b").values()) == 3


def test_a_member_that_is_gone_leaves_its_tasks_to_the_others() -> None:
    bench = StreamsBench(**NO_DELAY)
    for member in ("a", "b"):
        bench.join(member)
    bench.settle("a", "b")
    for _ in range(10):
        bench.wait(5)
        bench.beat("a", bench.epochs["a"])
    assert set(bench.assigned()) == {"a"}
    assert bench.settle("a") == {"a": (EVERYTHING, {})}
    left = bench.beat("a", -1)
    assert (left.member_epoch, left.heartbeat_interval_ms, left.status) == (-1, 0, [])
    assert bench.describe().group_state == "Empty"
    assert bench.beat("a", -1).error_code == E.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_tasks_in_time_is_out() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a", rebalance_timeout_ms=4000)
    bench.settle("a")
    bench.join("b")
    bench.wait(1.1)
    bench.beat("b", bench.epochs["a"])
    for _ in range(3):
        bench.beat("a", bench.epochs["a"])
        bench.wait(2)
    assert bench.beat("a", bench.epochs["a"]).error_code == E.UNKNOWN_MEMBER_ID


def test_a_task_that_changes_its_role_keeps_its_state() -> None:
    bench = StreamsBench(**NO_DELAY, group_streams_num_standby_replicas=1)
    topology = topology_of(subtopology(0, "t", state_changelog_topics=[internal("c")]))
    bench.join("a", topology)
    bench.settle("a")
    epoch = bench.epochs["a"]
    bench.join("b", topology)
    bench.wait(1.1)
    bench.beat("b", epoch + 1)
    turned = bench.beat("a", epoch)
    kept, standby = tasks_in(turned.active_tasks), tasks_in(turned.standby_tasks)
    assert (kept, standby) == ({"0": [0, 1]}, {"0": [2]}), "one is active no more, and a standby task at once"
    bench.beat("a", epoch, owned=(kept or {}, standby or {}))
    assert bench.settle("a", "b")["b"] == ({"0": [2]}, {"0": [0, 1]})
    bench.beat("a", -1)
    assert bench.settle("b")["b"] == ({"0": [0, 1, 2]}, {})


def test_a_member_that_reports_a_task_in_an_earlier_role_has_not_given_it_up() -> None:
    task, nobody = frozenset([("1", 0)]), lambda task, as_active: False
    current = Current(3, 2, MemberState.STABLE, Tasks(active=task), epochs={("1", 0): 3})
    for owned, state in (
        (None, MemberState.UNREVOKED),
        (Tasks(active=task), MemberState.UNREVOKED),
        (Tasks(standby=task), MemberState.UNREVOKED),
        (NO_TASKS, MemberState.STABLE),
    ):
        assert reconcile(current, NO_TASKS, 4, owned, nobody).state is state, owned
        waiting = reconcile(current, Tasks(standby=task), 4, owned, lambda task, as_active: True)
        assert waiting.assigned == NO_TASKS, "another member of its process has it"


# --- static members --------------------------------------------------------------------------------------


def test_a_static_member_that_returns_has_its_tasks_at_once() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a", process="p", instance_id="i", user_endpoint=asked.Endpoint(host="p", port=1))
    bench.join("b")
    assigned = bench.settle("a", "b")
    epoch = bench.describe().group_epoch
    left = bench.beat("a", -2, instance_id="i")
    assert (left.member_epoch, left.heartbeat_interval_ms, left.status) == (-2, 0, [])
    assert bench.describe().group_state == "Reconciling"
    assert bench.assigned() == assigned
    assert bench.beat("a", bench.epochs["a"], instance_id="i").error_code == E.FENCED_MEMBER_EPOCH
    back = bench.join("c", process="p", instance_id="i", user_endpoint=asked.Endpoint(host="p", port=1))
    assert (back.member_epoch, tasks_in(back.active_tasks)) == (epoch, assigned["a"][0])
    described = bench.describe()
    assert (described.group_epoch, described.group_state) == (epoch, "Stable")
    assert bench.assigned() == {"c": assigned["a"], "b": assigned["b"]}
    assert [each.instance_id for each in described.members] == [None, "i"]
    again = bench.restarted()
    assert again.beat("c", epoch, instance_id="i").error_code == 0
    assert again.beat("a", epoch, instance_id="i").error_code == E.FENCED_INSTANCE_ID


def test_a_static_member_has_to_return_before_its_session_ends() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a", instance_id="i")
    bench.join("b")
    bench.settle("a", "b")
    bench.beat("a", -2, instance_id="i")
    for _ in range(10):
        bench.wait(5)
        bench.beat("b", bench.epochs["b"])
    assert bench.settle("b") == {"b": (EVERYTHING, {})}
    assert bench.node.groups.streams.groups["g"].stored.instances == {}


def test_a_static_member_that_has_to_give_up_tasks_may_leave_for_longer_than_that_takes() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a", instance_id="i", rebalance_timeout_ms=4000)
    bench.settle("a")
    bench.join("b")
    bench.wait(1.1)
    bench.beat("b", bench.epochs["a"])
    bench.beat("a", bench.epochs["a"], instance_id="i")
    bench.beat("a", -2, instance_id="i")
    bench.wait(10)
    assert bench.join("c", instance_id="i").error_code == 0


def test_a_static_member_that_has_changed_gets_a_new_assignment() -> None:
    for more, raised in (({}, 0), ({"client_tags": []}, 0), ({"rack_id": "r"}, 1), ({"process": "q"}, 1)):
        bench = StreamsBench(**NO_DELAY)
        bench.join("a", instance_id="i")
        bench.settle("a")
        epoch = bench.describe().group_epoch
        bench.beat("a", -2, instance_id="i")
        bench.join("c", instance_id="i", **{"process": "a", **more})
        assert bench.describe().group_epoch == epoch + raised, more


def test_an_instance_id_belongs_to_one_member() -> None:
    bench = StreamsBench(**NO_DELAY, group_streams_max_size=1)
    bench.join("a", instance_id="i")
    bench.settle("a")
    epoch = bench.epochs["a"]
    assert bench.join("b", instance_id="i").error_code == E.UNRELEASED_INSTANCE_ID
    assert bench.join("b", instance_id="j").error_code == E.GROUP_MAX_SIZE_REACHED
    for number in (epoch, -1, -2):
        assert bench.beat("b", number, instance_id="i").error_code == E.FENCED_INSTANCE_ID
        assert bench.beat("a", number, instance_id="j").error_code == E.UNKNOWN_MEMBER_ID
    assert bench.beat("a", epoch, instance_id="i").error_code == 0
    assert bench.join("a", instance_id="i").error_code == 0, "the answer to its join was lost"
    assert bench.beat("a", -1, instance_id="i").error_code == 0
    assert bench.describe().members == []


def test_a_broker_as_4_3_has_neither_static_members_nor_task_offsets() -> None:
    bench = StreamsBench(as_version="4.3", **NO_DELAY)
    for wrong in ({"instance_id": "i"}, {"task_offsets": []}, {"task_end_offsets": []}):
        assert bench.join("a", **wrong, version=0).error_code == E.INVALID_REQUEST, wrong
    assert bench.join("a", version=0).task_offset_interval_ms == 0
    bench.beat("a", -1, version=0)
    assert bench.order()[-1] == [-22, -21, -19, 17]


# --- offsets of tasks, client tags -----------------------------------------------------------------------


def test_task_offsets_are_kept_as_long_as_the_member_is_in() -> None:
    bench = StreamsBench(**NO_DELAY)
    joined = bench.join("a", task_offsets=[OFFSET])
    assert (joined.task_offset_interval_ms, joined.acceptable_recovery_lag) == (60_000, 10_000)
    others = [asked.TaskOffset(subtopology_id="0", partition=index, offset=9) for index in (2, 1)]
    bench.beat("a", joined.member_epoch, task_end_offsets=others)
    (member,) = bench.describe().members
    told = [[(e.subtopology_id, e.partition, e.offset) for e in listed] for listed in (
        member.task_offsets, member.task_end_offsets
    )]  # fmt: skip
    assert told == [[("1", 0, 7)], [("0", 1, 9), ("0", 2, 9)]]
    state = bench.node.groups.streams.groups["g"].stored
    assert state.task_offsets == 3
    bench.beat("a", joined.member_epoch, task_offsets=[], task_end_offsets=[])
    assert bench.node.groups.streams.groups["g"].stored.task_offsets == 0
    bench.beat("a", joined.member_epoch, task_offsets=[OFFSET])
    bench.beat("a", -1)
    state = bench.node.groups.streams.groups["g"].stored
    assert (state.task_offsets, state.offsets) == (0, {})


def test_task_offsets_count_as_memory() -> None:
    bench = StreamsBench(**NO_DELAY)
    epoch = bench.join("a").member_epoch
    before = bench.node.groups.streams.coordinator.size_bytes
    offsets = [asked.TaskOffset(subtopology_id="1", partition=index, offset=1) for index in range(1000)]
    bench.beat("a", epoch, task_offsets=offsets)
    assert bench.node.groups.streams.coordinator.size_bytes > before + 100_000
    bench.node.kept.has_room_for = lambda *what, **more: False  # type: ignore[method-assign]
    assert bench.beat("a", epoch, task_end_offsets=offsets).error_code == E.COORDINATOR_NOT_AVAILABLE


def test_who_lacks_client_tags_is_told() -> None:
    bench = StreamsBench(**NO_DELAY, group_streams_rack_aware_assignment_tags="zone,rack")
    joined = bench.join("a", client_tags=[asked.KeyValue(key="rack", value="r")])
    assert statuses(joined)[-1] == NO_TAGS
    assert "assignment: [zone]." in joined.status[-1].status_detail
    assert NO_TAGS not in statuses(bench.beat("a", joined.member_epoch, version=0))
    assert bench.node.groups.streams.groups["g"].stored.group.configs == (
        ("num.standby.replicas", "0"),
        ("rack.aware.assignment.tags", "zone,rack"),
    )


def test_a_description_names_the_assignor_and_has_no_description_of_the_topology() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a")
    described = bench.describe()
    assert (described.assignor_name, described.topology_description_status) == ("sticky", 0)
    described = bench.describe(include_topology_description=True)
    assert (described.topology_description, described.topology_description_status) == (None, 1)


# --- topologies that have to wait ------------------------------------------------------------------------


def test_a_missing_source_topic_is_waited_for() -> None:
    bench = StreamsBench(**NO_DELAY)
    topology = topology_of(subtopology(0, "later"))
    joined = bench.join("a", topology)
    assert statuses(joined) == [NO_SOURCE]
    assert joined.heartbeat_interval_ms == 5000
    assert bench.describe().group_state == "NotReady"
    make_topic(bench.node, "later", partitions=2)
    assert bench.settle("a") == {"a": ({"0": [0, 1]}, {})}
    bench.node.cluster.delete_topics([bench.node.cluster.topic("later")], bench.clock.now_ms())
    assert statuses(bench.beat("a", bench.epochs["a"]))[-1] == NO_SOURCE


def test_topics_that_belong_together_need_as_many_partitions() -> None:
    bench = StreamsBench(**NO_DELAY)
    make_topic(bench.node, "two", partitions=2)
    together = asked.CopartitionGroup(
        source_topics=[0, 1], source_topic_regex=[], repartition_source_topics=[]
    )
    topology = topology_of(subtopology(0, "t", "two", copartition_groups=[together]))
    assert statuses(bench.join("a", topology)) == [WRONG]
    assert bench.describe().group_state == "NotReady"


def test_internal_topics_with_other_partitions_are_not_used() -> None:
    bench = StreamsBench(**NO_DELAY)
    make_topic(bench.node, "r", partitions=5)
    joined = bench.join("a")
    assert statuses(joined) == [WRONG]
    assert "expected 3, found 5" in joined.status[0].status_detail
    assert partitions(bench) == {"t": 3, "r": 5}


def test_why_internal_topics_could_not_be_made_is_said() -> None:
    bench = StreamsBench(**NO_DELAY)
    bad = topology_of(subtopology(0, "t", state_changelog_topics=[internal("c", factor=3)]))
    detail = bench.join("a", bad).status[0].status_detail
    assert detail.startswith("Internal topics are missing: c; Creation failed: c (")


def test_an_older_topology_is_stale_and_another_one_refused() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a", word_count(epoch=1))
    assert statuses(bench.join("b", word_count(epoch=0)))[0] == STALE
    assert statuses(bench.join("c", word_count(epoch=1)))[:1] in ([], [DELAYED])
    for other in (word_count(epoch=2), topology_of(subtopology(0, "t"), epoch=1)):
        assert bench.join("d", other).error_code == E.INVALID_REQUEST


def test_a_request_to_shut_down_reaches_everybody_until_the_group_is_empty() -> None:
    bench = StreamsBench(**NO_DELAY)
    for member in ("a", "b"):
        bench.join(member)
    bench.settle("a", "b")
    assert SHUTDOWN in statuses(bench.beat("a", bench.epochs["a"], shutdown_application=True))
    assert SHUTDOWN in statuses(bench.beat("b", bench.epochs["b"]))
    for member in ("a", "b"):
        bench.beat(member, -1)
    assert SHUTDOWN not in statuses(bench.join("c"))


# --- what is refused -------------------------------------------------------------------------------------


@for_each(
    [
        {"member_id": ""},
        {"group_id": " "},
        {"rack_id": ""},
        {"instance_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topology": None},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"member_epoch": 1},
        {"active_tasks": None},
        {"active_tasks": task_ids({"0": [0]})},
        {"warmup_tasks": task_ids({"0": [0]})},
        {"task_offsets": [OFFSET, OFFSET]},
        {"task_end_offsets": [OFFSET] * 10_001},
        {"topology": topology_of(subtopology(0, "t", source_topic_regex=["t.*"]))},
    ]
)
def test_fields_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    bench = StreamsBench()
    fields = {
        "member_id": "a",
        "member_epoch": 0,
        "group_id": "g",
        "process_id": "p",
        "topology": word_count(),
    }
    fields |= {"rebalance_timeout_ms": 1000, "active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    request = asked.StreamsGroupHeartbeatRequest(**(fields | wrong))
    assert ask(bench.node, request, 0).error_code == E.INVALID_REQUEST
    assert not bench.node.groups.streams.groups


@pytest.mark.parametrize(
    "wrong",
    [
        topology_of(subtopology(0, "t", state_changelog_topics=[internal("c", 3)])),
        topology_of(subtopology(0)),
        topology_of(subtopology(0, "t"), subtopology(0, "t")),
        topology_of(subtopology(0, "__consumer_offsets")),
        topology_of(subtopology(0, "no topic")),
        topology_of(subtopology(0, repartition_source_topics=[internal("r")])),
        topology_of(subtopology(0, repartition_source_topics=[internal("r")], repartition_sink_topics=["r"])),
        topology_of(
            subtopology(
                0, "t", copartition_groups=[asked.CopartitionGroup(source_topics=[1], source_topic_regex=[])]
            )
        ),
    ],
)
def test_a_topology_that_cannot_be_is_refused(wrong: asked.Topology) -> None:
    bench = StreamsBench()
    assert bench.join("a", wrong).error_code == E.STREAMS_INVALID_TOPOLOGY
    assert not bench.node.groups.streams.groups


def test_strangers_and_members_with_wrong_epochs_are_refused() -> None:
    bench = StreamsBench(**NO_DELAY, group_streams_max_size=1)
    assert bench.beat("a", 1).error_code == E.GROUP_ID_NOT_FOUND
    bench.join("a")
    bench.settle("a")
    assert bench.join("b").error_code == E.GROUP_MAX_SIZE_REACHED
    assert bench.beat("b", 1).error_code == E.UNKNOWN_MEMBER_ID
    assert bench.beat("a", 99).error_code == E.FENCED_MEMBER_EPOCH
    for owned in ({"7": [0]}, {"0": [3]}):
        assert bench.beat("a", bench.epochs["a"], owned=(owned, {})).error_code == E.INVALID_REQUEST
    assert tasks_in(bench.join("a").active_tasks) == EVERYTHING


def test_groups_of_other_types_are_not_streams_groups() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a")
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="c",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert ask(bench.node, consumer, 1).error_code == E.GROUP_ID_NOT_FOUND
    shares = ShareBench(bench.store, bench.clock)
    assert shares.join("s", "t", group="g").error_code == E.GROUP_ID_NOT_FOUND
    assert ask(bench.node, join_request(group="g"), 4).error_code == E.INCONSISTENT_GROUP_PROTOCOL
    consumer.group_id = "other"
    assert ask(bench.node, consumer, 1).error_code == 0
    assert bench.join("a", group="other").error_code == E.GROUP_ID_NOT_FOUND
    assert bench.describe("other").error_code == E.GROUP_ID_NOT_FOUND


def test_a_group_without_members_changes_its_protocol() -> None:
    bench = StreamsBench(**NO_DELAY)
    assert commit(bench, "", -1) == 0
    assert "g" in bench.node.groups.coordinator.groups
    assert bench.join("a").error_code == 0
    assert "g" not in bench.node.groups.coordinator.groups
    assert bench.node.groups.offsets.of_group("g")["t", 0].offset == 7
    bench.beat("a", -1)
    assert ask(bench.node, join_request(group="g"), 4).error_code == E.MEMBER_ID_REQUIRED
    assert "g" not in bench.node.groups.streams.groups
    assert "g" not in bench.restarted().node.groups.streams.groups


def test_a_cluster_may_do_without_them() -> None:
    for settings in ({"group_coordinator_rebalance_protocols": "classic,consumer"}, {}):
        bench = StreamsBench(**settings)
        if not settings:
            update = FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
            ask(bench.node, UpdateFeaturesRequest(feature_updates=[update]), 1)
        assert bench.join("a").error_code == E.UNSUPPORTED_VERSION
        assert bench.describe().error_code == E.UNSUPPORTED_VERSION


# --- offsets, listing, deleting --------------------------------------------------------------------------


def test_offsets_are_committed_at_the_epochs_of_tasks() -> None:
    bench = StreamsBench(**NO_DELAY)
    for member in ("a", "b"):
        bench.join(member)
    assigned = bench.settle("a", "b")
    epochs = bench.epochs
    mine, others = assigned["a"][0]["0"][0], assigned["b"][0]["0"][0]
    assert commit(bench, "a", epochs["a"], index=mine) == 0
    assert commit(bench, "a", epochs["a"], index=mine, version=8) == E.UNSUPPORTED_VERSION
    assert commit(bench, "a", epochs["a"] + 1, index=mine) == E.STALE_MEMBER_EPOCH
    assert commit(bench, "x", epochs["a"], index=mine) == E.UNKNOWN_MEMBER_ID
    assert commit(bench, "", -1, index=mine) == E.UNKNOWN_MEMBER_ID
    bench.join("c")
    bench.settle("a", "b", "c")
    kept = mine in bench.assigned()["a"][0].get("0", [])
    assert commit(bench, "a", epochs["a"], index=mine) == (0 if kept else E.STALE_MEMBER_EPOCH)
    assert commit(bench, "a", epochs["a"], index=others) == E.STALE_MEMBER_EPOCH
    asking = OffsetFetchRequestGroup(group_id="g", member_id="a", member_epoch=epochs["a"], topics=None)
    stale = ask(bench.node, OffsetFetchRequest(groups=[asking]), 9).groups[0]
    assert stale.error_code == E.STALE_MEMBER_EPOCH
    asking.member_epoch = bench.epochs["a"]
    found = ask(bench.node, OffsetFetchRequest(groups=[asking]), 9).groups[0]
    assert (found.error_code, found.topics[0].partitions[0].committed_offset) == (0, 7)


def test_offsets_of_topics_that_are_read_cannot_be_deleted() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a")
    request = OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
        ],
    )
    answer = ask(bench.node, request, 0)
    assert answer.topics[0].partitions[0].error_code == E.GROUP_SUBSCRIBED_TO_TOPIC
    bench.beat("a", -1)
    assert commit(bench, "", -1) == 0
    assert ask(bench.node, request, 0).topics[0].partitions[0].error_code == 0
    assert not bench.node.groups.offsets.of_group("g")


def test_groups_are_listed_and_deleted() -> None:
    bench = StreamsBench(**NO_DELAY)
    bench.join("a")
    for wanted in ({}, {"types_filter": ["Streams"]}, {"states_filter": ["NOTREADY"]}):
        listed = ask(bench.node, ListGroupsRequest(**wanted), 5).groups
        assert [(each.group_id, each.protocol_type, each.group_type) for each in listed] == [
            ("g", "streams", "streams")
        ]
    assert ask(bench.node, ListGroupsRequest(types_filter=["share"]), 5).groups == []
    assert bench.delete_group() == E.NON_EMPTY_GROUP
    bench.beat("a", -1)
    assert bench.delete_group() == 0
    assert bench.delete_group() == E.GROUP_ID_NOT_FOUND
    assert bench.describe().error_code == E.GROUP_ID_NOT_FOUND
    assert bench.describe("").error_code == E.INVALID_GROUP_ID


def test_instances_are_told_where_partitions_are() -> None:
    bench = StreamsBench(**NO_DELAY)
    endpoint = asked.Endpoint(host="one", port=1)
    bench.join("a", user_endpoint=endpoint)
    bench.join("b")
    bench.settle("a", "b")
    answer = bench.beat("b", bench.epochs["b"], endpoint_information_epoch=0)
    assert answer.endpoint_information_epoch > 0
    (place,) = answer.partitions_by_user_endpoint
    assert (place.user_endpoint.host, place.user_endpoint.port) == ("one", 1)
    active = bench.assigned()["a"][0]
    found = {each.topic: sorted(each.partitions) for each in place.active_partitions}
    assert found == {"t": active["0"], "r": active["1"]}
    known = answer.endpoint_information_epoch
    again = bench.beat("b", bench.epochs["b"], endpoint_information_epoch=known)
    assert again.partitions_by_user_endpoint is None


# --- what is stored --------------------------------------------------------------------------------------


def test_records_are_those_of_apache_kafka_in_their_order() -> None:
    bench = StreamsBench()
    bench.join("a")
    bench.wait(3.1)
    bench.beat("a", 1)
    bench.beat("a", -1)
    bench.delete_group()
    joined, assigned, reconciled, left, deleted = bench.order()
    assert joined == [19, 23, 17, 22]
    assert assigned == [17, 21, 20]
    assert reconciled == [22]
    assert left == [-22, -21, -19, 17, 20]
    assert deleted == [-20, -17, -23]


def test_a_restart_changes_nothing() -> None:
    bench = StreamsBench(**NO_DELAY, group_streams_num_standby_replicas=1)
    for member in ("a", "b"):
        bench.join(member, user_endpoint=asked.Endpoint(host=member, port=1), rack_id="r")
    bench.settle("a", "b")
    before = bench.describe()
    again = bench.restarted()
    assert again.describe() == before
    assert (
        again.node.groups.streams.groups["g"].stored.owners
        == bench.node.groups.streams.groups["g"].stored.owners
    )
    for member in ("a", "b"):
        answer = again.beat(member, bench.epochs[member])
        assert (statuses(answer), answer.active_tasks) == ([], None)
    again.wait(46)
    assert again.describe().members == []


def test_more_tasks_than_a_request_may_make_are_refused() -> None:
    bench = StreamsBench()
    plans = [Planner(bench.node.cluster).new_topic(f"big{number}", 6000) for number in range(2)]
    bench.node.cluster.create_topics(plans, bench.clock.now_ms())
    topology = topology_of(subtopology(0, "big0"), subtopology(1, "big1"))
    assert bench.join("a", topology).error_code == E.STREAMS_INVALID_TOPOLOGY


def test_a_topology_that_has_outgrown_the_limit_is_still_described() -> None:
    bench = StreamsBench(**NO_DELAY)
    make_topic(bench.node, "big", partitions=9000)
    topology = topology_of(subtopology(0, "big"), subtopology(1, "more"))
    assert statuses(bench.join("a", topology)) == [NO_SOURCE]
    make_topic(bench.node, "more", partitions=2000)
    assert bench.beat("a", 2).error_code == E.STREAMS_INVALID_TOPOLOGY
    assert [each.source_topics for each in bench.describe().topology.subtopologies] == [["big"], ["more"]]
