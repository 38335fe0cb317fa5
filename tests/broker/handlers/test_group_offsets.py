"""Tests of committed offsets: which commits are accepted, what fetches return, when offsets are deleted."""

from __future__ import annotations

import pytest

from broker.bench_node import make_topic
from broker.groups.bench_group import Bench
from broker.groups.requests import (
    commit_request,
    delete_offsets_request,
    fetch_groups_request,
    fetch_request,
    join_request,
)
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

E = ErrorCode
DAY_MS = 86_400_000


def test_whoever_only_commits_needs_no_group() -> None:
    bench = Bench()
    assert bench.commit(7) == 0
    assert bench.committed() == 7
    assert bench.committed(index=1) == -1
    assert bench.committed(group="other") == -1
    assert bench.state() == "Empty"


def test_members_commit_in_their_generation() -> None:
    bench = Bench()
    leader, _ = bench.pair()
    assert bench.commit(7, leader, 2) == 0
    assert bench.commit(8, leader, 1) == E.ILLEGAL_GENERATION
    assert bench.commit(8, "nobody", 2) == E.UNKNOWN_MEMBER_ID
    assert bench.commit(8) == E.UNKNOWN_MEMBER_ID
    assert bench.committed() == 7


def test_commits_while_members_join_again_are_taken_and_while_a_generation_begins_are_not() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    bench.join()
    assert bench.state() == "PreparingRebalance"
    assert bench.commit(7, follower, 2) == 0
    bench.join(leader)
    bench.join(follower)
    assert bench.state() == "CompletingRebalance"
    assert bench.commit(8, follower, 3) == E.REBALANCE_IN_PROGRESS
    assert bench.commit(8, follower, 2) == E.ILLEGAL_GENERATION


def test_a_commit_keeps_a_member_alive() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    for offset in range(3):
        bench.wait(9_000)
        assert bench.commit(offset, leader, 2) == bench.commit(offset, follower, 2) == 0


@pytest.mark.parametrize(("version", "code"), [(8, E.ILLEGAL_GENERATION), (9, E.GROUP_ID_NOT_FOUND)])
def test_a_generation_of_a_group_that_is_not_there(version: int, code: int) -> None:
    request = commit_request({("t", 0): 1}, "m", 3)
    [topic] = Bench().ask(request, version).response.topics
    assert topic.partitions[0].error_code == code


def test_each_partition_has_its_outcome() -> None:
    bench = Bench(offset_metadata_max_bytes=5)
    response = bench.ask(
        commit_request({("t", 0): 1, ("t", 3): 1, ("none", 0): 1}, metadata="12345"), 9
    ).response
    codes = [topic.partitions[0].error_code for topic in response.topics]
    assert codes == [0, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert bench.commit(2, metadata="123456") == E.OFFSET_METADATA_TOO_LARGE
    assert bench.commit(3, metadata=None) == 0
    assert bench.committed() == 3


def test_an_empty_group_id_may_commit() -> None:
    bench = Bench()
    assert bench.commit(7, group="") == 0
    assert bench.committed(group="") == 7


def test_a_commit_that_no_batch_holds_is_refused() -> None:
    bench = Bench(message_max_bytes=200)
    assert bench.commit(7, metadata="x" * 200) == E.INVALID_COMMIT_OFFSET_SIZE
    assert bench.committed() == -1


def test_version_0_answers_3_where_there_is_no_offset_and_version_1_offset_minus_1() -> None:
    bench = Bench()
    bench.commit(7)
    for version, code in ((0, 3), (1, 0), (7, 0)):
        [topic] = bench.ask(fetch_request({"t": [0, 1]}), version).response.topics
        found, missing = topic.partitions
        assert (found.committed_offset, found.metadata, found.error_code) == (7, "note", 0)
        assert (missing.committed_offset, missing.error_code) == (-1, code)


def test_null_asks_for_everything_that_was_committed() -> None:
    bench = Bench()
    make_topic(bench.node, "u")
    bench.ask(commit_request({("t", 2): 5, ("u", 0): 6}), 9)
    single = bench.ask(fetch_request(None), 7).response
    assert {topic.name: topic.partitions[0].committed_offset for topic in single.topics} == {"t": 5, "u": 6}
    several = bench.ask(fetch_groups_request("g", "other"), 9).response
    assert [len(group.topics) for group in several.groups] == [2, 0]


def test_version_10_knows_topics_by_their_ids() -> None:
    bench = Bench()
    topic_id = bench.node.cluster.topic("t").id
    bench.ask(commit_request({("", 0): 5}, topic_id=topic_id), 10)
    unknown = bench.ask(commit_request({("", 0): 5}, topic_id=b"\7" * 16), 10).response
    assert unknown.topics[0].partitions[0].error_code == E.UNKNOWN_TOPIC_ID
    topics = [OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0]) for one in (topic_id, b"\7" * 16)]
    group = OffsetFetchRequestGroup(group_id="g", topics=topics)
    [answer] = bench.ask(OffsetFetchRequest(groups=[group]), 10).response.groups
    found, missing = (topic.partitions[0] for topic in answer.topics)
    assert (found.committed_offset, found.error_code) == (5, 0)
    assert (missing.committed_offset, missing.error_code) == (-1, E.UNKNOWN_TOPIC_ID)
    [everything] = bench.ask(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 10
    ).response.groups
    assert [topic.topic_id for topic in everything.topics] == [topic_id]


def test_topics_with_unknown_ids_come_last() -> None:
    bench = Bench()
    bench.commit(7)
    topic_id = bench.node.cluster.topic("t").id
    ids = (b"\7" * 16, topic_id, b"\10" * 16)
    topics = [OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0]) for one in ids]
    group = OffsetFetchRequestGroup(group_id="g", topics=topics)
    [answer] = bench.ask(OffsetFetchRequest(groups=[group]), 10).response.groups
    assert [topic.topic_id for topic in answer.topics] == [topic_id, ids[0], ids[2]]


def test_nobody_coordinates_a_group_before_a_client_has_asked_who() -> None:
    bench = Bench()
    assert OFFSETS_TOPIC not in bench.node.cluster.topics
    assert bench.ask(fetch_request({"t": [0]}), 7).response.error_code == E.NOT_COORDINATOR
    [[topic]] = [bench.ask(fetch_request({"t": [0]}), 1).response.topics]
    assert topic.partitions[0].error_code == E.NOT_COORDINATOR
    [[topic]] = [bench.ask(fetch_request({"t": [0]}), 0).response.topics]
    assert topic.partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION  # any broker asked ZooKeeper
    [group] = bench.ask(fetch_groups_request("g"), 9).response.groups
    assert group.error_code == E.NOT_COORDINATOR
    bench.ask(FindCoordinatorRequest(key="g"), 3)
    assert bench.ask(fetch_request({"t": [0]}), 7).response.error_code == 0


def test_what_was_committed_of_a_topic_goes_with_it() -> None:
    bench = Bench()
    make_topic(bench.node, "u")
    bench.ask(commit_request({("t", 0): 5, ("u", 0): 6}), 9)
    bench = bench.again()
    bench.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    make_topic(bench.node, "t")
    for one in (bench, bench.again()):
        assert (one.committed("t"), one.committed("u")) == (-1, 6)


# --- deleting offsets ------------------------------------------------------------------------------------


def delete(bench: Bench, *offsets: tuple[str, int]) -> list[int]:
    response = bench.ask(delete_offsets_request(list(offsets)), 0).response
    if response.error_code:
        return [response.error_code]
    return [topic.partitions[0].error_code for topic in response.topics]


def test_offsets_of_an_empty_group_can_be_deleted() -> None:
    bench = Bench()
    bench.commit(7)
    assert delete(bench, ("t", 0), ("none", 0), ("t", 9)) == [0, 3, 3]
    assert bench.committed() == bench.again().committed() == -1


def test_offsets_that_consumers_want_cannot() -> None:
    bench = Bench()
    make_topic(bench.node, "u")
    leader, _ = bench.pair()
    bench.ask(commit_request({("t", 0): 5, ("u", 0): 6}, leader, 2), 9)
    assert delete(bench, ("t", 0), ("u", 0)) == [E.GROUP_SUBSCRIBED_TO_TOPIC, 0]
    assert (bench.committed("t"), bench.committed("u")) == (5, -1)


def test_where_nobody_can_tell_what_is_wanted_nothing_is_deleted() -> None:
    bench = Bench()
    assert delete(bench, ("t", 0)) == [E.GROUP_ID_NOT_FOUND]
    assert bench.ask(delete_offsets_request([], group=""), 0).code == E.INVALID_GROUP_ID
    member = bench.join(protocol_type="connect").response.member_id
    assert delete(bench, ("t", 0)) == [E.NON_EMPTY_GROUP]
    bench.leave(member)
    bench.join(protocols={"range": b"\0"})
    assert delete(bench, ("t", 0)) == [E.GROUP_SUBSCRIBED_TO_TOPIC]


# --- expiry ----------------------------------------------------------------------------------------------


def pass_days(bench: Bench, days: float) -> None:
    bench.clock.advance(int(days * DAY_MS))
    bench.run()
    assert bench.node.maintain(bench.clock.now_ms()) == []


def test_offsets_of_a_group_without_members_go_a_week_after_their_commit() -> None:
    bench = Bench()
    bench.commit(7)
    pass_days(bench, 4)
    bench.ask(commit_request({("t", 1): 8}), 9)
    pass_days(bench, 3)
    assert (bench.committed(index=0), bench.committed(index=1)) == (-1, 8)
    pass_days(bench, 4)
    assert bench.state() == bench.again().state() == "?"


def test_offsets_of_an_empty_group_go_a_week_after_its_last_member() -> None:
    bench = Bench(offsets_retention_minutes=7 * 1440)
    leader, follower = bench.pair()
    bench.commit(7, leader, 2)
    for _ in range(3):
        bench.clock.advance(9_000)
        bench.heartbeat(leader, 2)
    bench.leave(leader, follower)
    pass_days(bench, 6.9)
    assert bench.committed() == 7
    pass_days(bench, 0.2)
    assert bench.committed() == -1


def test_consumers_at_work_lose_only_offsets_of_topics_they_do_not_want() -> None:
    bench = Bench(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    make_topic(bench.node, "u")
    leader, follower = bench.pair()
    bench.ask(commit_request({("t", 0): 5, ("u", 0): 6}, leader, 2), 9)
    for _ in range(8):
        bench.wait(9_000)
        bench.heartbeat(leader, 2)
        bench.heartbeat(follower, 2)
    bench.node.maintain(bench.clock.now_ms())
    assert (bench.committed("t"), bench.committed("u")) == (5, -1)


def test_a_client_may_say_how_long_to_keep_an_offset() -> None:
    bench = Bench()
    bench.ask(commit_request({("t", 0): 5}, retention_time_ms=DAY_MS), 4)
    bench.ask(commit_request({("t", 1): 6}, retention_time_ms=-1), 4)
    bench = bench.again()
    pass_days(bench, 1)
    bench.node.groups.open("g")
    pass_days(bench, 0.01)
    assert (bench.committed(index=0), bench.committed(index=1)) == (-1, 6)


def test_a_group_that_nobody_ever_entered_goes_at_the_next_look() -> None:
    bench = Bench()
    bench.ask(join_request(), 4)
    assert bench.state() == "Empty"
    pass_days(bench, 1)
    assert bench.state() == "?"
