"""Tests of the faults that `penstock.testing` injects at a gateway between clients and ordinary brokers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from broker.wire_client import WireClient
from gateway.relays import World, answers_of, asked_of, request, response
from gateway.test_gateway import consume
from penstock.client import Admin, Producer
from penstock.client.admin.admin import NewTopic
from penstock.errors import ConfigError, CorruptRecordError
from penstock.gateway import Gateway
from penstock.gateway.hooks.chain import Hooks
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch
from penstock.testing import Faults, KafkaBroker, KafkaCluster

VERSIONS = {0: (3, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 12: (0, 4), 18: (0, 4)}
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def world() -> tuple[World, Faults]:
    hooks = Hooks()
    return World(hooks=hooks, versions=VERSIONS), hooks.faults_of()


def beats(data: bytes) -> list[tuple[int, int]]:
    return [(number, answer.error_code) for number, answer in answers_of(data, 12, 4)]


def test_a_failure_is_answered_and_the_cluster_gets_nothing() -> None:
    here, faults = world()
    fault = faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS", group="g", skip=1, times=1)
    for number in (1, 2, 3):
        here.client_sends(request(BEAT, 4, number))
        if number != 2:
            assert asked_of(here.broker.taken()) == [(12, 4, number)]
            here.broker_sends(response(HeartbeatResponse(), 4, number))
    assert here.broker.taken() == b""
    assert beats(here.client.taken()) == [(1, 0), (2, 27), (3, 0)]
    assert fault.count == 1
    assert fault.requests[0].client_id == "device"


def test_a_failure_that_is_applied_is_carried_out() -> None:
    here, faults = world()
    faults.fail("Heartbeat", 27, applied=True)
    here.client_sends(request(BEAT, 4))
    assert asked_of(here.broker.taken()) == [(12, 4, 1)]
    here.broker_sends(response(HeartbeatResponse(), 4))
    assert beats(here.client.taken()) == [(1, 27)]


def test_nothing_is_looked_at_when_faults_have_ended() -> None:
    here, faults = world()
    with faults.fail("Heartbeat", 27):
        assert here.hooks.keys == {12}
    assert here.hooks.keys == frozenset()
    faults.watch()
    assert {0, 1, 12, 18} <= here.hooks.keys
    assert not {17, 36} & here.hooks.keys
    faults.clear()
    frame = request(BEAT, 4)
    here.client_sends(frame)
    assert here.broker.taken() == frame


@pytest.mark.parametrize("applied", [False, True])
def test_a_dropped_request_is_never_answered(applied: bool) -> None:
    here, faults = world()
    faults.drop("Heartbeat", applied=applied)
    here.client_sends(request(BEAT, 4))
    assert bool(here.broker.taken()) is applied
    if applied:
        here.broker_sends(response(HeartbeatResponse(), 4))
    assert here.client.taken() == b""
    assert not here.client.is_closed


@pytest.mark.parametrize("reset", [False, True])
def test_a_connection_is_closed(reset: bool) -> None:
    here, faults = world()
    faults.close("Heartbeat", reset=reset)
    here.client_sends(request(BEAT, 4))
    assert here.client.is_closed
    assert here.client.is_reset is reset


@pytest.mark.parametrize("applied", [False, True])
def test_a_delayed_answer_comes_late(applied: bool) -> None:
    here, faults = world()
    faults.delay("Heartbeat", seconds=3, applied=applied)
    here.client_sends(request(BEAT, 4))
    if applied:
        here.broker_sends(response(HeartbeatResponse(), 4))
    assert bool(here.broker.taken()) is applied
    assert here.client.taken() == b""
    here.timers.pop()()
    if not applied:
        assert here.broker.taken()
        here.broker_sends(response(HeartbeatResponse(), 4))
    assert beats(here.client.taken()) == [(1, 0)]


@pytest.mark.parametrize("applied", [False, True])
def test_a_request_is_overtaken_by_the_next_one(applied: bool) -> None:
    here, faults = world()
    faults.reorder("Heartbeat", applied=applied, times=1)
    here.client_sends(request(BEAT, 4, 1), request(BEAT, 4, 2))
    order = []
    while asked := asked_of(here.broker.taken()):
        for _, _, number in asked:
            order.append(number)
            here.broker_sends(response(HeartbeatResponse(), 4, number))
    assert order == ([1, 2] if applied else [2, 1])
    assert beats(here.client.taken()) == [(2, 0), (1, 0)]
    assert here.held == 0


def test_a_request_that_nothing_overtakes_goes_on_after_its_time() -> None:
    here, faults = world()
    faults.reorder("Heartbeat", times=1)
    here.client_sends(request(BEAT, 4, 1))
    assert here.broker.taken() == b""
    here.timers.pop()()
    assert asked_of(here.broker.taken()) == [(12, 4, 1)]


@pytest.mark.parametrize(
    ("damage", "changed"),
    [
        ("size", lambda whole: (len(whole) - 4 + 1000).to_bytes(4, "big") + whole[4:]),
        ("correlation", lambda whole: whole[:7] + bytes([whole[7] ^ 1]) + whole[8:]),
        ("cut", lambda whole: whole[: len(whole) // 2]),
        (lambda whole: whole + b"x", lambda whole: whole + b"x"),
    ],
)
def test_an_answer_is_damaged(damage: Any, changed: Any) -> None:
    here, faults = world()
    faults.corrupt("Heartbeat", damage)
    here.client_sends(request(BEAT, 4))
    whole = response(HeartbeatResponse(), 4)
    here.broker_sends(whole)
    assert here.client.taken() == changed(whole)
    assert here.client.is_closed is (damage == "cut")


@pytest.mark.parametrize("is_decoded", [False, True])
def test_what_clients_are_offered_stays_so_where_versions_are_watched(is_decoded: bool) -> None:
    here, faults = world()
    seen = faults.delay("ApiVersions") if is_decoded else faults.watch("ApiVersions")
    here.client_sends(request(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3))
    has = [
        ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in VERSIONS.items()
    ]
    has.append(ApiVersion(api_key=1000, min_version=0, max_version=0))
    here.broker_sends(response(ApiVersionsResponse(api_keys=has, finalized_features_epoch=7), 3))
    if is_decoded:
        here.timers.pop()()
    [(_, answer)] = answers_of(here.client.taken(), 18, 3)
    assert {each.api_key for each in answer.api_keys} == set(VERSIONS)
    assert answer.finalized_features_epoch == 7
    assert seen.count == 1


def test_a_condition_that_raises_ends_its_connection_only() -> None:
    here, faults = world()

    def broken(request: Any) -> bool:
        raise RuntimeError("broken")

    faults.fail("Heartbeat", 27, when=broken)
    here.client_sends(request(BEAT, 4))
    assert here.client.is_closed
    assert here.failures == ["a request from 10.0.0.7:1234"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, num_partitions=1, default_replication_factor=3) as cluster:
        yield cluster


@pytest.fixture
def gateway(cluster: KafkaCluster) -> Iterator[Gateway]:
    with Gateway(to=cluster.bootstrap_servers) as gateway:
        yield gateway


def test_a_producer_writes_once_what_it_had_to_send_twice(gateway: Gateway) -> None:
    lost = gateway.faults.close("Produce", topic="once", applied=True, times=2)
    refused = gateway.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="once", skip=1, times=1)
    with Producer(bootstrap_servers=gateway.bootstrap_servers) as producer:
        for number in range(5):
            producer.send("once", b"%d" % number)
            producer.flush()
    assert (lost.count, refused.count) == (2, 1)
    assert consume(gateway.bootstrap_servers, "once", 5) == list(range(5))


def test_records_with_a_wrong_bit_are_read_again(gateway: Gateway) -> None:
    with Producer(bootstrap_servers=gateway.bootstrap_servers) as producer:
        producer.send("bits", b"1")
    damaged = gateway.faults.corrupt("Fetch", "records", topic="bits", times=1)
    try:
        found = consume(gateway.bootstrap_servers, "bits", 1)
    except CorruptRecordError:
        found = consume(gateway.bootstrap_servers, "bits", 1)
    assert damaged.count == 1
    assert found == [1]


def test_one_partition_fails_by_its_topic_whose_id_alone_the_request_has() -> None:
    with KafkaBroker() as broker, Gateway(to=broker.bootstrap_servers) as gateway:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("good", 1), NewTopic("bad", 1)])
        gateway.faults.fail("Produce", "MESSAGE_TOO_LARGE", topic="bad")
        with WireClient(gateway.port) as client:
            topics = client.ask(MetadataRequest(topics=None), 12).topics
            ids = {each.name: each.topic_id for each in topics}
            data = [
                TopicProduceData(
                    topic_id=ids[name],
                    partition_data=[
                        PartitionProduceData(index=0, records=encode_batch([(None, b"v", (), 1)]))
                    ],
                )
                for name in ("bad", "good")
            ]
            answer = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data), 13)
        codes = {each.topic_id: each.partition_responses[0].error_code for each in answer.responses}
        assert codes == {ids["bad"]: 10, ids["good"]: 0}


def test_an_old_client_gets_the_fault_in_its_own_version() -> None:
    with KafkaBroker(as_version="4.3") as broker, Gateway(to=broker.bootstrap_servers) as gateway:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1)])
        gateway.faults.fail("ListOffsets", "LEADER_NOT_AVAILABLE", topic="t", times=1)
        asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        with WireClient(gateway.port) as client:
            codes = [
                client.ask(ListOffsetsRequest(replica_id=-1, topics=[asked]), 0)
                .topics[0]
                .partitions[0]
                .error_code
                for _ in range(2)
            ]
    assert codes == [5, 0]


def test_a_fault_that_cannot_be_meant_is_refused(gateway: Gateway) -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        gateway.faults.fail("Produced", 27)


def test_a_reset_reaches_the_client() -> None:
    with KafkaBroker() as broker, Gateway(to=broker.bootstrap_servers) as gateway:
        gateway.faults.close("Metadata", reset=True)
        with socket.create_connection(("127.0.0.1", gateway.port), 10) as client:
            client.sendall(request(MetadataRequest(topics=None), 12))
            with pytest.raises(ConnectionResetError):
                client.recv(1)
