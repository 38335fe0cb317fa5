"""Tests that send every API in every version to every broker of a cluster: no unexpected error occurs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import pytest

from broker.bench_node import EVERY_API
from broker.handlers.test_every_version import CASES, REQUESTS, codes_in
from broker.wire_client import WireClient
from penstock.broker.cluster_node import ClusterNode
from penstock.broker.metadata.cluster import ClusterState
from penstock.broker.node import Node
from penstock.errors import KafkaError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.testing import KafkaCluster

SETTINGS = {name.replace("_", "."): text for name, text in EVERY_API.items()}

INTERNAL = ("__consumer_offsets", "__transaction_state")


@pytest.fixture(scope="module", params=["nothing was used", "coordinators are there"])
def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    with KafkaCluster(3, config=SETTINGS) as cluster:
        if request.param == "coordinators are there":
            for name in INTERNAL:
                cluster.create_topic(name, replicas=[[1, 2, 3]])
        yield cluster


def node_of(cluster: KafkaCluster, number: int) -> Node:
    found: ClusterNode = cluster._node(number)
    assert found.server is not None
    return found.server.node


@pytest.mark.parametrize("key", [key for key in ApiKey if key in REQUESTS], ids=lambda key: key.name)
def test_no_api_fails_unexpectedly(
    cluster: KafkaCluster, key: ApiKey, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker keeps the connection, never answers UNKNOWN_SERVER_ERROR, and logs no problem."""
    caplog.set_level(logging.WARNING)
    versions = [version for each, version in CASES if each == key]
    for version in versions:
        for number in cluster.node_ids:
            with contextlib.suppress(KafkaError):  # it is there already
                cluster.create_topic("t", replicas=[[1, 2, 3]])
            node = node_of(cluster, number)
            asked = cluster._call(lambda node=node, version=version: REQUESTS[key](node, version))
            if key == ApiKey.JOIN_GROUP:  # a group that has members waits for them
                asked.group_id = f"g{version}-{number}"
            with WireClient(int(cluster.address(number).rpartition(":")[2])) as client:
                codes = codes_in(client.ask(asked, version))
            # Apache Kafka, too, answers -1 for a share partition that no heartbeat of the group has begun.
            assert ErrorCode.UNKNOWN_SERVER_ERROR not in codes or key == ApiKey.SHARE_FETCH
    assert [each.getMessage() for each in caplog.records] == []


@pytest.mark.parametrize("owner", [ClusterState, Node])
def test_what_one_broker_has_a_broker_of_a_cluster_has(cluster: KafkaCluster, owner: type) -> None:
    """Every public property of a cluster's broker can be read.

    None depends on a component that only a single broker has.
    """
    names = [name for name, value in vars(owner).items() if isinstance(value, property)]
    assert names
    for number in cluster.node_ids:
        node = node_of(cluster, number)
        part = node if owner is Node else node.cluster
        for name in names:
            cluster._call(lambda part=part, name=name: getattr(part, name))
