"""Tests of a cluster with single requests: which broker answers what, errors, hints, watermarks, epochs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.wire_client import WireClient
from penstock import Producer
from penstock.broker.handlers.postponed_records import Postponed
from penstock.broker.handlers.produce import NOTHING
from penstock.broker.replication.control.quorum import Quorum
from penstock.broker.replication.transport.messages import Proposal
from penstock.broker.requests.purgatory import Wait
from penstock.clock import ManualClock
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.testing import KafkaCluster

TOPIC = "t"
LATEST, EARLIEST = -1, -2


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, racks=("r1", "r2", "r3")) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]], min_insync_replicas=2)
        yield cluster


def ask(cluster: KafkaCluster, node: int, request: Any, version: int) -> Any:
    with WireClient(int(cluster.address(node).rpartition(":")[2])) as client:
        return client.ask(request, version)


def produce(
    cluster: KafkaCluster,
    node: int,
    value: bytes = b"v",
    *,
    acks: int = -1,
    version: int = 9,
    timeout_ms: int = 5000,
    topic: str = TOPIC,
) -> Any:
    """Produce one record to partition 0; return the partition's entry in the response."""
    return (
        produced(cluster, node, value, acks, version, timeout_ms, topic).responses[0].partition_responses[0]
    )


def produced(
    cluster: KafkaCluster,
    node: int,
    value: bytes = b"v",
    acks: int = -1,
    version: int = 9,
    timeout_ms: int = 5000,
    topic: str = TOPIC,
) -> Any:
    batch = encode_batch([(None, value, (), 1000)])
    data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
    request = ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    return ask(cluster, node, request, version)


def fetched(
    cluster: KafkaCluster,
    node: int,
    offset: int,
    *,
    version: int = 12,
    epoch: int = -1,
    last_epoch: int = -1,
    rack: str = "",
    replica: int = -1,
    wait_ms: int = 0,
) -> Any:
    """Fetch from partition 0; return the partition's entry in the response."""
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        rack_id=rack,
        replica_id=replica,
        replica_state=ReplicaState(replica_id=replica) if version >= 15 else None,
        topics=[
            FetchTopic(
                topic=TOPIC,
                topic_id=topic_id(cluster),
                partitions=[
                    FetchPartition(
                        partition=0,
                        fetch_offset=offset,
                        current_leader_epoch=epoch,
                        last_fetched_epoch=last_epoch,
                        partition_max_bytes=1 << 20,
                    )
                ],
            )
        ],
    )
    return ask(cluster, node, request, version).responses[0].partitions[0]


def topic_id(cluster: KafkaCluster, node: int | None = None) -> bytes:
    found = next(each for each in cluster.node_ids if is_up(cluster, each)) if node is None else node
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    identity: bytes = ask(cluster, found, request, 12).topics[0].topic_id
    return identity


def is_up(cluster: KafkaCluster, node: int) -> bool:
    try:
        WireClient(int(cluster.address(node).rpartition(":")[2])).__exit__()
    except OSError:
        return False
    return True


def listed(cluster: KafkaCluster, node: int, time_ms: int = LATEST, *, version: int = 6, **more: int) -> Any:
    """Send ListOffsets for partition 0; return the partition's entry in the response."""
    asked = ListOffsetsPartition(
        partition_index=0,
        timestamp=time_ms,
        max_num_offsets=1 if version else 9,
        current_leader_epoch=more.get("epoch", -1),
    )
    request = ListOffsetsRequest(
        replica_id=more.get("replica", -1), topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])]
    )
    return ask(cluster, node, request, version).topics[0].partitions[0]


def epoch_end(cluster: KafkaCluster, node: int, epoch: int, **more: int) -> tuple[int, int, int]:
    """Send OffsetForLeaderEpoch for partition 0; return error code, leader epoch and end offset."""
    asked = OffsetForLeaderPartition(
        partition=0, leader_epoch=epoch, current_leader_epoch=more.get("current", -1)
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=more.get("replica", -1), topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[asked])]
    )
    found = ask(cluster, node, request, 4).topics[0].partitions[0]
    return found.error_code, found.leader_epoch, found.end_offset


def described(cluster: KafkaCluster, node: int, version: int = 12) -> Any:
    """Return partition 0 of the topic in a Metadata response."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    return ask(cluster, node, request, version).topics[0].partitions[0]


def until(check: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until a check succeeds, which takes some messages between brokers; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it has not come to pass"
        time.sleep(0.01)


def test_every_broker_tells_of_all(cluster: KafkaCluster) -> None:
    for node in (1, 2, 3):
        answer = ask(cluster, node, MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), 12)
        assert sorted((each.node_id, each.rack) for each in answer.brokers) == [
            (1, "r1"),
            (2, "r2"),
            (3, "r3"),
        ]
        assert [f"{each.host}:{each.port}" for each in answer.brokers] == [
            cluster.address(each.node_id) for each in answer.brokers
        ]
        assert answer.controller_id in (1, 2, 3)
        found = answer.topics[0].partitions[0]
        assert (found.leader_id, found.leader_epoch, found.isr_nodes) == (1, 0, [1, 2, 3])
        assert len(ask(cluster, node, DescribeClusterRequest(), 1).brokers) == 3


@pytest.mark.parametrize(("version", "has_hint"), [(9, False), (10, True), (12, True)])
def test_produce_to_a_follower_says_who_leads(cluster: KafkaCluster, version: int, has_hint: bool) -> None:
    answer = produced(cluster, 2, version=version)
    found = answer.responses[0].partition_responses[0]
    assert (found.error_code, found.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    if has_hint:
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 0)
        assert [f"{each.host}:{each.port}" for each in answer.node_endpoints] == [cluster.address(1)]


def test_a_follower_serves_consumers_that_know_of_it(cluster: KafkaCluster) -> None:
    assert produce(cluster, 1).error_code == 0
    assert fetched(cluster, 2, 0, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    until(lambda: fetched(cluster, 2, 0, version=11).high_watermark == 1)
    assert fetched(cluster, 2, 0, version=11).records
    assert fetched(cluster, 2, 0, version=16).error_code == 0


@pytest.mark.parametrize("version", [0, 4, 10])
def test_any_replica_serves_those_who_debug(cluster: KafkaCluster, version: int) -> None:
    """Kafka's replica id -2 lets a debugging tool "issue fetch requests as if it were a replica broker"."""
    assert produce(cluster, 1).error_code == 0
    until(lambda: fetched(cluster, 2, 0, version=version, replica=-2).high_watermark == 1)
    assert fetched(cluster, 2, 0, version=version, replica=-2).records
    assert fetched(cluster, 2, 0, version=version).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_end_of_the_log_is_told_to_those_who_debug(cluster: KafkaCluster) -> None:
    """ListOffsets with replica id -2 returns the log end offset.

    Consumers get the high watermark, also in the segment offsets of version 0.
    """
    produce(cluster, 1)
    cluster.shrink_isr(TOPIC, 0, 2)
    cluster.shrink_isr(TOPIC, 0, 3)
    assert produce(cluster, 1, acks=1).error_code == 0
    for replica, end in ((-1, 1), (-2, 2)):
        assert listed(cluster, 1, replica=replica).offset == end
        assert listed(cluster, 1, replica=replica, version=0).old_style_offsets[0] == end


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (1, 75)])
def test_epochs_are_compared_by_leader_and_follower(cluster: KafkaCluster, epoch: int, code: int) -> None:
    for node in (1, 2):
        assert fetched(cluster, node, 0, epoch=epoch).error_code == code
    assert listed(cluster, 1, epoch=epoch).error_code == code
    assert epoch_end(cluster, 1, 0, current=epoch)[0] == code
    cluster.move_leader(TOPIC)
    if epoch == 0:
        assert fetched(cluster, 1, 0, epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert listed(cluster, 1, epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_broker_without_a_replica_says_so_with_a_hint(cluster: KafkaCluster) -> None:
    cluster.create_topic("u", replicas=[[1, 2]])
    assert produce(cluster, 3, topic="u").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.move_leader(TOPIC, node=2)
    found = fetched(cluster, 1, 0, version=16, epoch=0)
    assert (found.error_code, found.current_leader.leader_id) == (ErrorCode.FENCED_LEADER_EPOCH, 2)


def test_offsets_are_the_leaders_to_tell(cluster: KafkaCluster) -> None:
    produce(cluster, 1)
    for replica, code in ((-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (-2, 0)):
        assert listed(cluster, 2, replica=replica).error_code == code
        assert epoch_end(cluster, 2, 0, replica=replica)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_acks_all_waits_for_the_followers_in_sync(cluster: KafkaCluster) -> None:
    cluster.freeze_follower(2)
    cluster.freeze_follower(3)
    until(lambda: produce(cluster, 1, acks=1).error_code == 0)
    late = produce(cluster, 1, timeout_ms=50)
    assert late.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert late.base_offset >= 0
    assert listed(cluster, 1).offset < late.base_offset + 1
    assert not fetched(cluster, 1, late.base_offset).records
    cluster.thaw_follower(2)
    cluster.thaw_follower(3)
    until(lambda: listed(cluster, 1).offset == late.base_offset + 1)
    assert fetched(cluster, 1, late.base_offset).records
    assert fetched(cluster, 1, late.base_offset + 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_below_the_minimum_acks_all_is_refused_and_nothing_becomes_visible(cluster: KafkaCluster) -> None:
    produce(cluster, 1)
    cluster.shrink_isr(TOPIC, 0, 2)
    cluster.shrink_isr(TOPIC, 0, 3)
    refused = produce(cluster, 1)
    assert (refused.error_code, refused.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert produce(cluster, 1, acks=1).error_code == 0
    assert listed(cluster, 1).offset == 1
    cluster.thaw_follower(2)
    until(lambda: cluster.partition(TOPIC).in_sync == (1, 2))
    until(lambda: listed(cluster, 1).offset == 2)
    assert produce(cluster, 1).error_code == 0


def test_a_follower_that_lags_leaves_and_comes_back() -> None:
    with KafkaCluster(2, replica_lag_time_max_ms=100) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2]])
        cluster.freeze_follower(2)
        assert produce(cluster, 1, timeout_ms=5000).error_code == 0, "acks=all goes on without it"
        assert cluster.partition(TOPIC).in_sync == (1,)
        cluster.thaw_follower(2)
        until(lambda: cluster.partition(TOPIC).in_sync == (1, 2))


def test_a_killed_leader_is_named_until_its_session_is_over(cluster: KafkaCluster) -> None:
    produce(cluster, 1)
    cluster.kill(1)
    assert described(cluster, 2).leader_id == 1
    until(lambda: described(cluster, 2).leader_id == 2)
    found = described(cluster, 3)
    until(lambda: described(cluster, 3).leader_id == 2)
    found = described(cluster, 3)
    assert (found.leader_epoch, found.offline_replicas, found.isr_nodes) == (1, [1], [2, 3])
    assert produce(cluster, 2, b"w").base_offset == 1
    cluster.start(1)
    until(lambda: set(cluster.partition(TOPIC).in_sync) == {1, 2, 3})
    assert cluster.partition(TOPIC)[:2] == (2, 1)
    assert [each.log_end_offset for each in cluster.replicas(TOPIC)] == [2, 2, 2]


@pytest.mark.parametrize("is_killed", [True, False])
def test_nothing_is_left_to_run_of_a_broker_that_has_ended(cluster: KafkaCluster, is_killed: bool) -> None:
    """No timer of a stopped broker may fire any more.

    Its event loop still runs for the other brokers, and its next start uses the same files.
    """
    server = cluster._nodes[1].server
    assert server is not None
    ran: list[str] = []
    if is_killed:
        cluster.kill(1)
    else:
        cluster.stop(1)
    cluster.start(1)

    def let_time_pass() -> None:
        server.node.purgatory.park(Wait((), server.monotonic()), lambda: ran.append("a timer"))
        server.clock_moved()

    cluster._call(let_time_pass)
    assert server._deadline_timer is None or server._deadline_timer.cancelled()
    assert ran == []


def test_a_leader_that_stops_is_followed_by_another_first(cluster: KafkaCluster) -> None:
    produce(cluster, 1)
    cluster.stop(1)
    assert cluster.partition(TOPIC)[:2] == (2, 1)
    assert set(cluster.partition(TOPIC).in_sync) == {2, 3}
    assert [each.node_id for each in ask(cluster, 3, MetadataRequest(), 12).brokers] == [2, 3]
    assert produce(cluster, 2).base_offset == 1


def test_what_only_the_old_leader_had_is_cut(cluster: KafkaCluster) -> None:
    produce(cluster, 1, b"kept")
    cluster.freeze_follower(2)
    cluster.freeze_follower(3)
    time.sleep(0.05)
    assert produce(cluster, 1, b"lost", acks=1).base_offset == 1
    cluster.kill(1, fence=True)
    cluster.thaw_follower(2)
    cluster.thaw_follower(3)
    assert cluster.partition(TOPIC).leader == 2
    assert produce(cluster, 2, b"other").base_offset == 1
    cluster.start(1)
    until(lambda: set(cluster.partition(TOPIC).in_sync) == {1, 2, 3})
    until(lambda: fetched(cluster, 1, 1).high_watermark == 2)
    assert bytes(fetched(cluster, 1, 1).records) == bytes(fetched(cluster, 2, 1).records)
    assert b"other" in bytes(fetched(cluster, 1, 1).records)


def test_an_old_leader_that_is_cut_off_acknowledges_nothing_that_all_should_have(
    cluster: KafkaCluster,
) -> None:
    produce(cluster, 1)
    cluster.cut(1)
    cluster.fence(1)
    assert cluster.partition(TOPIC)[:2] == (2, 1)
    assert produce(cluster, 2, b"new").base_offset == 1
    assert produce(cluster, 1, acks=1).base_offset == 1, "it does not know"
    assert produce(cluster, 1, timeout_ms=50).error_code == ErrorCode.REQUEST_TIMED_OUT
    cluster.heal()
    until(lambda: set(cluster.partition(TOPIC).in_sync) == {1, 2, 3})
    assert produce(cluster, 1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    until(lambda: fetched(cluster, 1, 1).high_watermark == 2)
    assert b"new" in bytes(fetched(cluster, 1, 1).records)


def test_an_unclean_election_loses_what_the_isr_alone_had() -> None:
    with KafkaCluster(2) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2]])
        produce(cluster, 1, b"kept")
        cluster.kill(2, fence=True)
        for value in (b"a", b"b", b"c"):
            assert produce(cluster, 1, value).error_code == 0
        cluster.kill(1, fence=True)
        cluster.start(2)
        assert cluster.partition(TOPIC)[:2] == (-1, 1)
        assert produce(cluster, 2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert described(cluster, 2).error_code == ErrorCode.LEADER_NOT_AVAILABLE
        with pytest.raises(KafkaError) as caught:
            cluster.elect(TOPIC)
        assert caught.value.code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        cluster.elect(TOPIC, unclean=True)
        assert cluster.partition(TOPIC) == (2, 2, (1, 2), (2,))
        assert fetched(cluster, 2, 4).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        diverging = fetched(cluster, 2, 4, last_epoch=0).diverging_epoch
        assert (diverging.epoch, diverging.end_offset) == (0, 1)
        assert [produce(cluster, 2, value).base_offset for value in (b"d", b"e")] == [1, 2]
        ends = [epoch_end(cluster, 2, epoch)[1:] for epoch in (0, 1, 2, 3)]
        assert ends == [(0, 1), (0, 1), (2, 3), (-1, -1)]
        cluster.start(1)
        until(lambda: set(cluster.partition(TOPIC).in_sync) == {1, 2})
        until(lambda: [each.log_end_offset for each in cluster.replicas(TOPIC)] == [3, 3])


def test_a_leader_that_has_nothing_has_its_followers_cut_what_it_does_not_have() -> None:
    """The new leader had no log when its epoch began, and so no earlier epochs to compare with."""
    with KafkaCluster(2) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2]], min_insync_replicas=2)
        cluster.freeze_follower(2)
        assert produce(cluster, 1, b"lost", acks=1).base_offset == 0
        cluster.kill(1, fence=True)
        assert cluster.partition(TOPIC)[:2] == (2, 1)
        cluster.start(1)
        until(lambda: set(cluster.partition(TOPIC).in_sync) == {1, 2})
        assert produce(cluster, 2, b"kept").base_offset == 0
        assert [each.log_end_offset for each in cluster.replicas(TOPIC)] == [1, 1]


def test_latest_is_not_known_before_a_new_leader_has_committed() -> None:
    with KafkaCluster(2) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2]], min_insync_replicas=2)
        produce(cluster, 1)
        cluster.kill(2, fence=True)
        produce(cluster, 1, acks=1)
        cluster.restart(1)
        assert cluster.partition(TOPIC).leader == 1
        assert listed(cluster, 1).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert listed(cluster, 1, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert listed(cluster, 1, EARLIEST).error_code == 0
        cluster.start(2)
        until(lambda: listed(cluster, 1).offset == 2)


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    with KafkaCluster(
        3, racks=("r1", "r2", "r3"), replica_selector_class="RackAwareReplicaSelector"
    ) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        produce(cluster, 1)
        until(lambda: fetched(cluster, 1, 0, rack="r3").preferred_read_replica == 3)
        sent = fetched(cluster, 1, 0, rack="r3", wait_ms=5000)
        assert not sent.records
        assert sent.high_watermark == 1
        for rack in ("r1", "unknown", ""):
            stays = fetched(cluster, 1, 0, rack=rack)
            assert stays.preferred_read_replica == -1
            assert stays.records
        assert fetched(cluster, 3, 0, rack="r3").preferred_read_replica == -1


def test_a_stranger_is_no_follower(cluster: KafkaCluster) -> None:
    cluster.create_topic("u", replicas=[[1, 2]])
    assert fetched(cluster, 1, 0, replica=9, epoch=0).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert fetched(cluster, 1, 0, replica=9).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_test_can_play_the_follower() -> None:
    with KafkaCluster(2) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2]])
        cluster.freeze_follower(2)
        time.sleep(0.05)
        assert produce(cluster, 1, acks=1).base_offset == 0
        copy = fetched(cluster, 1, 0, replica=2, epoch=0)
        assert copy.records, "a follower reads what is not committed"
        assert not fetched(cluster, 1, 0).records
        fetched(cluster, 1, 1, replica=2, epoch=0)
        assert fetched(cluster, 1, 0).records


def test_without_acks_a_follower_hangs_up(cluster: KafkaCluster) -> None:
    with WireClient(int(cluster.address(2).rpartition(":")[2])) as client:
        batch = encode_batch([(None, b"v", (), 1000)])
        data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
        topic = TopicProduceData(name=TOPIC, partition_data=[data])
        client.send(ProduceRequest(acks=0, timeout_ms=100, topic_data=[topic]), 9)
        assert client.is_closed_by_peer()


def test_the_preferred_leader_is_elected_on_demand(cluster: KafkaCluster) -> None:
    cluster.move_leader(TOPIC, node=3)
    wanted = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=TOPIC, partitions=[0])])
    codes = [
        ask(cluster, 2, wanted, 2).replica_election_results[0].partition_result[0].error_code
        for _ in range(2)
    ]
    assert codes == [0, ErrorCode.ELECTION_NOT_NEEDED]
    assert cluster.partition(TOPIC)[:2] == (1, 2)


def test_leaders_go_back_to_the_preferred_replicas_by_themselves() -> None:
    with KafkaCluster(3, clock=ManualClock(10**12)) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        assert cluster.move_leader(TOPIC, node=3) == 3
        cluster.advance(299)
        assert cluster.partition(TOPIC)[:2] == (3, 1)
        cluster.advance(2)
        assert cluster.partition(TOPIC)[:2] == (1, 2)
        assert produce(cluster, 1).error_code == 0


def test_replicas_move_and_take_their_records_along(cluster: KafkaCluster) -> None:
    cluster.create_topic("m", replicas=[[1, 3]])
    produce(cluster, 1, b"moved", topic="m")

    def reassign(target: list[int] | None) -> int:
        moved = ReassignableTopic(
            name="m", partitions=[ReassignablePartition(partition_index=0, replicas=target)]
        )
        answer = ask(cluster, 3, AlterPartitionReassignmentsRequest(topics=[moved]), 0)
        code: int = answer.responses[0].partitions[0].error_code
        return code

    def moving() -> list[Any]:
        topics = ask(cluster, 1, ListPartitionReassignmentsRequest(topics=None), 0).topics
        return [
            (each.replicas, each.adding_replicas, each.removing_replicas) for each in topics[0].partitions
        ]

    cluster.kill(2, fence=True)
    assert reassign([3, 2]) == 0
    assert moving() == [([3, 2, 1], [2], [1])]
    assert reassign(None) == 0
    assert cluster.partition("m").replicas == (3, 1)
    assert reassign(None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert reassign([3, 2]) == 0
    cluster.start(2)
    until(lambda: cluster.partition("m").replicas == (3, 2))
    assert cluster.partition("m").leader == 3
    until(lambda: sorted(each[0::3] for each in cluster.replicas("m")) == [(2, 1), (3, 1)])
    assert reassign([9]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_more_replicas_than_brokers_are_refused(cluster: KafkaCluster) -> None:
    def create(name: str, **more: Any) -> int:
        topic = CreatableTopic(name=name, num_partitions=1, **more)
        code: int = (
            ask(cluster, 2, CreateTopicsRequest(topics=[topic], timeout_ms=100), 5).topics[0].error_code
        )
        return code

    assert create("a", replication_factor=4) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert create("b", replication_factor=0) == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.kill(2, fence=True)
    cluster.create_topic("c", replicas=3)
    assert set(cluster.partition("c").in_sync) == {1, 3}


def test_the_coordinator_of_a_group_moves_with_its_partition(cluster: KafkaCluster) -> None:
    def find(node: int) -> tuple[int, int]:
        answer = ask(cluster, node, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        return answer.coordinators[0].error_code, answer.coordinators[0].node_id

    first = find(1)[1]
    until(lambda: all(find(node) == (0, first) for node in (1, 2, 3)))
    assert cluster.coordinator(group="g") == first
    second = cluster.move_coordinator(group="g")
    assert second != first
    assert find(first) == (0, second)


def test_a_broker_that_is_paused_answers_nobody_until_it_goes_on(cluster: KafkaCluster) -> None:
    with WireClient(int(cluster.address(2).rpartition(":")[2]), timeout_s=5) as client:
        with cluster.paused(2):
            client.send(MetadataRequest(topics=[]), 12)
            until(lambda: [b.node_id for b in ask(cluster, 1, MetadataRequest(), 12).brokers] == [1, 3])
        client.receive()
    until(lambda: len(ask(cluster, 1, MetadataRequest(), 12).brokers) == 3)


def test_time_stands_still_if_it_is_told_to() -> None:
    with KafkaCluster(3, clock=ManualClock(10**12)) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        assert produce(cluster, 1).error_code == 0
        cluster.kill(1)
        time.sleep(0.05)
        assert cluster.partition(TOPIC).leader == 1
        cluster.advance(0.9)
        assert cluster.partition(TOPIC).leader == 1
        cluster.advance(0.2)
        assert cluster.partition(TOPIC)[:2] == (2, 1)
        assert [each.node_id for each in ask(cluster, 2, MetadataRequest(), 12).brokers] == [2, 3]


def test_a_cluster_on_disk_is_there_again(tmp_path: Path) -> None:
    for turn in range(3):
        with KafkaCluster(3, tmp_path) as cluster:
            if not turn:
                cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
                cluster.create_topic("alone", replicas=[[2], [3]])
            assert [cluster.partition("alone", each).leader for each in range(2)] == [2, 3]
            leader = cluster.partition(TOPIC).leader
            assert produce(cluster, leader, b"%d" % turn).base_offset == turn
            until(lambda: set(cluster.partition(TOPIC).in_sync) == {1, 2, 3})
            cluster.restart(leader, kill=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "broker-1",
        "broker-2",
        "broker-3",
        "controller",
    ]
    assert (tmp_path / "broker-2" / f"{TOPIC}-0").is_dir()


def test_many_topics_are_in_sync_again_after_few_proposals() -> None:
    topics = 200
    cluster = KafkaCluster(3)
    with cluster:
        for number in range(topics):
            cluster.create_topic(f"many-{number}", replicas=[[1 + number % 3, 1 + (number + 1) % 3]])
    proposals: list[Proposal] = []
    plain = Quorum.receive

    def receive(self: Quorum, source: int, asked: Any, answer: Callable[[Any], None]) -> None:
        if isinstance(asked, Proposal):
            proposals.append(asked)
        plain(self, source, asked, answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Quorum, "receive", receive)
        with cluster:
            for number in range(topics):
                until(lambda number=number: len(cluster.partition(f"many-{number}").in_sync) == 2)
    assert sum(len(each.changes) for each in proposals) >= topics // 2
    assert len(proposals) <= topics // 4


def test_a_process_that_stands_still_fences_no_broker() -> None:
    with KafkaCluster(3, broker_session_timeout_ms=400, broker_heartbeat_interval_ms=100) as cluster:
        fenced: list[int] = []
        plain = cluster._shared.quorum.controller.fence
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                cluster._shared.quorum.controller, "fence", lambda n: (fenced.append(n), plain(n))[1]
            )
            for _ in range(2):
                cluster._call(lambda: time.sleep(0.6))
        assert not fenced


def test_a_slow_link_is_slow(cluster: KafkaCluster) -> None:
    produce(cluster, 1)
    cluster.slow(1, 2, 150)
    started = time.monotonic()
    assert produce(cluster, 1).error_code == 0
    assert time.monotonic() - started >= 0.15
    cluster.heal()


def test_what_is_deleted_is_gone_everywhere(cluster: KafkaCluster) -> None:
    from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState

    produce(cluster, 1)
    ask(cluster, 3, DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=100), 6)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    for node in (1, 2, 3):
        until(lambda at=node: ask(cluster, at, request, 12).topics[0].error_code == 3)  # type: ignore[misc]


def test_records_that_a_thread_looked_into_are_refused_by_a_leader_of_before(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leadership moves while a thread decompresses the records.

    The previous leader must not append them to its log, since it follows now.
    """
    cluster.create_topic("packed", replicas=[[1, 2, 3]], cleanup_policy="compact")
    plain = Postponed.prepare

    def prepare(self: Postponed, *args: Any) -> None:
        plain(self, *args)
        cluster.move_leader("packed", node=2)

    monkeypatch.setattr(Postponed, "prepare", prepare)
    monkeypatch.setattr("penstock.broker.handlers.produce.inline_budget", lambda _: NOTHING)
    batch = encode_batch([(b"k", b"v" * 1000, (), 1000)], codec=CompressionCodec.GZIP)
    data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
    topic = TopicProduceData(name="packed", partition_data=[data])
    answer = ask(cluster, 1, ProduceRequest(acks=1, timeout_ms=5000, topic_data=[topic]), 9)
    found = answer.responses[0].partition_responses[0]
    assert (found.error_code, found.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert {each.log_end_offset for each in cluster.replicas("packed")} == {0}


def test_brokers_are_numbered_from_the_id_that_is_set() -> None:
    with KafkaCluster(2, config={"node.id": "0"}) as cluster:
        assert cluster.node_ids == [0, 1]
        with Producer(cluster.bootstrap_servers) as producer:
            assert producer.send("t", b"one").result(30).offset == 0
    assert KafkaCluster(2, config={"broker.id": "7"}).node_ids == [7, 8]
