"""Tests of consumer groups (KIP-848) through the request handlers, with the answers of Apache Kafka 4.3."""

from __future__ import annotations

from typing import Any

import pytest

from broker.bench_node import ask, make_topic
from broker.groups.consumer_bench import ConsumerBench
from broker.groups.requests import join_request
from for_each import for_each
from penstock.broker.config.values import BrokerConfig
from penstock.errors import ConfigError
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.field_values import GROUP_RESOURCE
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest


def fetch(bench: ConsumerBench, member: str | None, epoch: int, group: str = "g") -> tuple[int, list[int]]:
    """Send OffsetFetch for a group.

    Returns the group's error code and the committed offsets of partitions 0 and 1 of ``t``.
    """
    asked = OffsetFetchRequestGroup(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])],
    )
    answer = ask(bench.node, OffsetFetchRequest(groups=[asked]), 9).groups[0]
    found = [each.committed_offset for topic in answer.topics for each in topic.partitions]
    return answer.error_code, found


def settled(bench: ConsumerBench, *members: str, group: str = "g") -> dict[str, int]:
    """Join members and send heartbeats until their assignments are stable; return each member's epoch."""
    epochs = {member: bench.join(member, group).member_epoch for member in members}
    bench.wait(1.1)
    owned: dict[str, list[int]] = {member: [] for member in members}
    for _ in range(6):
        for member in members:
            answer = bench.beat(member, epochs[member], group, owned=owned[member])
            assert answer.error_code == 0, answer
            epochs[member] = answer.member_epoch
            assigned = bench.assigned(answer)
            if assigned is not None:
                owned[member] = assigned.get("t", [])
    assert bench.describe(group).group_state == "Stable"
    return epochs


# --- joining and reconciliation ----------------------------------------------------------------------------


def test_the_first_member_gets_all_partitions_with_epoch_2() -> None:
    bench = ConsumerBench()
    answer = bench.join("a")
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", 2)
    assert answer.heartbeat_interval_ms == 5000
    assert bench.assigned(answer) == {"t": [0, 1, 2, 3]}
    again = bench.beat("a", 2)
    assert (again.member_epoch, again.assignment) == (2, None)


def test_a_handover_step_by_step_as_apache_kafka_does_it() -> None:
    bench = ConsumerBench()
    steps: list[tuple[Any, int, dict[str, list[int]] | None]] = [
        (lambda: bench.join("a"), 2, {"t": [0, 1, 2, 3]}),
        (lambda: bench.join("b"), 2, {}),
        (lambda: bench.wait(1.1) or bench.beat("b", 2), 3, None),
        (lambda: bench.beat("a", 2), 2, {"t": [0, 1]}),
        (lambda: bench.beat("a", 2), 2, None),
        (lambda: bench.beat("a", 2, owned=[0, 1, 2, 3]), 2, None),
        (lambda: bench.beat("a", 2, owned=[0, 1]), 3, None),
        (lambda: bench.beat("b", 3), 3, {"t": [2, 3]}),
    ]
    states = []
    for step, epoch, assigned in steps:
        answer = step()
        assert (answer.error_code, answer.member_epoch) == (0, epoch)
        assert bench.assigned(answer) == assigned
        states.append(bench.describe().group_state)
    assert states == ["Stable", "Assigning", *["Reconciling"] * 5, "Stable"]


def test_without_an_interval_the_second_member_is_assigned_at_once() -> None:
    bench = ConsumerBench(group_consumer_assignment_interval_ms=0)
    bench.join("a")
    assert bench.join("b").member_epoch == 3


def test_a_member_that_joins_again_gets_its_assignment_again() -> None:
    bench = ConsumerBench()
    bench.join("a")
    again = bench.join("a")
    assert (again.member_epoch, bench.assigned(again)) == (2, {"t": [0, 1, 2, 3]})


def test_a_full_request_is_answered_with_the_whole_assignment() -> None:
    bench = ConsumerBench()
    bench.join("a")
    full = bench.beat("a", 2, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], owned=[0, 1, 2, 3])
    assert bench.assigned(full) == {"t": [0, 1, 2, 3]}


def test_members_of_version_0_are_given_an_id() -> None:
    bench = ConsumerBench()
    answer = bench.join("", version=0)
    assert answer.error_code == 0
    assert len(answer.member_id) == 36
    assert bench.beat(answer.member_id, 2, version=0).error_code == 0


def test_a_join_without_topics_makes_a_group_of_epoch_1() -> None:
    bench = ConsumerBench()
    answer = bench.join("a", subscribed_topic_names=[])
    assert (answer.member_epoch, bench.assigned(answer)) == (1, {})
    assert bench.describe().group_epoch == 1


JOIN: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "owned": []}

REFUSED: list[tuple[str, str, int, dict[str, Any], E]] = [
    ("owned is null", "a", 0, {**JOIN, "owned": None}, E.INVALID_REQUEST),
    ("owned is not empty", "a", 0, {**JOIN, "owned": [0]}, E.INVALID_REQUEST),
    ("no subscription", "a", 0, {**JOIN, "subscribed_topic_names": None}, E.INVALID_REQUEST),
    ("no timeout", "a", 0, {**JOIN, "rebalance_timeout_ms": -1}, E.INVALID_REQUEST),
    ("blank instance", "a", 0, {**JOIN, "instance_id": " "}, E.INVALID_REQUEST),
    ("blank rack", "a", 0, {**JOIN, "rack_id": ""}, E.INVALID_REQUEST),
    ("blank group", "a", 0, {**JOIN, "group": " "}, E.INVALID_REQUEST),
    ("no member id", "", 0, JOIN, E.INVALID_REQUEST),
    ("long member id", "a" * 40_000, 0, JOIN, E.INVALID_REQUEST),
    ("epoch -3", "a", -3, {}, E.INVALID_REQUEST),
    ("epoch -2 without instance", "a", -2, {}, E.INVALID_REQUEST),
    ("unknown assignor", "a", 0, {**JOIN, "server_assignor": "foo"}, E.UNSUPPORTED_ASSIGNOR),
    ("no regex", "a", 0, {**JOIN, "subscribed_topic_regex": "["}, E.INVALID_REGULAR_EXPRESSION),
    ("look-ahead", "a", 0, {**JOIN, "subscribed_topic_regex": "(?=t)"}, E.INVALID_REGULAR_EXPRESSION),
    ("unknown group", "a", 1, {}, E.GROUP_ID_NOT_FOUND),
    ("leaving an unknown group", "a", -1, {}, E.GROUP_ID_NOT_FOUND),
]


@for_each([each[1:] for each in REFUSED])
def test_refused_and_nothing_is_stored(member: str, epoch: int, fields: dict[str, Any], code: E) -> None:
    bench = ConsumerBench()
    answer = bench.beat(member, epoch, **fields)
    assert answer.error_code == code
    assert answer.error_message
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (None, 0, 0)
    assert not bench.node.groups.consumer.groups
    assert "__consumer_offsets" not in bench.node.cluster.topics


# --- fencing -----------------------------------------------------------------------------------------------


def test_epochs_that_are_accepted_and_fenced() -> None:
    bench = ConsumerBench()
    epochs = settled(bench, "a", "b")
    assert epochs == {"a": 3, "b": 3}
    assert bench.beat("a", 4).error_code == E.FENCED_MEMBER_EPOCH
    assert bench.beat("c", 1).error_code == E.UNKNOWN_MEMBER_ID
    assert bench.beat("a", 1).error_code == E.FENCED_MEMBER_EPOCH


def test_a_member_that_has_lost_an_answer_goes_on_with_its_previous_epoch() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    bench.wait(1.1)
    bench.beat("a", 2)
    assert bench.beat("a", 2, owned=[0, 1]).member_epoch == 3  # and this answer is lost
    assert bench.beat("a", 2).error_code == E.FENCED_MEMBER_EPOCH
    assert bench.beat("a", 2, owned=[0, 3]).error_code == E.FENCED_MEMBER_EPOCH
    assert bench.beat("a", 2, owned=[0, 1]).member_epoch == 3


def test_the_size_of_a_group_is_limited() -> None:
    bench = ConsumerBench(group_consumer_max_size=1)
    bench.join("a")
    assert bench.join("b").error_code == E.GROUP_MAX_SIZE_REACHED
    assert bench.join("a").error_code == 0


def test_a_session_ends_without_heartbeats_and_its_partitions_go_to_others() -> None:
    bench = ConsumerBench()
    epochs = settled(bench, "a", "b")
    bench.wait(44)
    assert bench.beat("a", epochs["a"], owned=[0, 1]).error_code == 0
    bench.wait(2)
    assert bench.beat("b", epochs["b"]).error_code == E.UNKNOWN_MEMBER_ID
    answer = bench.beat("a", epochs["a"])
    assert (answer.member_epoch, bench.assigned(answer)) == (4, {"t": [0, 1, 2, 3]})


def test_a_member_that_does_not_give_up_partitions_in_time_is_removed() -> None:
    bench = ConsumerBench()
    bench.join("a", rebalance_timeout_ms=2000)
    bench.join("b")
    bench.wait(1.1)
    bench.beat("b", 2)
    assert bench.assigned(bench.beat("a", 2)) == {"t": [0, 1]}
    bench.wait(1)
    assert bench.beat("a", 2).error_code == 0  # heartbeats do not postpone it
    bench.wait(1.1)
    assert bench.beat("a", 2).error_code == E.UNKNOWN_MEMBER_ID
    bench.beat("b", 3)
    bench.wait(1.1)
    assert [len(each.assignment.topic_partitions[0].partitions) for each in bench.describe().members] == [4]


def test_leaving_twice() -> None:
    bench = ConsumerBench()
    bench.join("a")
    left = bench.beat("a", -1)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (0, -1, 0)
    assert bench.beat("a", -1).error_code == E.UNKNOWN_MEMBER_ID
    described = bench.describe()
    assert (described.group_state, described.group_epoch, described.members) == ("Empty", 3, [])


# --- static members ----------------------------------------------------------------------------------------


def test_a_static_member_comes_back_to_its_partitions() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="i")
    assert bench.join("b", instance_id="i").error_code == E.UNRELEASED_INSTANCE_ID
    left = bench.beat("a", -2, instance_id="i")
    assert (left.error_code, left.member_epoch) == (0, -2)
    described = bench.describe()
    assert (described.group_state, described.members[0].member_epoch) == ("Reconciling", -2)
    back = bench.join("b", instance_id="i")
    assert (back.member_epoch, bench.assigned(back)) == (2, {"t": [0, 1, 2, 3]})
    described = bench.describe()
    assert (described.group_state, described.group_epoch) == ("Stable", 2)
    assert [member.member_id for member in described.members] == ["b"]
    assert bench.beat("a", 2, instance_id="i").error_code == E.FENCED_INSTANCE_ID
    assert bench.beat("a", 2).error_code == E.UNKNOWN_MEMBER_ID
    assert bench.beat("b", 2, instance_id="j").error_code == E.UNKNOWN_MEMBER_ID
    assert bench.beat("b", 2, instance_id="i").error_code == 0


def test_a_static_member_may_come_back_under_its_own_id() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="i")
    bench.beat("a", -2, instance_id="i")
    assert bench.join("a", instance_id="i").member_epoch == 2


def test_a_static_member_that_stays_away_is_removed() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="i")
    bench.beat("a", -2, instance_id="i")
    bench.wait(46)
    assert bench.describe().group_state == "Empty"


def test_a_static_member_that_has_to_give_up_partitions_may_leave_for_longer_than_that_takes() -> None:
    """After a leave with epoch -2 the session of 45 s counts, not the rebalance timeout of 20 s."""
    bench = ConsumerBench()
    bench.join("a", instance_id="i", rebalance_timeout_ms=20_000)
    bench.join("b")
    bench.wait(1.1)
    bench.beat("b", 2)
    assert bench.assigned(bench.beat("a", 2, instance_id="i")) == {"t": [0, 1]}
    bench.beat("a", -2, instance_id="i")
    bench.wait(30)
    assert len(bench.describe().members) == 2


# --- topics and regular expressions ------------------------------------------------------------------------


def test_a_regular_expression_is_matched_after_the_answer() -> None:
    bench = ConsumerBench()
    make_topic(bench.node, "t-2", partitions=1)
    first = bench.join("a", subscribed_topic_regex="t.*")
    assert (first.member_epoch, bench.assigned(first)) == (1, {})
    second = bench.beat("a", 1)
    assert (second.member_epoch, bench.assigned(second)) == (2, {"t": [0, 1, 2, 3], "t-2": [0]})
    assert bench.describe().members[0].subscribed_topic_regex == "t.*"
    make_topic(bench.node, "t-3", partitions=1)
    assert bench.beat("a", 2).assignment is None
    bench.wait(10)
    bench.beat("a", 2)
    third = bench.beat("a", 2)
    assert bench.assigned(third) == {"t": [0, 1, 2, 3], "t-2": [0], "t-3": [0]}


def test_a_regular_expression_matches_whole_names() -> None:
    bench = ConsumerBench()
    make_topic(bench.node, "t-2", partitions=1)
    bench.join("a", subscribed_topic_regex="^t")
    assert bench.assigned(bench.beat("a", 1)) == {"t": [0, 1, 2, 3]}


def test_names_and_a_regular_expression_add_up_and_an_empty_one_removes_it() -> None:
    bench = ConsumerBench()
    make_topic(bench.node, "x", partitions=1)
    bench.join("a", subscribed_topic_names=["t"], subscribed_topic_regex="x")
    bench.wait(1.1)
    assert bench.assigned(bench.beat("a", 2)) == {"t": [0, 1, 2, 3], "x": [0]}
    shrunk = bench.beat("a", 3, subscribed_topic_regex="")
    assert bench.assigned(shrunk) == {"t": [0, 1, 2, 3]}
    assert not bench.node.groups.consumer.groups["g"].stored.regexes


def test_new_partitions_and_deleted_topics_change_the_assignment_with_the_next_heartbeat() -> None:
    bench = ConsumerBench()
    bench.join("a", subscribed_topic_names=["missing", "t"])
    bench.wait(1.1)
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=5, assignments=None)], timeout_ms=1000
    )
    assert ask(bench.node, more, 3).results[0].error_code == 0
    grown = bench.beat("a", 2)
    assert (grown.member_epoch, bench.assigned(grown)) == (3, {"t": [0, 1, 2, 3, 4]})
    bench.wait(1.1)
    make_topic(bench.node, "missing", partitions=1)
    assert bench.assigned(bench.beat("a", 3)) == {"missing": [0], "t": [0, 1, 2, 3, 4]}
    bench.wait(1.1)
    ask(bench.node, DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3)
    assert bench.assigned(bench.beat("a", 4)) == {"missing": [0]}
    assert bench.beat("a", 4, owned={"missing": [0]}).member_epoch == 5


# --- offsets -----------------------------------------------------------------------------------------------


def test_offsets_are_committed_with_the_epoch_of_the_member() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    bench.wait(1.1)
    bench.beat("b", 2)
    bench.beat("a", 2)
    bench.beat("a", 2, owned=[0, 1])  # has 0 and 1 from epoch 2, and is at epoch 3
    assert bench.commit("a", 3, (0, 2)) == [0, 0]
    assert bench.commit("a", 2, (0, 1)) == [0, 0]
    assert bench.commit("a", 2, (0, 1), version=10) == [0, 0]
    assert bench.commit("a", 2, (0, 2)) == [E.STALE_MEMBER_EPOCH] * 2
    assert bench.commit("a", 4) == [E.STALE_MEMBER_EPOCH]
    assert bench.commit("a", 3, version=8) == [E.UNSUPPORTED_VERSION]
    assert bench.commit("x", 3) == [E.UNKNOWN_MEMBER_ID]
    assert bench.commit("", -1) == [E.UNKNOWN_MEMBER_ID]
    assert bench.commit("a", 1, group="none") == [E.GROUP_ID_NOT_FOUND]
    assert fetch(bench, "a", 3) == (0, [5, 5])
    assert fetch(bench, None, -1) == (0, [5, 5])
    assert fetch(bench, "a", 2) == (E.STALE_MEMBER_EPOCH, [])
    assert fetch(bench, "x", 3) == (E.UNKNOWN_MEMBER_ID, [])
    bench.beat("a", -1)
    bench.beat("b", -1)
    assert bench.commit("", -1) == [0]


# --- administration ----------------------------------------------------------------------------------------


def test_groups_are_listed_described_and_deleted() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.commit("a", 2)

    def listed(**filters: Any) -> list[tuple[str, str, str, str]]:
        groups = ask(bench.node, ListGroupsRequest(**filters), 5).groups
        return [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in groups]

    assert listed() == [("g", "consumer", "Stable", "consumer")]
    assert listed(types_filter=["CONSUMER"], states_filter=["stable"]) == listed()
    assert listed(types_filter=["classic"]) == listed(states_filter=["Empty"]) == []
    for version, code in ((5, 0), (6, E.GROUP_ID_NOT_FOUND)):
        classic = ask(bench.node, DescribeGroupsRequest(groups=["g"]), version).groups[0]
        assert (classic.error_code, classic.group_state, classic.members) == (code, "Dead", [])
    delete = DeleteGroupsRequest(groups_names=["g"])
    assert ask(bench.node, delete, 2).results[0].error_code == E.NON_EMPTY_GROUP
    offsets = OffsetDeleteRequest(
        group_id="g",
        topics=[OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition()])],
    )
    refused = ask(bench.node, offsets, 0).topics[0].partitions[0]
    assert refused.error_code == E.GROUP_SUBSCRIBED_TO_TOPIC
    bench.beat("a", -1)
    assert ask(bench.node, offsets, 0).topics[0].partitions[0].error_code == 0
    assert fetch(bench, None, -1) == (0, [-1, -1])
    assert ask(bench.node, delete, 2).results[0].error_code == 0
    assert ask(bench.node, delete, 2).results[0].error_code == E.GROUP_ID_NOT_FOUND
    assert bench.describe().error_code == E.GROUP_ID_NOT_FOUND
    assert bench.describe("").error_code == E.INVALID_GROUP_ID
    assert not bench.restarted().node.groups.consumer.groups


def test_an_empty_group_without_offsets_goes_with_a_check_and_one_with_offsets_stays() -> None:
    bench = ConsumerBench()
    for group in ("g", "kept"):
        bench.join("a", group)
    bench.commit("a", 2, group="kept")
    for group in ("g", "kept"):
        bench.beat("a", -1, group)
    bench.wait(601)
    assert bench.node.groups.maintain(bench.clock.now_ms()) == []
    assert list(bench.node.groups.consumer.groups) == ["kept"]


def test_the_kinds_of_groups_replace_each_other_while_they_are_empty() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.commit("a", 2)
    bench.beat("a", -1)
    joined = ask(bench.node, join_request(), 3)
    assert joined.error_code == 0
    assert not bench.node.groups.consumer.groups
    bench.wait(60)
    assert bench.join("b").member_epoch == 2
    assert not bench.node.groups.coordinator.groups
    assert fetch(bench, "b", 2) == (0, [5, -1])
    again = bench.restarted()
    assert again.beat("b", 2).error_code == 0
    assert not again.node.groups.coordinator.groups


@pytest.mark.parametrize(("release", "code"), [("3.9", E.UNSUPPORTED_VERSION), ("4.0", E.NONE)])
def test_releases_before_4_0_have_no_such_groups(release: str, code: E) -> None:
    bench = ConsumerBench(as_version=release)
    assert bench.join("a").error_code == code
    assert bench.describe().error_code == code


def test_without_the_feature_there_are_no_such_groups() -> None:
    bench = ConsumerBench()
    off = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)]
    )
    assert ask(bench.node, off, 1).error_code == 0
    assert bench.join("a").error_code == E.UNSUPPORTED_VERSION
    assert bench.describe().error_code == E.UNSUPPORTED_VERSION


# --- settings ----------------------------------------------------------------------------------------------


def alter(bench: ConsumerBench, name: str, value: str) -> int:
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE,
        resource_name="g",
        configs=[AlterableConfig(name=name, value=value)],
    )
    response = ask(bench.node, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return int(response.responses[0].error_code)


def test_settings_of_a_group_count_from_the_next_heartbeat_on() -> None:
    bench = ConsumerBench()
    assert bench.join("a").heartbeat_interval_ms == 5000
    assert alter(bench, "consumer.heartbeat.interval.ms", "7000") == 0
    assert alter(bench, "consumer.heartbeat.interval.ms", "70000") == E.INVALID_CONFIG
    assert alter(bench, "consumer.session.timeout.ms", "50000") == 0
    assert bench.beat("a", 2).heartbeat_interval_ms == 7000
    bench.wait(49)
    assert bench.beat("a", 2).error_code == 0
    assert bench.join("a", "other").heartbeat_interval_ms == 5000


def test_settings_are_looked_up_once_for_all_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats do not read the settings again until a setting of the group changes.

    The next heartbeat after such a change uses the new value.
    """
    looked = []
    found = BrokerConfig.integer

    def integer(config: BrokerConfig, name: str) -> int:
        if name.endswith("heartbeat.interval.ms"):
            looked.append(name)
        return found(config, name)

    bench = ConsumerBench()
    epoch = bench.join("a").member_epoch  # makes __consumer_offsets, which is a change of metadata
    bench.beat("a", epoch)
    monkeypatch.setattr(BrokerConfig, "integer", integer)
    for _ in range(5):
        assert bench.beat("a", epoch).heartbeat_interval_ms == 5000
    assert looked == []
    make_topic(bench.node, "other")  # a change of metadata, which may be one of settings
    assert [bench.beat("a", epoch).heartbeat_interval_ms for _ in range(3)] == [5000] * 3
    assert len(looked) == 1
    assert alter(bench, "consumer.heartbeat.interval.ms", "7000") == 0
    assert bench.beat("a", epoch).heartbeat_interval_ms == 7000


def test_settings_that_contradict_each_other_are_refused_at_the_start() -> None:
    for name, value in (
        ("group.consumer.session.timeout.ms", "1000"),
        ("group.consumer.heartbeat.interval.ms", "60000"),
        ("group.consumer.assignors", "sticky"),
    ):
        with pytest.raises(ConfigError, match=name):
            BrokerConfig({name: value})
    with pytest.raises(ConfigError, match="less than"):
        BrokerConfig(
            {
                "group.consumer.min.session.timeout.ms": "5000",
                "group.consumer.session.timeout.ms": "5000",
            }
        )


def test_the_first_assignor_is_that_of_members_that_name_none_and_most_votes_count() -> None:
    bench = ConsumerBench(group_consumer_assignors="range,uniform")
    bench.join("a")
    assert bench.describe().assignor_name == "range"
    bench.join("b", server_assignor="uniform")
    assert bench.describe().assignor_name == "uniform"
