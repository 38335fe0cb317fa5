"""Tests of the fetch requests of followers, as the settings `replica.fetch.*` control them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from broker.replication.test_cluster import TOPIC, fetched, produce, topic_id, until
from penstock.broker.config.values import BrokerConfig
from penstock.broker.replication.fetcher import PATIENCE_S, ReplicaFetcher, ReplicaFetchSettings
from penstock.broker.replication.local_replica import LocalReplica
from penstock.broker.replication.member import IN_MEMORY_VERSION
from penstock.broker.replication.replica_fetch import serve
from penstock.broker.requests.purgatory import Wait
from penstock.errors import ConfigError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.testing import KafkaCluster

NAMES = {
    "replica.fetch.wait.max.ms": 250,
    "replica.fetch.min.bytes": 2,
    "replica.fetch.max.bytes": 3,
    "replica.fetch.response.max.bytes": 4,
    "replica.fetch.backoff.ms": 5000,
}


class Followed:
    """A stand-in for a replica and its partition, with the attributes that a fetcher reads."""

    topic, topic_id, leader_epoch = TOPIC, bytes(16), 7
    log_start_offset, leader = 3, 1

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self.fetch_position = (11, 6)

    @property
    def partition(self) -> Followed:
        return self

    def begin_at(self, offset: int) -> None:
        self.fetch_position = (offset, -1)

    def well(self) -> None:
        pass


def test_each_setting_says_what_is_asked() -> None:
    config = BrokerConfig({name: str(value) for name, value in NAMES.items()})
    fetcher = ReplicaFetcher(2, 1, ReplicaFetchSettings.of(config))
    fetcher.add(cast(LocalReplica, Followed()))
    asked = fetcher.request(9, now_s=10.0)
    assert asked is not None
    (partition,) = asked.topics[0].partitions
    assert (asked.max_wait_ms, asked.min_bytes, asked.max_bytes) == (250, 2, 4)
    assert partition.partition_max_bytes == 3
    assert fetcher.next_turn() == 10.0 + 0.25 + PATIENCE_S
    assert fetcher.is_busy(11.7)
    assert not fetcher.is_busy(11.8)
    fetcher.failed(now_s=12.0)
    assert fetcher.next_turn() == 12.0 + 5.0


@pytest.mark.parametrize(("leader_starts_at", "waits"), [(20, False), (3, True)])
def test_a_follower_that_begins_anew_asks_again_at_once(leader_starts_at: int, waits: bool) -> None:
    """After OFFSET_OUT_OF_RANGE the follower continues at the leader's log start offset.

    If this changes its position, it fetches at once; otherwise it waits, since the leader would give the same
    answer.
    """
    fetcher = ReplicaFetcher(2, 1, ReplicaFetchSettings(backoff_s=5.0))
    fetcher.add(cast(LocalReplica, Followed()))
    assert fetcher.request(9, now_s=10.0) is not None
    answer = PartitionData(
        error_code=ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=leader_starts_at, high_watermark=-1
    )
    topic = FetchableTopicResponse(topic_id=bytes(16), partitions=[answer])
    fetcher.answered(FetchResponse(responses=[topic]), 10.1, 10_100, lambda _: None)
    asked = fetcher.request(9, now_s=10.1)
    assert (asked is None) == waits
    if asked is not None:
        assert asked.topics[0].partitions[0].fetch_offset == leader_starts_at


def test_without_settings_they_are_kafkas_but_for_the_pause_after_an_error() -> None:
    assert (
        ReplicaFetchSettings.of(BrokerConfig({}))
        == ReplicaFetchSettings()
        == (500, 1, 1 << 20, 10 << 20, 0.1)
    )


@pytest.mark.parametrize("name", ["replica.fetch.wait.max.ms", "replica.fetch.min.bytes"])
def test_a_fetch_that_could_never_wait_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BrokerConfig({name: "0"})


def test_a_follower_with_a_small_limit_copies_batch_by_batch() -> None:
    asked: list[int] = []
    with KafkaCluster(2, replica_fetch_max_bytes=1) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2]])
        cluster.freeze_follower(2)
        for _ in range(3):
            assert produce(cluster, 1, acks=1).error_code == 0
        transport = cluster._shared.transport
        send = transport.send

        def watched(source: int, target: int, message: Any, answered: Any) -> None:
            if isinstance(message, FetchRequest) and source == 2:
                asked.extend(each.partitions[0].fetch_offset for each in message.topics)
            send(source, target, message, answered)

        cluster._call(lambda: setattr(transport, "send", watched))
        cluster.thaw_follower(2)
        until(lambda: bool(asked) and asked[-1] == 3)
        until(lambda: bool(fetched(cluster, 1, 2).records))
    assert sorted(set(asked)) == [0, 1, 2, 3], "each answer had one batch"


def test_a_leader_keeps_a_fetch_until_it_has_what_the_follower_waits_for() -> None:
    with KafkaCluster(2) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2]])
        cluster.freeze_follower(2)
        request = FetchRequest(
            max_wait_ms=5000,
            min_bytes=1000,
            max_bytes=1 << 20,
            replica_id=2,
            replica_state=ReplicaState(replica_id=2, replica_epoch=-1),
            topics=[
                FetchTopic(
                    topic_id=topic_id(cluster),
                    partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
                )
            ],
        )
        member = cluster._nodes[1].member
        waits = cluster._call(lambda: serve(request, IN_MEMORY_VERSION, member))
        assert isinstance(waits, Wait)
        assert waits.amount == 1000
        assert produce(cluster, 1, acks=1).error_code == 0
        nearer = cluster._call(lambda: serve(request, IN_MEMORY_VERSION, member))
        assert isinstance(nearer, Wait)
        assert 0 < nearer.amount < 1000
        answer = cluster._call(waits.answer)
        assert answer.responses[0].partitions[0].records, "when time is up, it has what there is"
