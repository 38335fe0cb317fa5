"""Tests of coordinators in a cluster: what their answers wait for, and what survives when they move."""

from __future__ import annotations

import re
import select
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from broker.replication.test_cluster import ask, until
from broker.wire_client import WireClient
from for_each import for_each
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.broker.replication.coordinated import COORDINATED
from penstock.broker.replication.gate import set_errors
from penstock.common.java_hash import partition_of
from penstock.protocol.api import API_TABLE
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.end_txn_request import EndTxnRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.records.batch import encode_batch
from penstock.testing import KafkaCluster

TOPIC = "t"
READ_COMMITTED = 1
STATE = [[1, 2], [1, 3], [2, 1], [2, 3], [3, 1], [3, 2]]
"""The replicas of each partition of `__consumer_offsets` and `__transaction_state`."""
GROUPS = [f"g{number}" for number in range(40)]


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    """Yield a cluster that waits an hour before it gives up a stalled follower or a silent broker.

    Answers therefore wait for every follower.
    """
    with KafkaCluster(
        3,
        replica_lag_time_max_ms=3_600_000,
        broker_session_timeout_ms=3_600_000,
    ) as cluster:
        cluster.create_topic(TOPIC, partitions=3, replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            cluster.create_topic(topic, replicas=STATE, cleanup_policy="compact")
        yield cluster


def commit_of(group: str, offset: int) -> OffsetCommitRequest:
    """Return a request that commits an offset without group membership."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])


def commit(cluster: KafkaCluster, group: str, offset: int) -> int:
    """Commit an offset without group membership; return the error code."""
    answer = ask(cluster, cluster.coordinator(group=group), commit_of(group, offset), 8)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def fetch_of(group: str) -> OffsetFetchRequest:
    """Return an OffsetFetch request for all offsets of a group."""
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])


def fetch_all_of(group: str) -> OffsetFetchRequest:
    """Return an OffsetFetch request, for version 0, for the offset of partition 0."""
    asked = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    return OffsetFetchRequest(group_id=group, topics=[asked])


def committed(cluster: KafkaCluster, group: str) -> tuple[int, int]:
    """Fetch a group's offsets; return the group's error code and the offset of partition 0.

    The offset is -1 if none is committed.
    """
    found = ask(cluster, cluster.coordinator(group=group), fetch_of(group), 8).groups[0]
    offsets = [each.committed_offset for topic in found.topics for each in topic.partitions]
    return found.error_code, offsets[0] if offsets else -1


def begin(cluster: KafkaCluster, name: str) -> tuple[int, int]:
    """Initialize a transactional id; return producer id and epoch."""
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    answer = ask(cluster, cluster.coordinator(transactional_id=name), request, 5)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def write_of(name: str, producer: tuple[int, int], partition: int) -> ProduceRequest:
    """Return a Produce request of one transactional record, which adds its partition to the transaction."""
    batch = encode_batch(
        [(None, b"v", (), 1000)],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        is_transactional=True,
    )
    data = PartitionProduceData(index=partition, records=memoryview(bytearray(batch)))
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    return ProduceRequest(transactional_id=name, acks=-1, timeout_ms=5000, topic_data=[topic])


def write(cluster: KafkaCluster, name: str, producer: tuple[int, int], partition: int) -> int:
    """Write one record in a transaction; return the error code."""
    answer = ask(cluster, cluster.partition(TOPIC, partition).leader, write_of(name, producer, partition), 12)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def end(cluster: KafkaCluster, name: str, producer: tuple[int, int], *, commits: bool = True) -> int:
    """End a transaction; return the error code."""
    request = EndTxnRequest(
        transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=commits
    )
    code: int = ask(cluster, cluster.coordinator(transactional_id=name), request, 5).error_code
    return code


def stable(cluster: KafkaCluster, partition: int) -> tuple[int, int]:
    """Return the last stable offset and the high watermark of a partition from its leader."""
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        isolation_level=READ_COMMITTED,
        replica_id=-1,
        topics=[FetchTopic(topic=TOPIC, partitions=[asked])],
    )
    found = ask(cluster, cluster.partition(TOPIC, partition).leader, request, 12).responses[0].partitions[0]
    return found.last_stable_offset, found.high_watermark


def log_end(cluster: KafkaCluster, partition: int, node: int) -> int:
    """Return the log end offset of a partition at one broker."""
    return next(each.log_end_offset for each in cluster.replicas(TOPIC, partition) if each.node == node)


def state(cluster: KafkaCluster, name: str) -> str:
    """Return the state of a transaction in its coordinator's memory, which may not be stored yet."""

    def look() -> str:
        node = cluster._shared.nodes[cluster_leader]
        return node.transactions.coordinator.registry.transactions[name].state.name

    cluster_leader = cluster.coordinator(transactional_id=name)
    return cluster._call(look)


def id_in(partition: int) -> str:
    """Return a transactional id whose state is in this partition of `__transaction_state`."""
    names = (f"x{number}" for number in range(100))
    return next(name for name in names if partition_of(name, len(STATE)) == partition)


def groups_on(cluster: KafkaCluster, node: int) -> list[str]:
    """Return one group id for each partition that this broker coordinates."""
    found: dict[int, str] = {}
    for group in GROUPS:
        partition = partition_of(group, len(STATE))
        if cluster.partition(OFFSETS_TOPIC, partition).leader == node:
            found.setdefault(partition, group)
    return list(found.values())


# --- what answers wait for ----------------------------------------------------------------------------------


def test_a_partition_that_stalls_holds_up_its_own_groups_alone(cluster: KafkaCluster) -> None:
    held_by = {partition_of(group, len(STATE)): group for group in groups_on(cluster, 1)}
    stalled, fine = held_by[STATE.index([1, 2])], held_by[STATE.index([1, 3])]
    assert [commit(cluster, each, 1) for each in (stalled, fine)] == [0, 0]
    cluster.freeze_follower(2)
    port = int(cluster.address(1).rpartition(":")[2])
    elsewhere = groups_on(cluster, 2)[0]
    with WireClient(port) as client, WireClient(port) as reader:
        client.send(commit_of(stalled, 2), 8)
        reader.send(DeleteGroupsRequest(groups_names=[fine, elsewhere]), 2)
        answer = reader.receive()[1]
        assert [each.error_code for each in answer.results] == [0, ErrorCode.NOT_COORDINATOR]
        assert commit(cluster, fine, 3) == 0
        assert committed(cluster, fine) == (0, 3)
        reader.send(fetch_of(stalled), 8)
        assert not select.select([client.socket, reader.socket], [], [], 0)[0], "they wait for broker 2"
        cluster.thaw_follower(2)
        assert client.receive()[1].topics[0].partitions[0].error_code == 0
        assert reader.receive()[1].groups[0].topics[0].partitions[0].committed_offset == 2


def test_offsets_of_version_0_are_taken_at_every_broker(cluster: KafkaCluster) -> None:
    """Clients of Kafka 0.8.1 commit with version 0 at any broker, since they have no coordinator.

    Kafka stored such offsets in ZooKeeper.
    """
    for group in GROUPS[:6]:
        for node in (1, 2, 3):
            answer = ask(cluster, node, commit_of(group, node), 0)
            assert answer.topics[0].partitions[0].error_code == 0
            for other in (1, 2, 3):
                found = ask(cluster, other, fetch_all_of(group), 0).topics[0].partitions[0]
                assert (found.error_code, found.committed_offset) == (0, node)
            assert committed(cluster, group) == (0, node)


def test_an_offset_of_version_0_waits_for_the_replicas_of_the_coordinator(cluster: KafkaCluster) -> None:
    held_by = {partition_of(group, len(STATE)): group for group in groups_on(cluster, 1)}
    stalled = held_by[STATE.index([1, 2])]
    cluster.freeze_follower(2)
    port = int(cluster.address(3).rpartition(":")[2])
    with WireClient(port) as client, WireClient(port) as reader:
        client.send(commit_of(stalled, 7), 0)
        node = cluster._shared.nodes[1]
        until(lambda: cluster._call(lambda: bool(node.groups.offsets.of_group(stalled))))
        reader.send(fetch_all_of(stalled), 0)
        assert not select.select([client.socket, reader.socket], [], [], 0)[0], "they wait for broker 2"
        cluster.thaw_follower(2)
        assert client.receive()[1].topics[0].partitions[0].error_code == 0
        assert reader.receive()[1].topics[0].partitions[0].committed_offset == 7


def test_nothing_is_written_before_the_replicas_of_the_coordinator_know_of_the_partition(
    cluster: KafkaCluster,
) -> None:
    """Otherwise the next coordinator would end the transaction without a marker in the partition.

    Its `read_committed` readers would then wait for ever.
    """
    name = id_in(STATE.index([1, 2]))
    producer = begin(cluster, name)
    for follower in (2, 3):
        cluster.freeze_follower(follower)
    with WireClient(int(cluster.address(3).rpartition(":")[2])) as client:
        client.send(write_of(name, producer, 2), 12)
        until(lambda: state(cluster, name) == "ONGOING")
        assert log_end(cluster, 2, node=3) == 0
        cluster.kill(1, fence=True)
        for follower in (2, 3):
            cluster.thaw_follower(follower)
        assert client.receive()[1].responses[0].partition_responses[0].error_code == 0
    assert end(cluster, name, producer) == 0
    until(lambda: stable(cluster, 2) == (2, 2))


def test_partitions_that_a_replaced_coordinator_has_added_are_refused(cluster: KafkaCluster) -> None:
    """The next coordinator does not have these partitions in the transaction.

    A client with a successful answer could not end the transaction.
    """
    name = id_in(STATE.index([1, 2]))
    producer_id, epoch = begin(cluster, name)
    cluster.freeze_follower(2)
    topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=[0, 2])
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[topic],
    )
    with WireClient(int(cluster.address(1).rpartition(":")[2])) as client:
        client.send(request, 3)
        until(lambda: state(cluster, name) == "ONGOING")
        cluster.move_leader(TRANSACTIONS_TOPIC, STATE.index([1, 2]), 2)
        found = client.receive()[1].results_by_topic_v3_and_below[0].results_by_partition
    assert [each.partition_error_code for each in found] == [ErrorCode.NOT_COORDINATOR] * 2
    cluster.thaw_follower(2)


@for_each(sorted(COORDINATED))
def test_every_code_of_an_answer_says_that_its_coordinator_was_replaced(api: int) -> None:
    """`set_errors` sets NOT_COORDINATOR in every error code field of a response.

    The fields have different names; the test collects them from the message definitions.
    """
    made = API_TABLE[api].response
    response = _with_an_entry_in_each_list(made, sys.modules[made.__module__])
    set_errors(response, ErrorCode.NOT_COORDINATOR)
    codes = dict(_codes(response, made.__name__))
    assert codes
    assert codes == dict.fromkeys(codes, ErrorCode.NOT_COORDINATOR)


def _with_an_entry_in_each_list(made: type, module: ModuleType) -> Any:
    """Return a struct in which each list of structs, at any depth, has one entry."""
    found = made()
    for name in found.__slots__:
        if isinstance(getattr(found, name), list):
            hint = str(made.__init__.__annotations__[name])
            inner = getattr(module, re.findall(r"\w+", hint)[1], None)
            if inner is not None:
                setattr(found, name, [_with_an_entry_in_each_list(inner, module)])
    return found


def _codes(struct: Any, path: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the value of each error code field of a struct, at any depth."""
    for name in struct.__slots__:
        value = getattr(struct, name)
        if name.endswith("error_code"):
            yield f"{path}.{name}", value
        for entry in value if isinstance(value, list) else ():
            yield from _codes(entry, f"{path}.{name}")


@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_that_its_leader_takes_to_the_grave_is_written_again(
    cluster: KafkaCluster, commits: bool
) -> None:
    name = id_in(STATE.index([1, 2]))
    producer = begin(cluster, name)
    assert write(cluster, name, producer, 1) == 0
    for follower in (1, 3):  # now broker 2 alone has what it leads
        cluster.freeze_follower(follower)
    assert end(cluster, name, producer, commits=commits) == 0
    until(lambda: log_end(cluster, 1, node=2) == 2)
    cluster.kill(2, fence=True)
    for follower in (1, 3):
        cluster.thaw_follower(follower)
    until(lambda: stable(cluster, 1) == (2, 2))
    until(lambda: state(cluster, name).startswith("COMPLETE"))


def test_offsets_in_a_transaction_wait_for_the_coordinator_as_records_do(cluster: KafkaCluster) -> None:
    name = id_in(STATE.index([1, 2]))
    group = groups_on(cluster, 3)[0]
    assert commit(cluster, group, 1) == 0
    producer = begin(cluster, name)
    for follower in (2, 3):
        cluster.freeze_follower(follower)
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    request = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        generation_id_or_member_epoch=-1,
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )
    with WireClient(int(cluster.address(3).rpartition(":")[2])) as client:
        client.send(request, 5)
        until(lambda: state(cluster, name) == "ONGOING")
        cluster.kill(1, fence=True)
        for follower in (2, 3):
            cluster.thaw_follower(follower)
        assert client.receive()[1].topics[0].partitions[0].error_code == 0
    assert committed(cluster, group) == (0, 1)
    assert end(cluster, name, producer) == 0
    until(lambda: committed(cluster, group) == (0, 7))
