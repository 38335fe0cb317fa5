"""Tests of DeleteRecords in a cluster: deleted records do not come back when the leader moves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.wire_client import WireClient
from penstock import Admin, Consumer, Producer
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.testing import KafkaCluster

TOPIC = "t"
RECORDS = 10


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        with Producer(bootstrap_servers=cluster.bootstrap_servers, acks="all") as producer:
            for number in range(RECORDS):
                producer.send(TOPIC, b"%d" % number).result(30)
        yield cluster


def delete_before(cluster: KafkaCluster, offset: int, timeout_ms: int = 30_000) -> tuple[int, int]:
    """Send DeleteRecords to the leader, node 1; return the error code and the low watermark."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name=TOPIC, partitions=[partition])
    request: Any = DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms)
    with WireClient(int(cluster.address(1).rpartition(":")[2]), timeout_s=60) as client:
        [answer] = client.ask(request, 2).topics[0].partitions
    return answer.error_code, answer.low_watermark


def starts(cluster: KafkaCluster) -> dict[int, int]:
    return {each.node: each.log_start_offset for each in cluster.replicas(TOPIC)}


@pytest.mark.parametrize("offset", [5, RECORDS, -1])
def test_it_is_answered_when_every_replica_begins_there(cluster: KafkaCluster, offset: int) -> None:
    first = RECORDS if offset == -1 else offset
    assert delete_before(cluster, offset) == (ErrorCode.NONE, first)
    assert starts(cluster) == {1: first, 2: first, 3: first}


def test_deleted_records_do_not_come_back_with_another_leader(cluster: KafkaCluster) -> None:
    assert delete_before(cluster, 5) == (ErrorCode.NONE, 5)
    cluster.move_leader(TOPIC, node=2)
    with Consumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:
        consumer.assign([(TOPIC, 0)])
        consumer.seek_to_beginning()
        assert consumer.position((TOPIC, 0)) == 5


def test_a_replica_that_stands_still_uses_up_the_time(cluster: KafkaCluster) -> None:
    cluster.freeze_follower(3)
    assert delete_before(cluster, 5, timeout_ms=300) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert starts(cluster)[1] == 5
    cluster.thaw_follower(3)
    assert delete_before(cluster, 5) == (ErrorCode.NONE, 5)
    assert starts(cluster) == {1: 5, 2: 5, 3: 5}


def test_a_replica_that_is_fenced_is_not_waited_for(cluster: KafkaCluster) -> None:
    cluster.kill(3, fence=True)
    assert delete_before(cluster, 5) == (ErrorCode.NONE, 5)


def test_a_replica_that_lacks_only_deleted_records_begins_after_them(cluster: KafkaCluster) -> None:
    """A replica without the deleted records starts its log at the offset after them.

    Otherwise, as the leader, it would assign their offsets to new records.
    """
    cluster.kill(3, fence=True)
    end = RECORDS + 5
    with Producer(bootstrap_servers=cluster.bootstrap_servers, acks="all") as producer:
        for number in range(5):
            producer.send(TOPIC, b"%d" % number).result(30)
    assert delete_before(cluster, -1) == (ErrorCode.NONE, end)
    cluster.start(3)
    while 3 not in cluster.partition(TOPIC).in_sync:
        time.sleep(0.01)
    assert delete_before(cluster, -1) == (ErrorCode.NONE, end)
    assert starts(cluster) == {1: end, 2: end, 3: end}
    cluster.move_leader(TOPIC, node=3)
    with Producer(bootstrap_servers=cluster.bootstrap_servers, acks="all") as producer:
        assert producer.send(TOPIC, b"new").result(30).offset == end


def test_a_replica_that_begins_amid_a_batch_has_the_rest_of_it(cluster: KafkaCluster) -> None:
    """The log start offset is in the middle of a batch.

    The leader sends the whole batch, whose base offset is below the fetch offset.
    """
    cluster.kill(3, fence=True)
    end = RECORDS + 5
    with Producer(bootstrap_servers=cluster.bootstrap_servers, acks="all", linger_ms=60_000) as producer:
        for number in range(RECORDS, end):
            producer.send(TOPIC, b"%d" % number)
        producer.flush()
    assert delete_before(cluster, RECORDS + 2) == (ErrorCode.NONE, RECORDS + 2)
    cluster.start(3)
    while 3 not in cluster.partition(TOPIC).in_sync:
        time.sleep(0.01)
    assert starts(cluster) == {1: RECORDS + 2, 2: RECORDS + 2, 3: RECORDS + 2}
    cluster.move_leader(TOPIC, node=3)
    with Consumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        consumer.seek_to_beginning()
        found: list[bytes | None] = []
        while len(found) < 3:
            found += [record.value for record in consumer.poll(1_000)]
    assert found == [b"%d" % number for number in range(RECORDS + 2, end)]


def test_a_leader_that_is_left_alone_deletes(cluster: KafkaCluster) -> None:
    cluster.kill(2, fence=True)
    cluster.kill(3, fence=True)
    assert delete_before(cluster, 5) == (ErrorCode.NONE, 5)


def test_the_admin_deletes_on_a_cluster(cluster: KafkaCluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.delete_records({(TOPIC, 0): 7})
    assert set(starts(cluster).values()) == {7}
