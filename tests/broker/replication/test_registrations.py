"""Tests of broker registrations in a cluster: fenced and unregistered brokers, and advertised addresses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker.wire_client import WireClient
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from penstock.testing import KafkaCluster

TOPIC = "t"


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3) as cluster:
        cluster.create_topic(TOPIC, replicas=[[3, 2, 1]])
        yield cluster


def ask(cluster: KafkaCluster, node: int, request: Any, version: int) -> Any:
    with WireClient(int(cluster.address(node).rpartition(":")[2])) as client:
        return client.ask(request, version)


def described(cluster: KafkaCluster, node: int, *, fenced: bool, version: int = 2) -> dict[int, bool]:
    """Send DescribeCluster; return a dict from broker id to True if the broker is fenced."""
    asked = DescribeClusterRequest(include_fenced_brokers=fenced)
    return {each.broker_id: each.is_fenced for each in ask(cluster, node, asked, version).brokers}


def unregister(cluster: KafkaCluster, at: int, broker: int) -> Any:
    return ask(cluster, at, UnregisterBrokerRequest(broker_id=broker), 0)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_fenced_brokers_are_named_to_who_asks_for_them(cluster: KafkaCluster) -> None:
    cluster.kill(3, fence=True)
    for node in (1, 2):
        assert described(cluster, node, fenced=True) == {1: False, 2: False, 3: True}
        assert described(cluster, node, fenced=False) == {1: False, 2: False}
        assert described(cluster, node, fenced=False, version=0) == {1: False, 2: False}


BROKER, LOGGER = 4, 8


@pytest.mark.parametrize(
    ("version", "kinds", "expected"),
    [
        (1, [], {BROKER, LOGGER}),
        (1, [BROKER], {BROKER}),
        (1, [LOGGER], {LOGGER}),
        (1, [2], set()),
        (0, [], set()),
    ],
)
def test_every_living_broker_is_listed_as_having_settings(
    cluster: KafkaCluster, version: int, kinds: list[int], expected: set[int]
) -> None:
    def listed(node: int) -> list[tuple[int, str]]:
        answer = ask(cluster, node, ListConfigResourcesRequest(resource_types=kinds), version)
        return sorted(
            (each.resource_type, each.resource_name)
            for each in answer.config_resources
            if each.resource_type in {BROKER, LOGGER}
        )

    def of(*brokers: int) -> list[tuple[int, str]]:
        return [(kind, str(broker)) for kind in sorted(expected) for broker in brokers]

    assert [listed(node) for node in (1, 2, 3)] == [of(1, 2, 3)] * 3
    cluster.kill(2, fence=True)
    assert [listed(node) for node in (1, 3)] == [of(1, 3)] * 2


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_a_broker_that_is_gone_is_unregistered_at_any_broker(cluster: KafkaCluster, ends: str) -> None:
    getattr(cluster, ends)(3)
    assert unregister(cluster, 2, 3).error_code == 0
    for node in (1, 2):
        until(lambda node=node: described(cluster, node, fenced=True) == {1: False, 2: False})
    state = cluster.partition(TOPIC)
    assert state.in_sync == (2, 1)
    assert state.leader == 2
    assert state.replicas == (3, 2, 1)  # what is to be done about them is for a reassignment
    refused = unregister(cluster, 1, 3)
    assert refused.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert refused.error_message == "Broker ID 3 is not currently registered"
    cluster.start(3)
    until(lambda: cluster.partition(TOPIC).in_sync == (2, 1, 3))


def test_a_broker_that_lives_registers_again(cluster: KafkaCluster) -> None:
    assert unregister(cluster, 1, 3).error_code == 0
    until(lambda: described(cluster, 1, fenced=False) == {1: False, 2: False, 3: False})
    until(lambda: sorted(cluster.partition(TOPIC).in_sync) == [1, 2, 3])


def test_producers_are_described_by_replicas(cluster: KafkaCluster) -> None:
    cluster.create_topic("u", replicas=[[3, 2]])
    for node, expected in ((3, 0), (2, 0), (1, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        asked = DescribeProducersRequest(topics=[TopicRequest(name="u", partition_indexes=[0])])
        [partition] = ask(cluster, node, asked, 0).topics[0].partitions
        assert partition.error_code == expected


@pytest.mark.parametrize(
    ("advertised", "ports"),
    [("PLAINTEXT://broker.example:7092", [7092, 7093, 7094]), ("PLAINTEXT://broker.example:0", None)],
)
def test_clients_are_told_what_is_advertised(advertised: str, ports: list[int] | None) -> None:
    with KafkaCluster(3, config={"advertised.listeners": advertised}) as cluster:
        expected = list(zip([1, 2, 3], ["broker.example"] * 3, ports or cluster.ports, strict=True))
        for node in cluster.node_ids:
            response = ask(cluster, node, MetadataRequest(topics=[]), 9)
            assert [(each.node_id, each.host, each.port) for each in response.brokers] == expected
            response = ask(cluster, node, DescribeClusterRequest(), 0)
            assert [(each.broker_id, each.host, each.port) for each in response.brokers] == expected
            found = ask(cluster, node, FindCoordinatorRequest(key="g"), 0)
            assert (found.node_id, found.host, found.port) in expected
            if ports:
                resource = DescribeConfigsResource(
                    resource_type=4, resource_name=str(node), configuration_keys=["advertised.listeners"]
                )
                [result] = ask(cluster, node, DescribeConfigsRequest(resources=[resource]), 1).results
                assert result.configs[0].value == f"PLAINTEXT://broker.example:{ports[node - 1]}"


def test_clients_are_told_the_name_of_a_listener() -> None:
    with KafkaCluster(3, host="localhost") as cluster:
        response = ask(cluster, 1, MetadataRequest(topics=[]), 9)
        assert [each.host for each in response.brokers] == ["localhost"] * 3
        assert [each.port for each in response.brokers] == cluster.ports
