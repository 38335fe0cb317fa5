"""Tests of describing a group with the API of another group type.

The answer says that the group exists and has another type.
"""

from __future__ import annotations

from itertools import product

from broker.bench_node import ask
from broker.groups.requests import commit_request
from broker.groups.share_bench import ShareBench
from for_each import for_each
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)

DESCRIBED_AS = {
    "classic": (DescribeGroupsRequest, "groups", 6),
    "consumer": (ConsumerGroupDescribeRequest, "group_ids", 1),
    "share": (ShareGroupDescribeRequest, "group_ids", 1),
    "streams": (StreamsGroupDescribeRequest, "group_ids", 0),
}

MEMBER = {"member_id": "m", "rebalance_timeout_ms": 1000}


def one_of_each() -> ShareBench:
    """Return a broker with one group of each type; the group's id is the name of its type."""
    bench = ShareBench()
    subtopologies = [Subtopology(subtopology_id="0", source_topics=["t"])]
    streams = StreamsGroupHeartbeatRequest(
        group_id="streams",
        process_id="p",
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        topology=Topology(epoch=0, subtopologies=subtopologies),
        **MEMBER,
    )
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="consumer", subscribed_topic_names=["t"], topic_partitions=[], **MEMBER
    )
    assert ask(bench.node, streams, 0).error_code == ask(bench.node, consumer, 1).error_code == 0
    assert bench.join("m", "t", group="share").error_code == 0
    committed = ask(bench.node, commit_request({("t", 0): 1}, group="classic"), 9)
    assert committed.topics[0].partitions[0].error_code == 0
    return bench


@for_each(product([*DESCRIBED_AS, "none"], DESCRIBED_AS))
def test_a_group_of_another_kind_is_not_said_to_be_missing(kind: str, asked_as: str) -> None:
    request_class, field, version = DESCRIBED_AS[asked_as]
    (found,) = ask(one_of_each().node, request_class(**{field: [kind]}), version).groups
    if kind == asked_as:
        assert (found.error_code, found.error_message) == (0, None)
        return
    why = "not found" if kind == "none" else f"is not a {asked_as} group"
    assert (found.error_code, found.error_message) == (E.GROUP_ID_NOT_FOUND, f"Group {kind} {why}.")
