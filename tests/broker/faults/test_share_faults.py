"""Tests of faults for share groups: locks expire, sessions end, answers are lost, coordinators move."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Admin, Producer, ShareConsumer, TopicPartition
from penstock.errors import PenstockError
from penstock.testing import KafkaBroker, KafkaCluster

QUICK = {
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.assignment.interval.ms": 0,
}
EXPLICIT = {"group.id": "g", "share.acknowledgement.mode": "explicit", "retry.backoff.ms": 20}
TP = TopicPartition("t", 0)
PLACES = pytest.mark.parametrize(
    "served", [KafkaBroker, lambda **more: KafkaCluster(3, **more)], ids=["one", "three"]
)


def prepared(served: Any, count: int = 3) -> str:
    """Make a topic with records, which group ``g`` reads from the start; return the bootstrap servers."""
    servers = served.bootstrap_servers
    served.create_topic("t", partitions=1)
    with Admin(servers) as admin, Producer(servers) as producer:
        admin.alter_config(group="g", set={"share.auto.offset.reset": "earliest"})
        for _ in range(count):
            producer.send("t", b"record", partition=0)
    return str(servers)


def member(servers: str) -> ShareConsumer:
    consumer = ShareConsumer(servers, EXPLICIT)
    consumer.subscribe("t")
    return consumer


def polled(consumer: ShareConsumer) -> list[Any]:
    """Poll a share consumer until it returns records, and return them."""
    deadline = time.monotonic() + 120
    while not (records := consumer.poll(200)):
        assert time.monotonic() < deadline, "nothing comes"
    return records


def outcome(consumer: ShareConsumer) -> PenstockError | None:
    return consumer.commit()[TP]


@PLACES
def test_locks_that_end_give_records_to_others(served: Callable[..., Any]) -> None:
    with served(config=QUICK) as at:
        servers = prepared(at)
        with member(servers) as slow, member(servers) as other:
            records = polled(slow)
            assert at.expire_locks("other") == at.expire_locks("g", "u") == at.expire_locks("g", "t", 1) == 0
            assert at.expire_locks("g", "t", 0) == len(records) == 3
            assert [each.delivery_count for each in polled(other)] == [2, 2, 2]
            slow.acknowledge(records)
            error = outcome(slow)
            assert getattr(error, "code", None) == 121


@PLACES
def test_a_session_that_is_ended_is_begun_anew(served: Callable[..., Any]) -> None:
    with served(config=QUICK) as at:
        servers = prepared(at)
        with member(servers) as consumer:
            records = polled(consumer)
            assert at.end_share_sessions("g", "nobody") == 0
            assert at.end_share_sessions("g", consumer.member_id) == 1
            consumer.acknowledge(records)
            error = outcome(consumer)
            assert getattr(error, "code", None) == 122
            again = polled(consumer)
            assert [each.delivery_count for each in again] == [2, 2, 2]
            consumer.acknowledge(again)
            assert outcome(consumer) is None


def test_an_acknowledgement_whose_answer_is_lost_has_taken_effect() -> None:
    with KafkaBroker(config=QUICK) as broker:
        servers = prepared(broker)
        with member(servers) as consumer:
            records = polled(consumer)
            consumer.acknowledge(records[0])
            for each in records[1:]:
                consumer.acknowledge(each, "release")
            with broker.faults.close(
                "ShareAcknowledge", group="g", topic="t", times=1, applied=True
            ) as fault:
                assert outcome(consumer) is not None
            assert fault.count == 1
            again = polled(consumer)
            assert [each.offset for each in again] == [1, 2]
            consumer.acknowledge(again)
            assert outcome(consumer) is None


def test_a_share_coordinator_that_moves_has_the_state() -> None:
    with KafkaCluster(3, config=QUICK) as cluster:
        with pytest.raises(KeyError):
            cluster.coordinator(share=("g", "t", 0))
        servers = prepared(cluster)
        with member(servers) as consumer:
            records = polled(consumer)
            consumer.acknowledge(records[0])
            for each in records[1:]:
                consumer.acknowledge(each, "release")
            assert outcome(consumer) is None
            before = cluster.coordinator(share=("g", "t", 0))
            moved = cluster.move_coordinator(share=("g", "t", 0))
            assert moved == cluster.coordinator(share=("g", "t", 0)) != before
            again = polled(consumer)
            assert [(each.offset, each.delivery_count) for each in again] == [(1, 2), (2, 2)]
            consumer.acknowledge(again)
            assert outcome(consumer) is None
        cluster.move_leader("t", 0)
        with Admin(servers) as admin:
            assert admin.list_share_group_offsets("g")[TP].start_offset == 3
