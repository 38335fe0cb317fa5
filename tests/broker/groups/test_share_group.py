"""Tests of the share group coordinator: joining, epochs, sessions, limits, settings, other group types."""

from __future__ import annotations

import pytest

from broker.bench_node import ask, make_topic
from broker.groups.requests import commit_request, join_request
from broker.groups.share_bench import ShareBench
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.field_values import GROUP_RESOURCE
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest


def set_config(bench: ShareBench, **values: object) -> int:
    configs = [
        AlterableConfig(name=f"share.{name.replace('_', '.')}", config_operation=0, value=str(value))
        for name, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g", configs=configs)
    response = ask(bench.node, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    code: int = response.responses[0].error_code
    return code


def test_partitions_come_once_they_are_initialized() -> None:
    """The response to the join has no partitions.

    The next response after the assignment interval has all four.
    """
    bench = ShareBench()
    first = bench.join("a")
    assert (first.member_epoch, first.heartbeat_interval_ms) == (2, 1020)  # soon: partitions are to come
    assert first.assignment.topic_partitions == []
    bench.wait(0.3)
    assert (bench.beat("a", 2).member_epoch, bench.describe().group_epoch) == (2, 3)
    bench.wait(0.3)
    bench.beat("a", 2)
    assert bench.describe().group_epoch == 3  # raised once, though the interval has not passed
    bench.wait(1)
    second = bench.beat("a", 2)
    assert (second.member_epoch, second.assignment.topic_partitions[0].partitions) == (3, [0, 1, 2, 3])
    assert second.heartbeat_interval_ms == 5000
    assert bench.beat("a", 3).assignment is None


def test_members_share_partitions_and_inherit_them() -> None:
    bench = ShareBench()
    assert sorted(map(len, (each["t"] for each in bench.settled("a", "b").values()))) == [2, 2]
    bench.beat("b", -1)
    bench.wait(1.1)
    assert bench.settled("a") == {"a": {"t": [0, 1, 2, 3]}}


def test_epochs() -> None:
    bench = ShareBench()
    bench.settled("a")
    assert bench.beat("a", 2).member_epoch == 3  # the epoch before: an answer was lost
    assert bench.beat("a", 1).error_code == E.FENCED_MEMBER_EPOCH
    assert bench.beat("a", 4).error_code == E.FENCED_MEMBER_EPOCH
    again = bench.join("a")
    assert (again.member_epoch, len(again.assignment.topic_partitions)) == (3, 1)
    assert bench.beat("b", 3).error_code == E.UNKNOWN_MEMBER_ID
    assert bench.beat("b", -1).error_code == E.UNKNOWN_MEMBER_ID
    assert bench.beat("a", 3, group="nobody").error_code == E.GROUP_ID_NOT_FOUND
    left = bench.beat("a", -1)
    assert (left.member_epoch, left.heartbeat_interval_ms, left.assignment) == (-1, 0, None)
    assert bench.describe().group_state == "Empty"


@pytest.mark.parametrize(
    ("member", "epoch", "topics", "group", "rack"),
    [
        ("", 0, ["t"], "g", None),
        (" ", 0, ["t"], "g", None),
        ("x" * 37, 0, ["t"], "g", None),
        ("a", 0, [], "g", None),
        ("a", -2, ["t"], "g", None),
        ("a", 0, ["t"], "", None),
        ("a", 0, ["t"], " ", None),
        ("a", 0, ["t"], "g", " "),
        ("a", 0, ["t" * 40_000], "g", None),
    ],
)
def test_heartbeats_that_are_wrong_in_any_group(
    member: str, epoch: int, topics: list[str], group: str, rack: str | None
) -> None:
    bench = ShareBench()
    assert bench.beat(member, epoch, *topics, group=group, rack_id=rack).error_code == E.INVALID_REQUEST
    assert not bench.node.groups.share.groups


def test_a_session_ends() -> None:
    bench = ShareBench()
    bench.join("a")
    bench.wait(44)
    assert bench.beat("a", 2).error_code == 0
    bench.wait(46)
    assert bench.beat("a", 3).error_code == E.UNKNOWN_MEMBER_ID
    assert bench.describe().group_state == "Empty"


def test_a_group_has_a_largest_size() -> None:
    bench = ShareBench(group_share_max_size=2)
    bench.join("a")
    bench.join("b")
    assert bench.join("c").error_code == E.GROUP_MAX_SIZE_REACHED
    assert bench.join("b").error_code == 0


def test_members_without_memory_for_them_are_refused() -> None:
    bench = ShareBench(penstock_kept_state_bytes_max=1 << 20)
    names = [f"{'t' * 200}{number}" for number in range(100)]
    codes = {bench.join(f"member-{number}", *names).error_code for number in range(40)}
    assert codes == {0, E.COORDINATOR_NOT_AVAILABLE}


def test_a_group_has_settings_of_its_own() -> None:
    bench = ShareBench()
    assert set_config(bench, heartbeat_interval_ms=7000, session_timeout_ms=50_000) == 0
    assert set_config(bench, session_timeout_ms=1) == E.INVALID_CONFIG
    bench.join("a")
    bench.wait(49)
    assert bench.beat("a", 2).heartbeat_interval_ms == 7000
    assert set_config(bench, assignment_interval_ms=0, session_timeout_ms=45_000) == 0
    bench.beat("a", 3)
    bench.wait(46)
    assert bench.describe().members == []


def test_without_an_assignment_interval_the_next_heartbeat_has_the_partitions() -> None:
    bench = ShareBench()
    set_config(bench, assignment_interval_ms=0)
    bench.join("a")
    assert bench.beat("a", 2).assignment.topic_partitions[0].partitions == [0, 1, 2, 3]


def test_new_partitions_and_topics_are_initialized_and_assigned() -> None:
    bench = ShareBench()
    bench.settled("a")
    more = CreatePartitionsTopic(name="t", count=6, assignments=None)
    ask(bench.node, CreatePartitionsRequest(topics=[more], timeout_ms=1000), 3)
    epoch = bench.beat("a", 3).member_epoch
    for _ in range(2):
        bench.wait(1.1)
        epoch = bench.beat("a", epoch).member_epoch
    assert bench.assigned() == {"a": {"t": [0, 1, 2, 3, 4, 5]}}
    make_topic(bench.node, "u")
    epoch = bench.beat("a", epoch, "u").member_epoch
    assert bench.assigned() == {"a": {}}
    for _ in range(2):
        bench.wait(1.1)
        epoch = bench.beat("a", epoch).member_epoch
    assert bench.assigned() == {"a": {"u": [0]}}


def test_a_partition_that_is_added_to_a_topic_of_the_group_begins_at_its_start() -> None:
    """A group with latest offsets reads an added partition from offset 0, as Kafka does since 4.4.

    In the profile of Kafka 4.3 the added partition has no start offset yet.
    """
    for as_version, start in (("4.4", 0), ("4.3", -1)):
        bench = ShareBench(as_version=as_version)
        bench.settled("a")
        more = CreatePartitionsTopic(name="t", count=5, assignments=None)
        ask(bench.node, CreatePartitionsRequest(topics=[more], timeout_ms=1000), 3)
        bench.beat("a", 3)
        bench.wait(1.1)
        starts = {index: each[0] for index, each in bench.offsets()["t"].items()}
        assert starts == {0: -1, 1: -1, 2: -1, 3: -1, 4: start}


def test_an_initialization_that_is_repeated_leaves_the_start_open() -> None:
    bench = ShareBench()
    send = bench.node.send_share_state
    bench.node.send_share_state = lambda request, done: None  # type: ignore[method-assign]
    bench.join("a")
    bench.wait(31)
    bench.node.send_share_state = send  # type: ignore[method-assign]
    bench.beat("a", 2)
    bench.wait(1.1)
    assert {start for start, _ in bench.offsets()["t"].values()} == {-1}


def test_the_last_member_leaves_an_empty_assignment() -> None:
    """After the last member has left, the next member gets partitions with its first heartbeat.

    It does not wait for the assignment interval. In the profile of Kafka 4.3 the first response has no
    partitions.
    """
    for as_version, partitions in (("4.4", [0, 1, 2, 3]), ("4.3", [])):
        bench = ShareBench(as_version=as_version)
        bench.settled("a")
        bench.beat("b", 0, "t")
        bench.beat("a", -1)
        bench.beat("b", -1)
        joined = bench.join("c")
        assert [
            each for topic in joined.assignment.topic_partitions for each in topic.partitions
        ] == partitions


def test_a_deleted_topic_is_given_up_and_forgotten() -> None:
    bench = ShareBench()
    bench.settled("a")
    topic = bench.node.cluster.topics["t"]
    bench.node.cluster.delete_topics([topic], bench.clock.now_ms())
    bench.node.forget_topics(["t"], bench.clock.now_ms())
    group = bench.node.groups.share.groups["g"]
    assert group.initialization.topic_ids == set()
    assert not any(states.entries for states in bench.node.share_states.loaded.states)
    bench.wait(1.1)
    bench.beat("a", 3)
    assert bench.assigned() == {"a": {}}


def test_a_cluster_without_the_feature() -> None:
    bench = ShareBench()
    update = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    response = ask(bench.node, UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[update]), 1)
    assert response.error_code == 0
    assert bench.join("a").error_code == E.UNSUPPORTED_VERSION
    assert bench.describe().error_code == E.UNSUPPORTED_VERSION
    assert bench.alter({("t", 0): 0}).error_code == E.UNSUPPORTED_VERSION
    assert bench.drop("t").error_code == E.UNSUPPORTED_VERSION


def test_a_group_has_one_type() -> None:
    bench = ShareBench()
    bench.join("a")
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="c",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    for _ in range(2):  # with members, and without
        assert ask(bench.node, join_request(), 9).error_code == E.INCONSISTENT_GROUP_PROTOCOL
        assert ask(bench.node, consumer, 1).error_code == E.GROUP_ID_NOT_FOUND
        committed = ask(bench.node, commit_request({("t", 0): 1}), 9)
        assert committed.topics[0].partitions[0].error_code == E.GROUP_ID_NOT_FOUND
        bench.beat("a", -1)
    ask(bench.node, commit_request({("t", 0): 1}, group="simple"), 9)
    consumer.group_id = "consumers"
    ask(bench.node, consumer, 1)
    for group in ("simple", "consumers"):
        assert bench.join("a", group=group).error_code == E.GROUP_ID_NOT_FOUND
        assert bench.describe(group).error_code == E.GROUP_ID_NOT_FOUND
        assert bench.alter({("t", 0): 0}, group).error_code == E.GROUP_ID_NOT_FOUND
        assert bench.drop("t", group=group).error_code == E.GROUP_ID_NOT_FOUND
    listed = ask(bench.node, ListGroupsRequest(types_filter=["Share"]), 5).groups
    assert [(each.group_id, each.protocol_type, each.group_type) for each in listed] == [
        ("g", "share", "share")
    ]


def test_empty_groups_stay_until_they_are_deleted() -> None:
    bench = ShareBench()
    bench.join("a")
    assert bench.delete_group() == E.NON_EMPTY_GROUP
    bench.beat("a", -1)
    bench.wait(100_000_000)
    bench.node.groups.maintain(bench.clock.now_ms())
    assert bench.describe().error_code == 0
    assert bench.delete_group() == 0
    assert bench.describe().error_code == E.GROUP_ID_NOT_FOUND
    assert bench.delete_group() == E.GROUP_ID_NOT_FOUND
