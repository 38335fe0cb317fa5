"""Tests of the broker over a socket: response order, fragmented requests, purgatory, large frames, acks=0."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient, is_well
from penstock import Broker
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.records.batch import decode_batch
from penstock.records.format.batch_header import split_batches


@pytest.fixture(params=["memory", "disk"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path if request.param == "disk" else None) as broker:
        with WireClient(broker.port) as client:
            client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.port) as client:
        yield client


def fetch_of(
    offset: int = 0, min_bytes: int = 1, max_wait_ms: int = 0, max_bytes: int = 1 << 26
) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        min_bytes=min_bytes, max_wait_ms=max_wait_ms, topics=[FetchTopic(topic="t", partitions=[partition])]
    )


def values_in(answer: Any) -> list[bytes | None]:
    data = answer.responses[0].partitions[0].records
    return [
        row.value for start, end, _ in split_batches(data) for row in decode_batch(data, start, end, "t", 0)
    ]


VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")


def test_what_goes_in_comes_out(client: WireClient) -> None:
    answer = client.ask(produce_request(batch_of(b"a", b"b")), 9)
    assert answer.responses[0].partition_responses[0].base_offset == 0
    assert values_in(client.ask(fetch_of(), 12)) == [b"a", b"b"]


def test_any_chunking_of_the_requests_gives_the_same_answers(client: WireClient) -> None:
    requests = [VERSIONS, produce_request(batch_of(b"a")), fetch_of(), VERSIONS]
    stream = b"".join(
        client.bytes_of(one, version) for one, version in zip(requests, (3, 9, 12, 0), strict=True)
    )
    for number, step in enumerate((1, 2, 3, 5, 64, 100, len(stream))):
        for start in range(0, len(stream), step):
            client.socket.sendall(stream[start : start + step])
            if step < 4:
                time.sleep(0.0005)
        answers = [client.receive() for _ in requests]
        assert [correlation_id for correlation_id, _ in answers] == [1, 2, 3, 4]
        versions, produced, fetched, old_versions = [answer for _, answer in answers]
        assert versions.error_code == old_versions.error_code == 0
        assert {api.api_key for api in versions.api_keys} == {api.api_key for api in old_versions.api_keys}
        assert produced.responses[0].partition_responses[0].base_offset == number
        assert values_in(fetched) == [b"a"] * (number + 1)


def test_a_hundred_requests_in_flight_are_answered_in_order(client: WireClient) -> None:
    stream = b"".join(client.bytes_of(produce_request(batch_of(b"%d" % n)), 9) for n in range(100))
    client.socket.sendall(stream)
    answers = [client.receive() for _ in range(100)]
    assert [correlation_id for correlation_id, _ in answers] == list(range(1, 101))
    offsets = [answer.responses[0].partition_responses[0].base_offset for _, answer in answers]
    assert offsets == list(range(100))


def test_a_frame_of_many_megabytes(client: WireClient, broker: Broker) -> None:
    value = bytes(range(256)) * 3600
    for n in range(5):
        assert (
            client.ask(produce_request(batch_of(value)), 9).responses[0].partition_responses[0].base_offset
            == n
        )
    answer = client.ask(fetch_of(), 12)
    assert values_in(answer) == [value] * 5


def test_a_long_poll_is_answered_when_records_arrive(client: WireClient, broker: Broker) -> None:
    client.send(fetch_of(max_wait_ms=10_000), 12)
    time.sleep(0.05)
    began = time.monotonic()
    with WireClient(broker.port) as producer:
        producer.ask(produce_request(batch_of(b"a")), 9)
    assert values_in(client.receive()[1]) == [b"a"]
    assert time.monotonic() - began < 5


def test_a_long_poll_waits_for_enough_bytes(client: WireClient, broker: Broker) -> None:
    size = len(batch_of(b"x" * 100))
    client.send(fetch_of(min_bytes=3 * size, max_wait_ms=10_000), 12)
    with WireClient(broker.port) as producer:
        for _ in range(3):
            producer.ask(produce_request(batch_of(b"x" * 100)), 9)
    assert len(values_in(client.receive()[1])) == 3


def test_a_long_poll_ends_at_its_deadline(client: WireClient) -> None:
    began = time.monotonic()
    assert values_in(client.ask(fetch_of(max_wait_ms=100), 12)) == []
    assert 0.09 < time.monotonic() - began < 5


def test_requests_behind_a_long_poll_wait_their_turn(client: WireClient, broker: Broker) -> None:
    """The 200 requests behind the waiting Fetch are more than the broker reads ahead.

    A Produce request that overtook the Fetch would complete it.
    """
    client.send(fetch_of(max_wait_ms=300), 12)
    stream = b"".join(client.bytes_of(produce_request(batch_of(b"x" * 1000)), 9) for _ in range(200))
    client.socket.sendall(stream)
    first, answer = client.receive()
    assert (first, values_in(answer)) == (1, [])
    assert [client.receive()[0] for _ in range(200)] == list(range(2, 202))


def test_a_client_that_leaves_during_a_long_poll_is_forgotten(broker: Broker) -> None:
    assert broker.server is not None
    parked = broker.server.node.purgatory
    for _ in range(20):
        with WireClient(broker.port) as client:
            client.send(fetch_of(max_wait_ms=600_000), 12)
            until(lambda: len(parked) == 1)
        until(lambda: len(parked) == 0)
    with WireClient(broker.port) as producer:
        assert (
            producer.ask(produce_request(batch_of(b"a")), 9).responses[0].partition_responses[0].error_code
            == 0
        )
    assert is_well(broker.port)


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that another thread fulfills; fail after ten seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_no_acks_no_answer(client: WireClient) -> None:
    client.send(produce_request(batch_of(b"a"), acks=0), 9)
    assert client.ask(VERSIONS, 3).error_code == 0
    assert values_in(client.ask(fetch_of(), 12)) == [b"a"]
    client.send(produce_request(batch_of(b"a"), acks=0, topic="missing"), 9)
    assert client.is_closed_by_peer()


def test_a_large_answer_to_a_slow_reader_is_whole(client: WireClient, broker: Broker) -> None:
    value = b"v" * 900_000
    for _ in range(12):
        client.ask(produce_request(batch_of(value)), 9)
    client.send(fetch_of(), 12)
    client.send(VERSIONS, 3)
    time.sleep(0.3)
    assert is_well(broker.port), "others do not notice"
    assert values_in(client.receive()[1]) == [value] * 12
    assert client.receive()[1].error_code == 0


def test_the_end_of_a_log_is_where_it_was_written(client: WireClient) -> None:
    client.ask(produce_request(batch_of(b"a", b"b")), 9)
    topic = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    answer = client.ask(ListOffsetsRequest(topics=[topic]), 7)
    assert answer.topics[0].partitions[0].offset == 2
