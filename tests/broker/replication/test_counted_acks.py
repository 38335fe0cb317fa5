"""Tests of `acks` above 1, which Kafka up to 0.8 supports: the leader waits for this number of replicas.

It never waits for more replicas than are in sync.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.wire_client import WireClient
from old_brokers import ask_0_9_briefly
from penstock import Producer
from penstock.errors import PenstockError
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.legacy import encode_message_set
from penstock.testing import KafkaCluster

TOPIC = "t"


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, as_version="0.8.2") as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        yield cluster


def produced(cluster: KafkaCluster, acks: int, timeout_ms: int = 20_000) -> Any:
    records = memoryview(bytearray(encode_message_set([(None, b"v", -1)], 0)))
    topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)])
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])
    with WireClient(int(cluster.address(1).rpartition(":")[2]), timeout_s=30) as client:
        begin = time.monotonic()
        [answer] = client.ask(request, 0).responses[0].partition_responses
        assert time.monotonic() - begin < timeout_ms / 1000 or answer.error_code == 7
    return answer


@pytest.mark.parametrize("acks", [2, 3, 4, 100, -1, -2])
def test_it_is_answered_when_so_many_replicas_have_it(cluster: KafkaCluster, acks: int) -> None:
    for offset in range(3):
        answer = produced(cluster, acks)
        assert (answer.error_code, answer.base_offset) == (0, offset)
    ends = sorted(each.log_end_offset for each in cluster.replicas(TOPIC))
    assert ends[-min(acks if acks > 0 else 3, 3)] == 3


@pytest.mark.parametrize(("acks", "code"), [(2, 0), (3, 7), (-1, 7)])
def test_a_follower_that_stands_still_is_waited_for_only_where_it_counts(
    cluster: KafkaCluster, acks: int, code: int
) -> None:
    assert produced(cluster, -1).error_code == 0
    cluster.freeze_follower(3)
    assert produced(cluster, acks, 400 if code else 20_000).error_code == code


def test_no_more_are_waited_for_than_are_in_sync(cluster: KafkaCluster) -> None:
    cluster.kill(3, fence=True)
    assert produced(cluster, 3).error_code == 0
    cluster.kill(2, fence=True)
    assert produced(cluster, 3).error_code == 0


@pytest.mark.parametrize("acks", [2, 3])
def test_our_producer_sends_them_to_brokers_that_take_them(cluster: KafkaCluster, acks: int) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap_servers, acks=acks) as producer:  # type: ignore[arg-type]
        assert producer.send(TOPIC, b"v").result(20).offset == 0


@pytest.mark.parametrize(
    ("as_version", "said"),
    [
        (None, r"takes acks of all, 1 or 0, not 2.* up to Kafka 0\.8 only"),
        ("0.9", "number of acknowledgements must be -1, 0 or 1"),  # it cannot be told from 0.8 beforehand
    ],
)
def test_our_producer_says_which_brokers_take_them(
    as_version: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_0_9_briefly(as_version, monkeypatch)
    with (
        KafkaCluster(1, as_version=as_version) as cluster,
        Producer(bootstrap_servers=cluster.bootstrap_servers, acks=2) as producer,
    ):
        cluster.create_topic(TOPIC)
        with pytest.raises(PenstockError, match=said):
            producer.send(TOPIC, b"v").result(20)
