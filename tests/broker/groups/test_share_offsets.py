"""Tests of the admin APIs for share group offsets: describing, altering and deleting them, and the lag."""

from __future__ import annotations

import pytest

from broker.bench_node import ask, batch_of, produce_request
from broker.groups.share_bench import ShareBench
from penstock.broker.groups.share_state.batches import StateBatch
from penstock.broker.groups.share_state.coordinator import WrittenShareState
from penstock.broker.groups.share_state.keys import ShareKey
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.messages import describe_share_group_offsets_request as describe
from penstock.protocol.messages import read_share_group_state_summary_response as summary


def fill(bench: ShareBench, count: int) -> None:
    """Write this number of records to partition 0 of ``t``."""
    response = ask(bench.node, produce_request(batch_of(*[b"v"] * count)), 9)
    assert response.responses[0].partition_responses[0].error_code == 0


def test_what_nothing_has_been_read_of() -> None:
    bench = ShareBench()
    bench.settled("a")
    assert bench.offsets() == {"t": dict.fromkeys(range(4), (-1, -1))}
    assert bench.offsets("nobody") == {}
    assert bench.offsets("") == {}
    assert bench.offsets(topics={"t": [1, 9], "none": [0]}) == {
        "t": {1: (-1, -1), 9: (-1, -1)},
        "none": {0: (-1, -1)},
    }


def test_lag_is_what_lies_behind_the_start_and_has_not_been_delivered() -> None:
    bench = ShareBench()
    fill(bench, 10)
    bench.settled("a")
    written = WrittenShareState(2, 0, 3, 2, (StateBatch(4, 5, 2, 1),))
    assert bench.node.share_states.write(ShareKey("g", bench.topic_id(), 0), written).code == 0
    assert bench.offsets()["t"][0] == (3, 5)


def test_offsets_are_set_for_an_empty_group() -> None:
    bench = ShareBench()
    fill(bench, 10)
    bench.settled("a")
    refused = bench.alter({("t", 0): 5})
    assert (refused.error_code, refused.responses) == (E.NON_EMPTY_GROUP, [])
    bench.beat("a", -1)
    response = bench.alter({("t", 0): 4, ("t", 9): 0, ("none", 0): 0})
    codes = {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in response.responses
        for each in topic.partitions
    }
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {("t", 0): 0, ("t", 9): unknown, ("none", 0): unknown}
    assert bench.offsets()["t"] == {0: (4, 6), 1: (-1, -1), 2: (-1, -1), 3: (-1, -1)}
    assert bench.order()[-2:] == [[15], [15]]
    assert bench.restarted().offsets()["t"][0] == (4, 6)


def test_setting_offsets_makes_a_group() -> None:
    bench = ShareBench()
    assert bench.alter({("none", 0): 1}).error_code == 0
    assert bench.describe().error_code == E.GROUP_ID_NOT_FOUND
    assert bench.alter({("t", 1): 7}).error_code == 0
    assert bench.describe().group_state == "Empty"
    assert bench.offsets() == {"t": {1: (7, -7)}}
    joined = bench.join("a")  # what is initialized is assigned at once
    assert joined.assignment.topic_partitions[0].partitions == [1]
    assert bench.offsets()["t"][1] == (7, -7)
    assert bench.alter({("t", 1): 7}, group="").error_code == E.INVALID_GROUP_ID


def test_offsets_are_deleted_topic_by_topic() -> None:
    bench = ShareBench()
    bench.settled("a")
    assert bench.drop("t").error_code == E.NON_EMPTY_GROUP
    bench.beat("a", -1)
    response = bench.drop("t", "none")
    assert [(each.topic_name, each.error_code) for each in response.responses] == [
        ("t", 0),
        ("none", E.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert bench.offsets() == {}
    assert bench.order()[-2:] == [[15], [15]]
    assert bench.drop("t").responses[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert bench.drop("t", group="nobody").error_code == E.GROUP_ID_NOT_FOUND
    assert bench.drop("t", group="").error_code == E.INVALID_GROUP_ID
    assert bench.restarted().offsets() == {}


def test_states_that_are_not_deleted_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share coordinator does not answer, so the response lists the topic that was not deleted.

    A later request finishes the deletion.
    """
    bench = ShareBench()
    bench.settled("a")
    bench.beat("a", -1)

    def refuse(request: object, done: object) -> None:
        """Drop the request without an answer."""

    with monkeypatch.context() as patch:
        patch.setattr(bench.node, "send_share_state", refuse)
        for wait in (bench.drop("t"), bench.alter({("t", 0): 1})):
            assert wait.answer().responses[0].topic_name == "t"
    assert bench.node.groups.share.groups["g"].initialization.deleting == {}
    assert bench.drop("t").responses[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert bench.delete_group() == 0


def test_a_state_that_cannot_be_read_just_now_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the share coordinator is unavailable, the partition has an error code.

    With offset -1 alone, a client would conclude that the group has not read the partition yet.
    """
    bench = ShareBench()
    assert bench.alter({("t", 1): 7}).error_code == 0
    asked = describe.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    request = describe.DescribeShareGroupOffsetsRequest(groups=[asked])

    def answered(code: int) -> tuple[int, int]:
        part = summary.PartitionResult(partition=1, error_code=code, start_offset=0)
        result = summary.ReadStateSummaryResult(topic_id=bench.topic_id(), partitions=[part])
        answer = summary.ReadShareGroupStateSummaryResponse(results=[result])
        monkeypatch.setattr(bench.node.groups.share, "ask", lambda request, done: done(answer))
        (found,) = ask(bench.node, request, 1).groups[0].topics[0].partitions
        return found.error_code, found.start_offset

    for code in (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR):
        assert answered(code) == (E.COORDINATOR_NOT_AVAILABLE, -1)
    assert answered(E.INVALID_REQUEST) == (0, -1)
