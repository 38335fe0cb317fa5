"""Tests of eligible leader replicas (KIP-966): which replica leads when none is in sync.

They also check what clients are shown of the ELR.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.wire_client import WireClient
from penstock.broker.metadata.image import ELR_FEATURE
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from penstock.records.batch import encode_batch
from penstock.testing import KafkaCluster

TOPIC = "t"


def ask(cluster: KafkaCluster, node: int, request: Any, version: int) -> Any:
    with WireClient(int(cluster.address(node).rpartition(":")[2])) as client:
        return client.ask(request, version)


def set_feature(cluster: KafkaCluster, level: int, node: int = 1) -> int:
    update = FeatureUpdateKey(feature=ELR_FEATURE, max_version_level=level, upgrade_type=1 if level else 2)
    code: int = ask(cluster, node, UpdateFeaturesRequest(feature_updates=[update]), 2).error_code
    return code


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    """Yield a cluster of three brokers with three replicas, of which two have to be in sync."""
    with KafkaCluster(3) as cluster:
        assert set_feature(cluster, 1) == 0
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]], min_insync_replicas=2)
        yield cluster


State = tuple[int, list[int], list[int], list[int]]


def state(cluster: KafkaCluster) -> State:
    """Return leader, ISR, ELR and last known ELR if all running brokers agree.

    Returns (-9, [], [], []) if they do not agree.
    """
    found: list[State] = []
    for each in cluster.nodes():
        if each.state == "running":
            asked = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=TOPIC)])
            [one] = ask(cluster, each.broker, asked, 0).topics[0].partitions
            found.append(
                (one.leader_id, one.isr_nodes, one.eligible_leader_replicas or [], one.last_known_elr or [])
            )
    return found[0] if all(one == found[0] for one in found) else (-9, [], [], [])


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def produced(cluster: KafkaCluster, node: int, acks: int = -1) -> int:
    batch = memoryview(bytearray(encode_batch([(None, b"v", (), 5)])))
    topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
    request = ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topic])
    code: int = ask(cluster, node, request, 9).responses[0].partition_responses[0].error_code
    return code


def feature_at(cluster: KafkaCluster, node: int) -> int:
    found = ask(
        cluster, node, ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4
    ).finalized_features
    return {each.name: each.max_version_level for each in found}.get(ELR_FEATURE, 0)


def set_minimum(cluster: KafkaCluster, kind: int, name: str, value: int | None) -> Any:
    setting = AlterableConfig(
        name="min.insync.replicas",
        value=None if value is None else str(value),
        config_operation=1 if value is None else 0,
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[setting])
    [done] = ask(cluster, 1, IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    return done.error_code


def minimum_of(cluster: KafkaCluster) -> tuple[str | None, int]:
    """Return the default `min.insync.replicas` of broker 1, and its configuration source."""
    resource = DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=["min.insync.replicas"]
    )
    [result] = ask(cluster, 1, DescribeConfigsRequest(resources=[resource]), 1).results
    return result.configs[0].value, result.configs[0].config_source


def test_replicas_stay_eligible_below_the_minimum_and_lead_when_they_come_back(cluster: KafkaCluster) -> None:
    assert produced(cluster, 1) == 0
    cluster.stop(3)
    until(lambda: state(cluster) == (1, [1, 2], [], []))
    cluster.stop(2)
    until(lambda: state(cluster) == (1, [1], [2], []))
    assert produced(cluster, 1) == 19
    cluster.stop(1)
    cluster.start(3)
    until(lambda: state(cluster) == (-1, [], [1, 2], [1]))
    cluster.start(2)
    until(lambda: state(cluster)[:2] == (2, [2, 3]))
    assert state(cluster) == (2, [2, 3], [], [])
    cluster.start(1)
    until(lambda: state(cluster) == (2, [2, 3, 1], [], []))


def test_who_ended_uncleanly_is_not_eligible(cluster: KafkaCluster) -> None:
    for node in (3, 2):
        cluster.kill(node, fence=True)
    until(lambda: state(cluster) == (1, [1], [2], []))
    cluster.stop(1)
    cluster.start(2)
    until(lambda: state(cluster) == (-1, [], [1], [1]))
    cluster.start(1)
    until(lambda: state(cluster)[0] == 1)


def test_the_last_known_leader_leads_where_nobody_is_eligible(cluster: KafkaCluster) -> None:
    for node in (3, 2, 1):
        cluster.kill(node, fence=True)
    for node in (2, 3):
        cluster.start(node)
    until(lambda: state(cluster) == (-1, [], [1], [1]))
    cluster.start(1)  # it comes back without its records, as far as is known; but nobody else has them
    until(lambda: state(cluster)[0] == 1)
    until(lambda: sorted(state(cluster)[1]) == [1, 2, 3])
    assert state(cluster)[2:] == ([], [])


@pytest.mark.parametrize(("kind", "name"), [(2, TOPIC), (4, "")])
def test_nobody_is_eligible_by_a_minimum_that_was(kind: int, name: str) -> None:
    with KafkaCluster(3, min_insync_replicas=3) as cluster:
        assert set_feature(cluster, 1) == 0
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        cluster.kill(3, fence=True)
        until(lambda: state(cluster) == (1, [1, 2], [3], []))
        assert set_minimum(cluster, kind, name, 2) == 0
        until(lambda: state(cluster) == (1, [1, 2], [], []))
        cluster.kill(2, fence=True)
        until(lambda: state(cluster) == (1, [1], [2], []))


def test_all_brokers_have_one_minimum_from_then_on() -> None:
    default, of_broker, of_all, given = 5, 2, 3, 4
    with KafkaCluster(3) as cluster:
        assert minimum_of(cluster) == ("1", default)
        assert set_minimum(cluster, 4, "1", 3) == 0
        assert minimum_of(cluster) == ("3", of_broker)
        assert set_feature(cluster, 1) == 0
        assert minimum_of(cluster) == ("1", of_all)
        assert set_minimum(cluster, 4, "1", 3) == ErrorCode.INVALID_CONFIG
        assert set_minimum(cluster, 4, "", None) == ErrorCode.INVALID_CONFIG
        assert set_minimum(cluster, 4, "", 2) == 0
        assert minimum_of(cluster) == ("2", of_all)
    with KafkaCluster(3, min_insync_replicas=2) as cluster:
        assert minimum_of(cluster) == ("2", given)
        assert set_feature(cluster, 1) == 0
        assert minimum_of(cluster) == ("2", of_all)


def test_without_the_feature_the_last_in_sync_stays_in_sync() -> None:
    with KafkaCluster(3) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]], min_insync_replicas=2)
        for node in (3, 2):
            cluster.stop(node)
        until(lambda: state(cluster) == (1, [1], [], []))
        cluster.stop(1)
        cluster.start(2)
        until(lambda: state(cluster) == (-1, [1], [], []))


def test_the_feature_is_announced_and_can_be_taken_back(cluster: KafkaCluster) -> None:
    for level in (1, 0, 1):
        assert set_feature(cluster, level, node=2) == 0
        for node in cluster.node_ids:
            until(lambda node=node, level=level: feature_at(cluster, node) == level)
            found = ask(
                cluster, node, ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4
            )
            assert ELR_FEATURE in {each.name for each in found.supported_features}
    assert set_feature(cluster, 2) != 0


def test_a_cluster_that_starts_again_knows_who_is_eligible(tmp_path: Path) -> None:
    with KafkaCluster(3, data_dir=tmp_path) as cluster:
        assert set_feature(cluster, 1) == 0
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]], min_insync_replicas=3)
        assert produced(cluster, 1) == 0
        cluster.stop(3)
        until(lambda: state(cluster) == (1, [1, 2], [3], []))
    with KafkaCluster(3, data_dir=tmp_path) as cluster:
        until(lambda: sorted(state(cluster)[1]) == [1, 2, 3])
        assert state(cluster)[2:] == ([], [])
        assert produced(cluster, state(cluster)[0]) == 0
