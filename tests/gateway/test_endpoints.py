"""Tests of the responses that the gateway forwards without decoding, because they name no broker address."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from for_each import for_each
from gateway.relays import response
from penstock.gateway import endpoints
from penstock.gateway.addresses import ADDRESSED_SINCE, rewrite
from penstock.gateway.nodes import Nodes
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_response import definition_of, fields_at
from penstock.protocol.messages import fetch_response, produce_response
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.protocol.schema.definition import Definition, StructSpec
from protocol.samples import sample


def is_plain(frame: bytes, key: int, version: int) -> bool:
    return endpoints.is_plain(bytearray(frame), key, version)


def produced(version: int, topics: int = 2, partitions: int = 3, name: str = "topic") -> ProduceResponse:
    parts = [
        PartitionProduceResponse(index=p, base_offset=-1 - p, log_append_time_ms=0) for p in range(partitions)
    ]
    names = {"topic_id": bytes(16)} if version >= 13 else {"name": name}
    return ProduceResponse(
        responses=[TopicProduceResponse(**names, partition_responses=parts) for _ in range(topics)],
        throttle_time_ms=256,
    )


def fetched(topics: int = 2, partitions: int = 3, size: int = 300) -> FetchResponse:
    parts = [
        PartitionData(partition_index=p, aborted_transactions=None, records=bytes(size))
        for p in range(partitions)
    ]
    return FetchResponse(
        session_id=5,
        responses=[
            FetchableTopicResponse(topic_id=bytes(range(16)), partitions=parts) for _ in range(topics)
        ],
    )


@for_each(range(10, 14))
def test_successes_of_produce_are_plain(version: int) -> None:
    for topics in (0, 1, 5):
        for partitions in (0, 1, 126):
            assert is_plain(response(produced(version, topics, partitions), version), 0, version)
    assert is_plain(response(produced(version, name="n" * 125), version), 0, version)


@for_each(range(16, 19))
def test_successes_of_fetch_are_plain(version: int) -> None:
    for size in (0, 1, 126, 127, 128, 20_000):
        for topics in (0, 1, 5):
            assert is_plain(response(fetched(topics, 3, size), version), 1, version)


def endpoint(module: Any) -> list[Any]:
    return [module.NodeEndpoint(node_id=1, host="kafka-1", port=9)]


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: setattr(answer, "node_endpoints", endpoint(produce_response)),
        lambda answer: setattr(answer, "unknown_tags", {5: b""}),
        lambda answer: setattr(answer.responses[1].partition_responses[0], "error_code", 6),
        lambda answer: setattr(answer.responses[0].partition_responses[0], "error_message", ""),
        lambda answer: setattr(answer.responses[0].partition_responses[0], "unknown_tags", {5: b""}),
        lambda answer: setattr(answer.responses[0], "unknown_tags", {5: b"abc"}),
        lambda answer: setattr(answer.responses[0], "name", "n" * 200),
        lambda answer: answer.responses.extend(answer.responses * 100),
    ],
)
def test_other_responses_of_produce_are_decoded(change: Any) -> None:
    answer = produced(12)
    change(answer)
    assert not is_plain(response(answer, 12), 0, 12)


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: setattr(answer, "node_endpoints", endpoint(fetch_response)),
        lambda answer: setattr(answer, "unknown_tags", {5: b""}),
        lambda answer: setattr(answer.responses[1].partitions[0], "error_code", 6),
        lambda answer: setattr(answer.responses[1].partitions[0].current_leader, "leader_id", 6),
        lambda answer: setattr(
            answer.responses[0].partitions[0], "aborted_transactions", [fetch_response.AbortedTransaction()]
        ),
        lambda answer: answer.responses.extend(answer.responses * 100),
    ],
)
def test_other_responses_of_fetch_are_decoded(change: Any) -> None:
    answer = fetched()
    change(answer)
    assert not is_plain(response(answer, 17), 1, 17)


NOT_OF_BROKERS = {
    "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "DescribeQuorum", "UpdateRaftVoter",
    "StreamsGroupHeartbeat", "StreamsGroupDescribe",
}  # fmt: skip
"""APIs whose responses have addresses of controllers or of applications, but not of brokers."""


def first_with_addresses(api: Any) -> int | None:
    """Return the first response version with a host and a port in one struct, or None."""
    definition = definition_of(api.name + "Response")

    def has(spec: Any, version: int) -> bool:
        fields = list(fields_at(spec, version))
        if {"host", "port"} <= {field.attribute for field in fields}:
            return True
        kinds = [field.type_at(version) for field in fields]
        return any(has(definition.structs[kind.base], version) for kind in kinds if kind.is_struct)

    low, high = api.response.VERSIONS
    return next((version for version in range(low, high + 1) if has(definition.root, version)), None)


def test_every_response_with_an_address_of_a_broker_is_rewritten() -> None:
    """The expected responses are found in the message definitions, so that new ones are noticed."""
    expected = {
        key: first
        for key, api in API_TABLE.items()
        if api.name not in NOT_OF_BROKERS and (first := first_with_addresses(api)) is not None
    }
    assert {key: max(first, API_TABLE[key].versions[0]) for key, first in ADDRESSED_SINCE.items()} == expected
    assert {ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE} <= set(expected)


def _addressed(item: Any, definition: Definition, spec: StructSpec, version: int) -> Iterator[Any]:
    """Yield each struct of a message that has a host and a port."""
    fields = list(fields_at(spec, version))
    if {"host", "port"} <= {field.attribute for field in fields}:
        yield item
    for field in fields:
        kind, value = field.type_at(version), getattr(item, field.attribute)
        if kind.is_struct and value is not None:
            for each in value if kind.is_array else (value,):
                yield from _addressed(each, definition, definition.structs[kind.base], version)


@for_each(sorted(ADDRESSED_SINCE))
def test_no_address_of_the_cluster_is_left_in_a_response(key: int) -> None:
    """The test rewrites a response of every version, with one broker in every list of brokers."""
    api = API_TABLE[key]
    low, high = api.response.VERSIONS
    for version in range(max(low, ADDRESSED_SINCE[key]), high + 1):
        definition = definition_of(api.name + "Response")
        message = sample(api.response, definition, version, 1)
        if key == ApiKey.DESCRIBE_CLUSTER:
            message.endpoint_type = 1  # brokers
        for each in _addressed(message, definition, definition.root, version):
            each.host, each.port = "behind", 9
            if hasattr(each, "error_code"):
                each.error_code = 0
        rewrite(message, Nodes((), lambda node_id, port: 20_001, lambda node_id: None), "gateway.test")
        for each in _addressed(message, definition, definition.root, version):
            assert each.host != "behind", (api.name, version)


def test_damaged_responses_are_never_an_exception() -> None:
    dice = random.Random(11)
    for key, version, whole in ((0, 12, response(produced(12), 12)), (1, 17, response(fetched(), 17))):
        for _ in range(2000):
            data = bytearray(whole[: dice.randrange(1, len(whole) + 1)])
            data[dice.randrange(len(data))] = dice.randrange(256)
            is_plain(data, key, version)
