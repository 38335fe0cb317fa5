"""Tests of requests that name the same element many times.

No response may become much larger than the request or than the usual response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker.bench_node import EVERY_API, ask, batch_of, context_of, make_node, make_topic, produce
from broker.groups.requests import commit_request, fetch_groups_request, fetch_request
from broker.handlers.test_every_version import CASES, REQUESTS
from for_each import for_each
from penstock.broker.config.values import SUGGESTIONS_MAX
from penstock.broker.context import CloseConnection
from penstock.broker.node import Node
from penstock.broker.requests.dispatch import answer
from penstock.protocol.api import ApiKey
from penstock.protocol.framing import encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.alter_configs_request import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.list_transactions_request import ListTransactionsRequest

TIMES = 1000
MULTIPLE = 5
"""The limit of a response's size, as a multiple of the request or of the response without repetition.

Some APIs answer every element, in the order of the request, with a short error (CreateAcls, DeleteAcls).
"""

SLACK_BYTES = 500

REPEATED_IS_REFUSED_ELSEWHERE = {(ApiKey.JOIN_GROUP, "protocols")}
"""Arrays that this module does not repeat: the protocols in JoinGroup, which no response lists.

The tests of groups cover repeated protocols.
"""


def full_node() -> Node:
    node = make_node(**EVERY_API)
    make_topic(node)
    produce(node, batch_of(b"before"))
    return node


def frame_of(request: Message, version: int) -> memoryview:
    return memoryview(bytearray(b"".join(map(bytes, encode_request(request, version, 7, "bench")))[4:]))


def answer_size(node: Node, frame: memoryview, version: int) -> int:
    """Return the size of a response in bytes; 0 for a request that waits."""
    outcome = answer(frame, context_of(node, version))
    return sum(map(len, outcome)) if isinstance(outcome, list) else 0


def slots_of(struct: Any) -> list[str]:
    return [name for base in type(struct).__mro__ for name in getattr(base, "__slots__", ())]


def is_struct(value: Any) -> bool:
    return not isinstance(value, (str, bytes, int, float, memoryview)) and hasattr(type(value), "__slots__")


Path = tuple[str | int, ...]


def arrays_in(struct: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each list in a message that has elements."""
    for name in slots_of(struct):
        value = getattr(struct, name)
        if isinstance(value, list) and value:
            yield (*path, name)
            if is_struct(value[0]):
                yield from arrays_in(value[0], (*path, name, 0))


def with_repetition(message: Message, path: Path) -> Message:
    """Repeat the elements of one list of a message many times, and return the message."""
    holder: Any = message
    for step in path[:-1]:
        holder = holder[step] if isinstance(step, int) else getattr(holder, step)
    name = str(path[-1])
    setattr(holder, name, getattr(holder, name) * TIMES)
    return message


@for_each(CASES)
def test_what_is_repeated_multiplies_no_answer(key: ApiKey, version: int) -> None:
    node = full_node()
    request = REQUESTS[key](node, version)
    usual = answer_size(node, frame_of(request, version), version)
    for path in arrays_in(request):
        if (key, path[-1]) in REPEATED_IS_REFUSED_ELSEWHERE:
            continue
        node = full_node()
        frame = frame_of(with_repetition(REQUESTS[key](node, version), path), version)
        size = answer_size(node, frame, version)
        assert size <= MULTIPLE * max(usual, len(frame)) + SLACK_BYTES, path


def test_resources_with_settings_are_described_once_with_all_settings_asked_for() -> None:
    node = full_node()
    resources = [
        DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=[name])
        for name in ("retention.ms", "segment.ms", "retention.ms")
    ]
    resources.append(
        DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=["node.id"])
    )
    results = ask(node, DescribeConfigsRequest(resources=resources), 4).results
    assert [result.resource_name for result in results] == ["t", "1"]
    assert {config.name for config in results[0].configs} == {"retention.ms", "segment.ms"}
    resources.append(DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None))
    results = ask(node, DescribeConfigsRequest(resources=resources), 4).results
    assert len(results) == 2
    assert len(results[0].configs) > 20


def test_topics_with_the_same_settings_are_described_alike_and_others_not() -> None:
    node = full_node()
    make_topic(node, "u")
    make_topic(node, "v", retention_ms="5")
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in "tuv"]
    found = [
        {config.name: config.value for config in result.configs}["retention.ms"]
        for result in ask(node, DescribeConfigsRequest(resources=resources), 4).results
    ]
    assert found[0] == found[1] != found[2] == "5"


def test_groups_and_their_topics_are_told_once_whatever_way_they_are_repeated() -> None:
    node = full_node()
    make_topic(node, "u", 2)
    ask(node, commit_request({("t", 0): 1, ("u", 1): 2}), 5)
    twice = fetch_groups_request("g", topics={"t": [0, 0]})
    twice.groups += fetch_groups_request("g", topics={"u": [1]}).groups
    groups = ask(node, twice, 8).groups
    assert [(t.name, [p.committed_offset for p in t.partitions]) for t in groups[0].topics] == [
        ("t", [1]),
        ("u", [2]),
    ]
    everything = fetch_groups_request("g", "g", topics={"t": [0]})
    everything.groups[1].topics = None
    groups = ask(node, everything, 8).groups
    assert len(groups) == 1
    assert {topic.name for topic in groups[0].topics} == {"t", "u"}
    old = ask(node, fetch_request({"t": [0, 0, 0]}), 5)
    assert len(old.topics[0].partitions) == 1
    assert len(ask(node, DescribeGroupsRequest(groups=["g", "x", "g"]), 4).groups) == 2


def test_an_offset_asked_for_in_a_topic_that_is_named_twice_is_refused_from_version_1_on() -> None:
    node = full_node()

    def request() -> ListOffsetsRequest:
        one = [ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=5)]
        return ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=list(one)) for _ in range(3)]
        )

    new = ask(node, request(), 5)
    assert [[p.error_code for p in topic.partitions] for topic in new.topics] == [[42]]
    old = ask(node, request(), 0)
    assert [[p.error_code for p in topic.partitions] for topic in old.topics] == [[0]]


def test_a_partition_is_fetched_once_from_where_it_is_named_last() -> None:
    node = full_node()
    partitions = [FetchPartition(partition=0, fetch_offset=n, partition_max_bytes=1000) for n in (0, 1)]
    topics = [FetchTopic(topic="t", partitions=[each]) for each in partitions]
    response = ask(node, FetchRequest(topics=topics, session_epoch=-1), 11)
    assert [len(topic.partitions) for topic in response.responses] == [1]
    assert not response.responses[0].partitions[0].records


def test_partitions_are_fetched_in_the_order_in_which_they_are_named_across_topics() -> None:
    node = make_node(**EVERY_API)
    asked = [("t", 2), ("u", 1), ("t", 0), ("t", 1), ("u", 0), ("t", 2)]
    for name in ("t", "u"):
        make_topic(node, name, 3)
    for name, number in asked[1:]:
        produce(node, batch_of(b"x" * 100), topic=name, partition=number)

    def fetched(max_bytes: int) -> list[tuple[str, int, bool]]:
        topics = [
            FetchTopic(topic=name, partitions=[FetchPartition(partition=n, partition_max_bytes=1000)])
            for name, n in asked
        ]
        request = FetchRequest(topics=topics, session_epoch=-1, max_bytes=max_bytes)
        return [
            (topic.topic, each.partition_index, bool(each.records))
            for topic in ask(node, request, 11).responses
            for each in topic.partitions
        ]

    assert fetched(10_000) == [(*each, True) for each in asked[:-1]]
    assert [each for *_, each in fetched(200)] == [True, False, False, False, False]


def test_an_answer_beyond_the_limit_is_not_made() -> None:
    node = make_node(penstock_response_bytes_max=65536)
    for number in range(40):
        make_topic(node, f"t{number}")
    resources = [DescribeConfigsResource(resource_type=2, resource_name=f"t{n}") for n in range(40)]
    request = DescribeConfigsRequest(resources=resources, include_documentation=True)
    with pytest.raises(CloseConnection, match=r"penstock\.response\.bytes\.max"):
        answer(frame_of(request, 4), context_of(node, 4))
    few = DescribeConfigsRequest(resources=resources[:3], include_documentation=True)
    assert answer_size(node, frame_of(few, 4), 4) < 65536


def test_topics_whose_answer_would_be_too_large_are_not_created() -> None:
    node = make_node(penstock_response_bytes_max=65536)
    topics = [CreatableTopic(name=f"n{n}", num_partitions=1, replication_factor=1) for n in range(100)]
    with pytest.raises(CloseConnection, match=r"penstock\.response\.bytes\.max"):
        answer(frame_of(CreateTopicsRequest(topics=topics), 7), context_of(node, 7))
    assert not node.cluster.topics
    assert answer_size(node, frame_of(CreateTopicsRequest(topics=topics), 4), 4)
    assert len(node.cluster.topics) == 100


def test_what_is_small_to_count_is_measured_before_it_is_sent() -> None:
    node = make_node(penstock_response_bytes_max=65536)
    make_topic(node, "t", 1)
    partitions = [TopicPartitions(topic="t", partitions=list(range(2000)))]
    with pytest.raises(CloseConnection, match=r"penstock\.response\.bytes\.max"):
        answer(frame_of(ElectLeadersRequest(topic_partitions=partitions), 1), context_of(node, 1))


@pytest.mark.parametrize("version", [0, 6])
def test_a_request_with_too_many_entries_is_refused_before_they_become_objects(version: int) -> None:
    node = make_node(penstock_request_entries_max=15_000)
    names = [f"group-{n}" for n in range(15_001)]
    with pytest.raises(CloseConnection, match=r"penstock\.request\.entries\.max"):
        answer(frame_of(DescribeGroupsRequest(groups=names), version), context_of(node, version))
    assert answer_size(node, frame_of(DescribeGroupsRequest(groups=names[1:]), version), version)


def test_few_unknown_settings_of_a_request_are_compared_with_known_ones() -> None:
    node = full_node()
    for number in range(10):
        make_topic(node, f"t{number}")
    wrong = [AlterableConfig(name="retention.mss", value="1")]
    resources = [
        AlterConfigsResource(resource_type=2, resource_name=f"t{n}", configs=wrong) for n in range(10)
    ]
    for _ in range(2):
        answers = ask(node, AlterConfigsRequest(resources=resources), 1).responses
        hinted = ["did you mean retention.ms?" in each.error_message for each in answers]
        assert hinted == [True] * SUGGESTIONS_MAX + [False] * (10 - SUGGESTIONS_MAX)
    long = [AlterableConfig(name="retention.ms" * 100, value="1")]
    request = AlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=2, resource_name="t", configs=long)]
    )
    assert "did you mean" not in ask(node, request, 1).responses[0].error_message


@pytest.mark.parametrize(
    "pattern", ["(" * 5000, "a" * 1001, "a{99999999999999999999}", "(" * 900 + ")" * 900]
)
def test_patterns_that_are_long_deep_or_vast_are_refused(pattern: str) -> None:
    node = full_node()
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    response = ask(node, request, 2)
    assert response.error_code in (0, 128)
