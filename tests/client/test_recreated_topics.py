"""Tests of topics that are deleted and created anew: positions in the old topic do not apply to the new."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from penstock import Admin, Broker, Consumer, Producer, TopicPartition
from penstock.client import OffsetRange
from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.ranges import scan_ranges
from penstock.errors import KafkaError, TopicRecreatedError
from penstock.protocol.uuid import uuid_from_text

OLD, SHORTER, LONGER = 5, 2, 9

NewTopic = Callable[..., str]


def write(servers: str, topic: str, prefix: str, count: int) -> list[bytes]:
    values = [f"{prefix}{n}".encode() for n in range(count)]
    with Producer(servers) as producer:
        for value in values:
            producer.send(topic, value, partition=0)
    return values


def id_of(servers: str, topic: str) -> str:
    with Admin(servers) as admin:
        (described,) = admin.describe_topics([topic])
    assert described.topic_id is not None
    return described.topic_id


def recreate(servers: str, topic: str, count: int) -> list[bytes]:
    """Delete a topic and create it anew with `count` records; return their values."""
    with Admin(servers) as admin:
        admin.delete_topics([topic])
        admin.create_topic(topic)
    return write(servers, topic, "new", count)


def polled(consumer: Consumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < count:
        records = consumer.poll(10_000)
        assert records, f"{found} and nothing more"
        found += [record.value for record in records]
    return found


@pytest.fixture
def topic(servers: str, new_topic: NewTopic) -> str:
    name = new_topic()
    write(servers, name, "old", OLD)
    return name


@pytest.fixture
def consumer(servers: str, topic: str) -> Iterator[Consumer]:
    """Yield a consumer that has read the whole topic."""
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        assert len(polled(consumer, OLD)) == OLD
        yield consumer


@pytest.mark.parametrize("count", [SHORTER, OLD, LONGER])
def test_a_consumer_begins_anew_and_says_so(
    servers: str, topic: str, consumer: Consumer, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    before = id_of(servers, topic)
    written = recreate(servers, topic, count)
    with caplog.at_level(logging.WARNING, "penstock.client"):
        assert polled(consumer, count) == written
    (said,) = [line for line in caplog.messages if "created anew" in line]
    assert before in said
    assert id_of(servers, topic) in said
    assert "auto.offset.reset=earliest" in said


@pytest.mark.parametrize("count", [SHORTER, LONGER])
def test_a_position_that_was_paused_is_noticed(
    servers: str, topic: str, consumer: Consumer, count: int
) -> None:
    consumer.pause([(topic, 0)])
    written = recreate(servers, topic, count)
    # What another call makes known of the topics must not pass for what the position is of.
    consumer.end_offsets([TopicPartition(topic, 0)])
    consumer.resume([(topic, 0)])
    assert polled(consumer, count) == written


@pytest.mark.parametrize("count", [SHORTER, LONGER])
def test_without_a_reset_it_is_an_error_until_the_application_seeks(
    servers: str, topic: str, count: int
) -> None:
    before = id_of(servers, topic)
    with Consumer(servers, auto_offset_reset="none") as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek((topic, 0), 0)
        polled(consumer, OLD)
        written = recreate(servers, topic, count)
        for _ in range(2):
            with pytest.raises(TopicRecreatedError, match="created anew") as raised:
                polled(consumer, 1)
            assert raised.value.code == 1
            assert before in str(raised.value)
            assert id_of(servers, topic) in str(raised.value)
        consumer.seek((topic, 0), 1)
        assert polled(consumer, count - 1) == written[1:]


def test_a_position_that_was_looked_up_before_the_first_poll_is_noticed(servers: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        consumer.seek_to_end()
        assert consumer.position(tp) == OLD
        written = recreate(servers, topic, LONGER)
        consumer.end_offsets([tp])
        assert polled(consumer, LONGER) == written


def test_what_was_sought_is_of_the_topic_that_is_there(servers: str, topic: str, consumer: Consumer) -> None:
    written = recreate(servers, topic, LONGER)
    consumer.seek((topic, 0), 3)
    assert polled(consumer, LONGER - 3) == written[3:]


def test_a_member_of_a_group_begins_anew_and_commits_what_is_of_the_new_topic(
    servers: str, topic: str
) -> None:
    tp = TopicPartition(topic, 0)
    options = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with Consumer(servers, options) as consumer:
        consumer.subscribe(topic)
        polled(consumer, OLD)
        consumer.commit()
        written = recreate(servers, topic, LONGER)
        assert polled(consumer, LONGER) == written
        consumer.commit()
        found = consumer.committed([tp])[tp]
        assert found is not None
        assert found.offset == LONGER


@pytest.fixture
def client(servers: str) -> Iterator[AsyncClient]:
    async def opened() -> AsyncClient:
        client = AsyncClient(ConsumerConfig.parse({}, {"bootstrap_servers": servers}))
        await client.bootstrap()
        return client

    client = run(opened())
    yield client
    run(client.close())


def values(
    client: AsyncClient, topic: str, topic_id: bytes, end: int, fail_on_data_loss: bool = True
) -> list[bytes]:
    """Read a range as Spark's executors do; return the values.

    `topic_id` is the topic's id when the range was planned.
    """
    found = scan_ranges(
        client,
        [OffsetRange(topic, 0, 1, end)],
        ["value"],
        isolation="read_uncommitted",
        batch_bytes=1 << 20,
        fail_on_data_loss=fail_on_data_loss,
        topic_ids={topic: topic_id},
    )
    return [value.as_py() for _, batch in found for value in batch["value"]]


def test_a_range_of_the_old_topic_is_an_error_or_nothing(
    servers: str, topic: str, client: AsyncClient
) -> None:
    topic_id = run(client.topic(topic)).topic_id
    assert values(client, topic, topic_id, OLD) == [b"old1", b"old2", b"old3", b"old4"]
    recreate(servers, topic, LONGER)
    with pytest.raises(KafkaError, match="created anew"):
        values(client, topic, topic_id, OLD)
    assert values(client, topic, topic_id, OLD, fail_on_data_loss=False) == []


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_client_that_knows_the_old_topic_reads_ranges_of_the_new_one(
    servers: str, topic: str, client: AsyncClient, fail_on_data_loss: bool
) -> None:
    """A Spark worker has read the old topic.

    The driver's plan has another topic id, so the worker refreshes its metadata.
    """
    run(client.topic(topic))
    written = recreate(servers, topic, LONGER)
    topic_id = uuid_from_text(id_of(servers, topic))
    assert values(client, topic, topic_id, LONGER, fail_on_data_loss) == written[1:]


@pytest.mark.parametrize(
    ("release", "count", "seen"),
    [
        ("2.7", SHORTER, SHORTER),
        ("2.7", LONGER, LONGER - OLD),
        ("3.0", SHORTER, SHORTER),
        ("3.1", LONGER, LONGER),
    ],
)
def test_brokers_of_older_releases(release: str, count: int, seen: int) -> None:
    """Before 2.8 there are no topic ids: the consumer reads on from its position, as any client does."""
    with Broker(as_version=release) as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("t")
        write(servers, "t", "old", OLD)
        with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            polled(consumer, OLD)
            written = recreate(servers, "t", count)
            assert polled(consumer, seen) == written[count - seen :]
