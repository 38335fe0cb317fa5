"""Tests of reading from the replica that the leader selects (KIP-392), and of returning to the leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from client.fake_broker import HANG_UP, FakeBroker, fake_broker
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import BrokerNode, ClusterMetadata, PartitionInfo, TopicInfo
from penstock.client.config import ConsumerConfig
from penstock.client.fetch import cursors
from penstock.client.fetch.consumer import AsyncConsumer
from penstock.client.fetch.cursors import LEADER_S, Cursor, ReadReplicas
from penstock.client.fetch.ranges import fetch_ranges_async
from penstock.model import OffsetRange, TopicPartition
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.records.batch import encode_batch

T0 = TopicPartition("t", 0)
LEADER, NEAR = 0, 1
RECORDS = 10


def replicas(rack: str = "near", max_age_s: float = 300.0) -> tuple[ReadReplicas, Cursor, ClusterMetadata]:
    cluster = ClusterMetadata()
    cluster.nodes = {each: BrokerNode(each, "127.0.0.1", 9092 + each) for each in (LEADER, NEAR)}
    cluster.topics["t"] = TopicInfo("t", {0: PartitionInfo(0, LEADER, 1, (0, 1), (0, 1))})
    return ReadReplicas(cluster, rack, max_age_s), Cursor(T0, 0, None, 1 << 20), cluster


def test_the_replica_that_is_named_is_asked_until_the_metadata_are_old() -> None:
    chosen, cursor, _ = replicas()
    assert chosen.node_of(cursor, 100.0) == LEADER
    assert chosen.rack_for([cursor], 100.0) == "near"
    assert chosen.sent_on(cursor, LEADER, NEAR, 100.0)
    assert chosen.node_of(cursor, 399.9) == NEAR
    assert chosen.node_of(cursor, 400.0) == LEADER
    assert chosen.node_of(cursor, 100.0) == LEADER


def test_a_replica_that_has_failed_is_left_alone_for_longer_than_its_session() -> None:
    chosen, cursor, _ = replicas()
    assert not chosen.failed(cursor, LEADER, 100.0)
    assert chosen.sent_on(cursor, LEADER, NEAR, 100.0)
    assert not chosen.failed(cursor, LEADER, 100.0)
    assert chosen.failed(cursor, NEAR, 101.0)
    assert chosen.node_of(cursor, 101.0) == LEADER
    other = Cursor(TopicPartition("t", 1), 0, None, 1)
    assert chosen.rack_for([other, cursor], 101.0) == ""
    assert chosen.rack_for([other], 101.0) == "near"
    assert chosen.rack_for([other, cursor], 101.0 + LEADER_S) == "near"


def test_a_replica_that_the_metadata_have_offline_is_not_asked() -> None:
    chosen, cursor, cluster = replicas()
    assert chosen.sent_on(cursor, LEADER, NEAR, 100.0)
    cluster.topics["t"] = TopicInfo("t", {0: PartitionInfo(0, LEADER, 1, (0, 1), (0,), (1,))})
    assert chosen.node_of(cursor, 100.0) == LEADER
    assert not chosen.sent_on(cursor, LEADER, NEAR, 100.0)
    assert chosen.rack_for([cursor], 100.0) == ""


def test_a_partition_without_a_leader_is_read_on_at_the_replica() -> None:
    chosen, cursor, cluster = replicas()
    assert chosen.sent_on(cursor, LEADER, NEAR, 100.0)
    cluster.topics["t"] = TopicInfo("t", {0: PartitionInfo(0, -1, 2, (0, 1), (0, 1), (0,))})
    assert chosen.node_of(cursor, 100.0) == NEAR
    chosen.failed(cursor, NEAR, 100.0)
    assert chosen.node_of(cursor, 100.0) is None


@pytest.mark.parametrize("named", [LEADER, 7])
def test_a_leader_that_names_itself_or_a_stranger_is_asked_without_a_rack(named: int) -> None:
    chosen, cursor, _ = replicas()
    assert not chosen.sent_on(cursor, LEADER, named, 100.0)
    assert chosen.node_of(cursor, 100.0) == LEADER
    assert chosen.rack_for([cursor], 100.0) == ""


def test_without_a_rack_the_leader_is_always_asked() -> None:
    chosen, cursor, _ = replicas(rack="")
    assert not chosen.sent_on(cursor, LEADER, NEAR, 100.0)
    assert chosen.node_of(cursor, 100.0) == LEADER


@asynccontextmanager
async def pair(preferred: int = NEAR) -> AsyncIterator[tuple[FakeBroker, FakeBroker]]:
    """Run two fake brokers: a leader, and a replica with the same log.

    The leader redirects readers with a rack to the replica `preferred`.
    """
    async with fake_broker({"t": 1}) as leader, fake_broker({"t": 1}) as near:
        near.node_id, near.logs = NEAR, leader.logs
        for broker in (leader, near):
            broker.brokers = [(LEADER, "127.0.0.1", leader.port), (NEAR, "127.0.0.1", near.port)]
            broker.leaders = {("t", 0): LEADER}
        leader.logs["t", 0].append(encode_batch([(None, b"%d" % n, (), n) for n in range(RECORDS)]))

        async def send_on(broker: FakeBroker, header: Any, request: Any) -> Any:
            if not request.rack_id:
                return await broker.answer(header, request)
            answer = broker._fetched(request, 0)
            for topic in answer.responses:
                for each in topic.partitions:
                    each.preferred_read_replica, each.records = preferred, b""
            return answer

        leader.always(ApiKey.FETCH, send_on)
        yield leader, near


async def read(consumer: AsyncConsumer, count: int = RECORDS) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += [record.offset for record in await consumer.poll(500)]
    return found


def consumer_of(broker: FakeBroker, **options: Any) -> AsyncConsumer:
    options = {"client_rack": "near", "auto_offset_reset": "earliest", "retry_backoff_ms": 5, **options}
    consumer = AsyncConsumer(broker.bootstrap_servers, reconnect_backoff_ms=5, **options)
    consumer.assign([T0])
    return consumer


def test_records_come_from_the_nearest_replica() -> None:
    async def play() -> None:
        async with pair() as (leader, near), consumer_of(leader) as consumer:
            assert await read(consumer) == list(range(RECORDS))
            assert len(leader.asked(ApiKey.FETCH)) == 1
            assert near.asked(ApiKey.FETCH)[0].rack_id == "near"

    asyncio.run(play())


def test_without_client_rack_records_come_from_the_leader() -> None:
    async def play() -> None:
        async with pair() as (leader, near), consumer_of(leader, client_rack=None) as consumer:
            assert await read(consumer) == list(range(RECORDS))
            assert not near.asked(ApiKey.FETCH)
            assert leader.asked(ApiKey.FETCH)[0].rack_id == ""

    asyncio.run(play())


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    ],
)
def test_a_replica_that_refuses_is_left_for_the_leader(code: int) -> None:
    async def play() -> None:
        async with pair() as (leader, near), consumer_of(leader) as consumer:
            near.always(ApiKey.FETCH, lambda broker, header, request: broker._fetched(request, code))
            assert await read(consumer) == list(range(RECORDS))
            assert len(near.asked(ApiKey.FETCH)) == 1
            assert [each.rack_id for each in leader.asked(ApiKey.FETCH)[:2]] == ["near", ""]

    asyncio.run(play())


def test_a_replica_that_hangs_up_or_is_gone_is_left_for_the_leader() -> None:
    async def play() -> None:
        async with pair() as (leader, near), consumer_of(leader) as consumer:
            near.always(ApiKey.FETCH, lambda *_: HANG_UP)
            assert await read(consumer) == list(range(RECORDS))
        async with pair() as (leader, near), consumer_of(leader) as consumer:
            await near.stop()
            assert await read(consumer) == list(range(RECORDS))

    asyncio.run(play())


def test_an_offset_outside_the_leaders_log_is_reset_as_ever() -> None:
    async def play() -> None:
        async with pair() as (leader, _), consumer_of(leader) as consumer:
            consumer.seek(T0, 99)
            assert await read(consumer) == list(range(RECORDS))

    asyncio.run(play())


def test_a_range_that_the_replica_does_not_have_yet_is_read_at_the_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cursors, "BEHIND_S", 0.0)

    def behind(broker: FakeBroker, header: Any, request: Any) -> Any:
        answer = broker._fetched(request, 0)
        for topic in answer.responses:
            for each in topic.partitions:
                each.records, each.high_watermark, each.last_stable_offset = b"", 0, 0
        return answer

    async def play() -> None:
        async with pair() as (leader, near):
            near.always(ApiKey.FETCH, behind)
            config = ConsumerConfig.parse(
                {"client.rack": "near", "retry.backoff.ms": 5},
                {"bootstrap_servers": leader.bootstrap_servers},
            )
            async with AsyncClient(config) as client:
                found = [
                    value
                    async for _, batch in fetch_ranges_async(client, [OffsetRange("t", 0, 0, RECORDS)])
                    for value in batch["offset"].to_pylist()
                ]
            assert found == list(range(RECORDS))
            assert near.asked(ApiKey.FETCH)
            assert leader.asked(ApiKey.FETCH)[-1].rack_id == ""

    asyncio.run(play())
