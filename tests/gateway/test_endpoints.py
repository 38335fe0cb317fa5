"""Which responses are plain: passed on without being decoded, since they carry no endpoints."""

from __future__ import annotations

import random
from typing import Any

import pytest

from for_each import for_each
from gateway.relays import response
from penstock.gateway import endpoints
from penstock.protocol.messages import fetch_response, produce_response
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


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


def test_damaged_responses_are_never_an_exception() -> None:
    dice = random.Random(11)
    for key, version, whole in ((0, 12, response(produced(12), 12)), (1, 17, response(fetched(), 17))):
        for _ in range(2000):
            data = bytearray(whole[: dice.randrange(1, len(whole) + 1)])
            data[dice.randrange(len(data))] = dice.randrange(256)
            is_plain(data, key, version)
