"""Tests of topics that change while clients run: clients refresh outdated metadata before they use it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock import Admin, Consumer, Producer, read_topic
from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.offsets import fetch_offsets
from penstock.client.fetch.ranges import scan_ranges
from penstock.errors import ConfigError, KafkaError
from penstock.model import LATEST, OffsetRange, TopicPartition


def test_a_producer_sends_to_a_partition_that_came_later(
    servers: str, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(1)
    with Producer(servers) as producer:
        producer.send(topic, b"0", partition=0).result()
        admin.create_partitions(topic, 3)
        assert producer.send(topic, b"1", partition=2).result().partition == 2
        for missing in (3, -1):
            with pytest.raises(ConfigError, match=f"3 partitions, 0 to 2: there is no partition {missing}"):
                producer.send(topic, b"2", partition=missing)
    assert sorted(read_topic(topic, servers)["partition"].to_pylist()) == [0, 2]


def test_a_consumer_is_assigned_a_partition_that_came_later(
    servers: str, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(1)
    with (
        Consumer(servers, config={"auto.offset.reset": "earliest"}) as consumer,
        Producer(servers) as producer,
    ):
        producer.send(topic, b"0", partition=0).result()
        consumer.assign([(topic, 0)])
        assert [record.value for record in consumer.poll(5_000)] == [b"0"]
        admin.create_partitions(topic, 2)
        producer.send(topic, b"1", partition=1).result()
        consumer.assign([(topic, 1)])
        assert [record.value for record in consumer.poll(5_000)] == [b"1"]
        consumer.assign([(topic, 2)])
        with pytest.raises(ConfigError, match="there is no partition 2"):
            consumer.poll(5_000)


def test_a_kept_client_reads_and_asks_of_a_partition_that_came_later(
    servers: str, admin: Admin, new_topic: Callable[..., str]
) -> None:
    """A Spark worker keeps its client for several tasks, while partitions are added to the topic."""
    topic = new_topic(1)
    client = AsyncClient(ConsumerConfig.parse({}, {"bootstrap_servers": servers}))
    try:
        assert values(client, OffsetRange(topic, 0, 0, 0)) == []
        run(client.topic(topic))
        admin.create_partitions(topic, 2)
        with Producer(servers) as producer:
            producer.send(topic, b"1", partition=1).result()
        assert values(client, OffsetRange(topic, 1, 0, 1)) == [b"1"]
        admin.create_partitions(topic, 3)
        place = TopicPartition(topic, 2)
        found = run(fetch_offsets(client, {place: LATEST}))[place]
        assert found is not None
        assert found.offset == 0
        with pytest.raises(ConfigError, match="3 partitions, 0 to 2: there is no partition 3"):
            values(client, OffsetRange(topic, 3, 0, 1))
    finally:
        run(client.close())


def test_ranges_of_a_deleted_topic_are_skipped_where_losses_are(
    servers: str, admin: Admin, new_topic: Callable[..., str]
) -> None:
    gone, kept = new_topic(1), new_topic(1)
    with Producer(servers) as producer:
        for topic in (gone, kept):
            producer.send(topic, topic.encode()).result()
    client = AsyncClient(ConsumerConfig.parse({}, {"bootstrap_servers": servers}))
    spans = [OffsetRange(gone, 0, 0, 1), OffsetRange(kept, 0, 0, 1)]
    try:
        assert values(client, *spans) == [gone.encode(), kept.encode()]
        admin.delete_topics([gone])
        run(client.refresh())
        with pytest.raises(KafkaError, match=f"'{gone}' does not exist"):
            values(client, *spans)
        assert values(client, *spans, fail_on_data_loss=False) == [kept.encode()]
    finally:
        run(client.close())


def values(client: AsyncClient, *spans: OffsetRange, fail_on_data_loss: bool = True) -> list[bytes]:
    batches = scan_ranges(
        client,
        spans,
        ["value"],
        isolation="read_uncommitted",
        batch_bytes=1 << 20,
        fail_on_data_loss=fail_on_data_loss,
    )
    return sorted(value for _, batch in batches for value in batch.column("value").to_pylist())
