"""Tests of faults that are injected on demand, as a client observes them on the wire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient
from for_each import for_each
from penstock.broker.broker import Broker
from penstock.broker.faults.faults import Faults, code_of
from penstock.errors import ConfigError, RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.format.batch_header import read_header
from penstock.testing import KafkaBroker, Request

VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as broker:
        broker.create_topic("t", partitions=2)
        broker.create_topic("u", partitions=2)
        yield broker


@pytest.fixture
def client(broker: KafkaBroker) -> Iterator[WireClient]:
    with WireClient(broker.port) as client:
        yield client


def produce_to(*places: tuple[str, int], acks: int = -1) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for topic, index in places:
        data = PartitionProduceData(index=index, records=memoryview(batch_of(b"v")))
        topics.setdefault(topic, []).append(data)
    parts = [TopicProduceData(name=name, partition_data=data) for name, data in topics.items()]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=parts)


def codes(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.index): partition.error_code
        for topic in answer.responses
        for partition in topic.partition_responses
    }


def end_offset(client: WireClient, topic: str, index: int) -> int:
    partition = ListOffsetsPartition(partition_index=index, timestamp=-1)
    asked = ListOffsetsTopic(name=topic, partitions=[partition])
    answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=[asked]), 5)
    offset = answer.topics[0].partitions[0].offset
    assert isinstance(offset, int)
    return offset


def fetch_of(topic: str, index: int, offset: int = 0, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        min_bytes=1, max_wait_ms=max_wait_ms, topics=[FetchTopic(topic=topic, partitions=[partition])]
    )


# --- any broker ---------------------------------------------------------------------------------------------


def test_a_plain_broker_has_faults_once_they_are_asked_for() -> None:
    """A fault that is set later also applies to a connection that was open before.

    The broker is paused while the fault is set.
    """
    with Broker() as broker:
        broker.create_topic("t")
        with WireClient(broker.port) as client:
            assert codes(client.ask(produce_to(("t", 0)), 9)) == {("t", 0): 0}
            assert broker.server is not None
            (connection,) = broker.server.connections
            assert connection.faults is None  # type: ignore[attr-defined]
            with broker.paused():
                fault = broker.faults.drop("Produce", connection=1)
            with fault:
                client.send(produce_to(("t", 0)), 9)
                fault.wait()
                with WireClient(broker.port) as other:
                    assert codes(other.ask(produce_to(("t", 0)), 9)) == {("t", 0): 0}
                    assert [each.number for each in broker.connections] == [1, 2]


# --- fail ---------------------------------------------------------------------------------------------------


def test_only_what_was_named_fails_and_the_rest_is_written(broker: KafkaBroker, client: WireClient) -> None:
    request = produce_to(("t", 0), ("t", 1), ("u", 0), ("u", 1))
    with broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="t", partition=1) as fault:
        answer = client.ask(request, 9)
    assert codes(answer) == {("t", 0): 0, ("t", 1): 6, ("u", 0): 0, ("u", 1): 0}
    assert fault.count == 1
    assert [end_offset(client, *place) for place in (("t", 0), ("t", 1), ("u", 0), ("u", 1))] == [1, 0, 1, 1]


def test_a_whole_topic_fails(broker: KafkaBroker, client: WireClient) -> None:
    with broker.faults.fail("Produce", error=ErrorCode.MESSAGE_TOO_LARGE, topic="u"):
        answer = client.ask(produce_to(("u", 0), ("t", 0), ("u", 1)), 9)
    assert codes(answer) == {("u", 0): 10, ("u", 1): 10, ("t", 0): 0}


def test_twice_and_then_never_again(broker: KafkaBroker, client: WireClient) -> None:
    fault = broker.faults.fail("Produce", error="NOT_ENOUGH_REPLICAS", times=2, skip=1)
    seen = [codes(client.ask(produce_to(("t", 0)), 9))["t", 0] for _ in range(5)]
    assert seen == [0, 19, 19, 0, 0]
    assert fault.count == 2
    assert [request.partitions for request in fault.requests] == [[("t", 0)]] * 2


def test_applied_in_spite_of_the_error(broker: KafkaBroker, client: WireClient) -> None:
    with broker.faults.fail("Produce", error="REQUEST_TIMED_OUT", applied=True):
        assert codes(client.ask(produce_to(("t", 0)), 9)) == {("t", 0): 7}
    assert end_offset(client, "t", 0) == 1


def test_without_acknowledgement_the_connection_ends(broker: KafkaBroker) -> None:
    with broker.faults.fail("Produce", error="MESSAGE_TOO_LARGE"), WireClient(broker.port) as client:
        client.send(produce_to(("t", 0), acks=0), 9)
        assert client.is_closed_by_peer()


def test_two_faults_in_one_request(broker: KafkaBroker, client: WireClient) -> None:
    broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", partition=0, topic="t")
    broker.faults.fail("Produce", error="CORRUPT_MESSAGE", partition=1)
    answer = client.ask(produce_to(("t", 0), ("t", 1), ("u", 0)), 9)
    assert codes(answer) == {("t", 0): 6, ("t", 1): 2, ("u", 0): 0}


def test_a_fetch_that_fails_does_not_wait(broker: KafkaBroker, client: WireClient) -> None:
    with broker.faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", topic="t"):
        begin = time.monotonic()
        answer = client.ask(fetch_of("t", 0, max_wait_ms=30_000), 12)
        assert time.monotonic() - begin < 10
    assert answer.responses[0].partitions[0].error_code == 6
    with broker.faults.fail("Fetch", error="FETCH_SESSION_ID_NOT_FOUND"):
        assert client.ask(fetch_of("t", 0), 12).error_code == 70


def test_topics_by_id(broker: KafkaBroker, client: WireClient) -> None:
    answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    topic_id = answer.topics[0].topic_id
    with broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="t"):
        refused = client.ask(produce_request(batch_of(b"v"), topic="", topic_id=topic_id), 13)
    assert refused.responses[0].topic_id == topic_id
    assert refused.responses[0].partition_responses[0].error_code == 6


@pytest.mark.parametrize("version", [0, 1, 5, 9, 12, 13])
def test_metadata_of_one_topic(broker: KafkaBroker, version: int, client: WireClient) -> None:
    with broker.faults.fail("Metadata", error="LEADER_NOT_AVAILABLE", topic="t"):
        answer = client.ask(MetadataRequest(topics=[] if version == 0 else None), version)
    assert {topic.name: topic.error_code for topic in answer.topics} == {"t": 5, "u": 0}
    assert len(answer.brokers) == 1
    with broker.faults.fail("Metadata", error="LEADER_NOT_AVAILABLE", topic="u", partition=1):
        answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="u")]), version)
    partitions = answer.topics[0].partitions
    assert {each.partition_index: each.error_code for each in partitions} == {0: 0, 1: 5}


def test_by_client_connection_and_predicate(broker: KafkaBroker) -> None:
    with WireClient(broker.port) as first, WireClient(broker.port) as second:
        for each in (first, second):
            assert codes(each.ask(produce_to(("t", 0)), 9)) == {("t", 0): 0}
        numbers = [info.number for info in broker.connections]
        assert [info.client_id for info in broker.connections] == ["wire", "wire"]
        broker.faults.fail("Produce", error="UNKNOWN_SERVER_ERROR", connection=numbers[1])
        assert codes(first.ask(produce_to(("t", 0)), 9)) == {("t", 0): 0}
        assert codes(second.ask(produce_to(("t", 0)), 9)) == {("t", 0): -1}
        broker.faults.clear()

        def is_for_both(request: Request) -> bool:
            return request.topics == ["t", "u"]

        broker.faults.fail("Produce", error="INVALID_RECORD", when=is_for_both)
        broker.faults.fail(None, error="UNKNOWN_SERVER_ERROR", client_id="nobody")
        assert codes(first.ask(produce_to(("t", 0)), 9)) == {("t", 0): 0}
        assert codes(first.ask(produce_to(("t", 0), ("u", 0)), 9)) == {("t", 0): 87, ("u", 0): 87}


def test_names_are_checked_and_the_nearest_suggested() -> None:
    faults = Faults()
    with pytest.raises(ConfigError, match="did you mean Produce"):
        faults.drop("Prodduce")
    with pytest.raises(ConfigError, match="did you mean NOT_LEADER_OR_FOLLOWER"):
        faults.fail("Produce", error="NOT_LEADER_FOR_FOLLOWER")
    with pytest.raises(ConfigError, match="unknown: topics"):
        faults.fail("Produce", error=6, topics="t")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="at least once"):
        faults.drop("Produce", times=0)
    with pytest.raises(ConfigError, match="none of"):
        faults.corrupt("Fetch", "everything")  # type: ignore[arg-type]
    for api in ("list_offsets", "ListOffsets", 2, "LISTOFFSETS"):
        assert faults.watch(api).target.key == 2


# --- silence, ends, delays ----------------------------------------------------------------------------------


@pytest.mark.parametrize("applied", [False, True])
def test_dropped(broker: KafkaBroker, client: WireClient, applied: bool) -> None:
    with broker.faults.drop("Produce", times=1, applied=applied) as fault:
        client.send(produce_to(("t", 0)), 9)
        fault.wait()
        client.send(VERSIONS, 3)
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.receive()
    with WireClient(broker.port) as other:
        assert end_offset(other, "t", 0) == int(applied)


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("reset", [False, True])
def test_closed(broker: KafkaBroker, client: WireClient, applied: bool, reset: bool) -> None:
    broker.faults.close("Produce", applied=applied, reset=reset)
    client.send(produce_to(("t", 0)), 9)
    if reset:
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)
    else:
        assert client.socket.recv(1) == b""
    with WireClient(broker.port) as other:
        assert end_offset(other, "t", 0) == int(applied)


@pytest.mark.parametrize("applied", [False, True])
def test_delayed_in_its_turn(broker: KafkaBroker, client: WireClient, applied: bool) -> None:
    broker.faults.delay("Produce", seconds=0.3, times=1, applied=applied)
    begin = time.monotonic()
    first = client.send(produce_to(("t", 0)), 9)
    second = client.send(VERSIONS, 3)
    with WireClient(broker.port) as other:
        assert end_offset(other, "t", 0) in ([0, 1] if applied else [0])
    assert client.receive()[0] == first
    assert time.monotonic() - begin >= 0.3
    assert client.receive()[0] == second
    assert end_offset(client, "t", 0) == 1


# --- damage -------------------------------------------------------------------------------------------------


def test_damaged_records_fail_their_checksum(broker: KafkaBroker, client: WireClient) -> None:
    client.ask(produce_to(("t", 0)), 9)
    good = client.ask(fetch_of("t", 0), 12).responses[0].partitions[0].records
    with broker.faults.corrupt("Fetch", "records", topic="t"):
        bad = client.ask(fetch_of("t", 0), 12).responses[0].partitions[0].records
    assert bytes(bad[:-1]) == bytes(good[:-1])
    assert bad[-1] == good[-1] ^ 1
    assert read_header(memoryview(bad)).base_offset == 0
    assert bytes(client.ask(fetch_of("t", 0), 12).responses[0].partitions[0].records) == bytes(good)


def test_damaged_frames(broker: KafkaBroker) -> None:
    with WireClient(broker.port) as client:
        clean = bytearray(client.bytes_of(VERSIONS, 3))
        client.socket.sendall(clean)
        frame = client.receive_frame()
        client.socket.sendall(clean)
        with broker.faults.corrupt("ApiVersions", "body", times=1):
            client.receive_frame()
        for damage, expected in (
            ("correlation", frame[:3] + bytes([frame[3] ^ 1]) + frame[4:]),
            (lambda whole: whole[:4] + b"\xff" * (len(whole) - 4), b"\xff" * len(frame)),
        ):
            with broker.faults.corrupt("ApiVersions", damage, times=1):
                client.socket.sendall(clean)
                assert client.receive_frame() == expected
        with broker.faults.corrupt("ApiVersions", "cut", times=1):
            client.socket.sendall(clean)
            with pytest.raises(ConnectionError):
                client.receive_frame()


def test_a_size_that_promises_more(broker: KafkaBroker, client: WireClient) -> None:
    with broker.faults.corrupt("ApiVersions", "size"):
        client.send(VERSIONS, 3)
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.receive_frame()


# --- order --------------------------------------------------------------------------------------------------


def base_offset(answer: Any) -> int:
    offset = answer.responses[0].partition_responses[0].base_offset
    assert isinstance(offset, int)
    return offset


@pytest.mark.parametrize(("applied", "offsets"), [(False, [0, 1]), (True, [1, 0])])
def test_the_next_request_overtakes(
    broker: KafkaBroker, client: WireClient, applied: bool, offsets: list[int]
) -> None:
    """The second request is answered before the first.

    With `applied` the broker also executes the two in that order; otherwise only the answers are exchanged.
    """
    broker.faults.reorder("Produce", times=1, applied=applied, seconds=5)
    data = [client.bytes_of(produce_to(("t", 0)), 9) for _ in range(3)]
    client.socket.sendall(b"".join(data))
    answers = [client.receive() for _ in range(3)]
    assert [number for number, _ in answers] == [2, 1, 3]
    assert [base_offset(answer) for _, answer in answers[:2]] == offsets
    assert end_offset(client, "t", 0) == 3


@pytest.mark.parametrize("applied", [False, True])
def test_nothing_comes_to_overtake(broker: KafkaBroker, client: WireClient, applied: bool) -> None:
    broker.faults.reorder("Produce", times=1, applied=applied, seconds=0.05)
    assert codes(client.ask(produce_to(("t", 0)), 9)) == {("t", 0): 0}


# --- watching -----------------------------------------------------------------------------------------------


def test_watching_changes_nothing(broker: KafkaBroker, client: WireClient) -> None:
    with broker.faults.watch("Produce", topic="t") as seen, broker.faults.watch() as everything:
        client.ask(produce_to(("t", 1)), 9)
        client.ask(produce_to(("u", 1)), 9)
        client.ask(VERSIONS, 3)
        everything.wait(3)
    assert seen.count == 1
    request = seen.requests[0]
    assert (request.api, request.version, request.client_id, request.topics, request.partitions) == (
        "Produce", 9, "wire", ["t"], [("t", 1)],
    )  # fmt: skip
    assert "Produce v9 of t-1" in repr(request)
    with pytest.raises(RequestTimeoutError, match="4 times"):
        everything.wait(4, timeout_s=0.01)


@for_each(
    [
        ({"api": "Prodcue"}, "there is no API Prodcue; did you mean Produce[?]"),
        ({"api": "list_ofsets"}, "did you mean ListOffsets[?]"),
        ({"api": 4711}, "no API with key 4711"),
        ({"api": ["Fetch"]}, "is no API: name one"),
        ({"api": True}, "is no API: name one"),
        ({"api": "UpdateMetadata"}, "no client is served UpdateMetadata here"),
        ({"topics": "t"}, "unknown: topics; did you mean topic[?]"),
        ({"topic": 3}, "topic=3: topic is text"),
        ({"partition": "0"}, "partition='0': partition is a number"),
        ({"group": b"g"}, "group is text"),
        ({"client_id": 1}, "client_id is text"),
        ({"connection": "1"}, "connection is a number"),
        ({"times": "2"}, "times is a number"),
        ({"times": 0}, "at least once"),
        ({"skip": -1}, "skip=-1"),
        ({"when": "always"}, "when is a function"),
        ({"seconds": "3"}, "no time to wait"),
        ({"seconds": -1}, "no time to wait"),
    ]
)
def test_what_could_never_happen_is_refused_when_it_is_set(words: dict[str, Any], message: str) -> None:
    faults = Faults()
    with pytest.raises(ConfigError, match=message):
        faults.delay(**{"api": "Fetch", **words})
    assert not faults.active


@pytest.mark.parametrize("api", ["ListOffsets", "list_offsets", "list-offsets", "ListOffsetsRequest", 2])
def test_an_api_by_any_of_its_names(api: str | int) -> None:
    assert Faults().watch(api).target.key == 2


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("NOT_LEADR", "NOT_LEADER_OR_FOLLOWER"),
        ("NOT_LEADER", "NOT_LEADER_OR_FOLLOWER"),
        ("unknown_topc", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("LEADER", "LEADER_NOT_AVAILABLE"),
        ("CORUPT_MESSAGE", "CORRUPT_MESSAGE"),
    ],
)
def test_a_misspelt_error_suggests_those_that_begin_like_it(typed: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean .*{meant}"):
        code_of(typed)
