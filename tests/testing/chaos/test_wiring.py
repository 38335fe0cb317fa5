"""Tests of what a chaos history records: rows, transactions, committed offsets, and the brokers' logs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from penstock import AsyncConsumer, AsyncProducer, Consumer, Producer, TopicPartition
from penstock.errors import ConfigError, KafkaError
from penstock.testing import KafkaBroker, KafkaCluster
from penstock.testing.chaos import History
from penstock.testing.chaos.events import (
    CommitRefused,
    Committed,
    Event,
    Moved,
    Polled,
    Sent,
    TransactionEnded,
)
from penstock.testing.chaos.reading import end_offsets, on_loop
from penstock.testing.report import nodes_of


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def history(broker: KafkaBroker) -> Iterator[History]:
    history = History()
    history.attach(broker)
    with history.watching():
        yield history


def of(history: History, kind: type[Event]) -> list[Event]:
    return [event for event in history.events if isinstance(event, kind)]


def test_sends_with_their_outcomes(broker: KafkaBroker, history: History) -> None:
    topic = broker.create_topic()
    with Producer(broker.bootstrap_servers, retries=0, enable_idempotence=False) as producer:
        producer.send(topic, b"one", key=b"k", headers=[("trace", b"1")]).result(10)
        with broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=1):
            assert producer.send(topic, bytearray(b"two")).exception(10) is not None
        with broker.faults.close("Produce", times=1, applied=True):
            assert producer.send(topic, b"three").exception(10) is not None
    first, second, third = of(history, Sent)
    assert isinstance(first, Sent)
    assert (first.key, first.value, first.headers) == (b"k", b"one", (("trace", b"1"),))
    assert first.delivery() == ("acknowledged", 0, "")
    assert second.delivery()[:2] == ("failed", -1)  # type: ignore[union-attr]
    assert second.value == b"two"  # type: ignore[union-attr]
    assert third.delivery()[0] == "unknown"  # type: ignore[union-attr]
    # The answer to the third was lost, and its record is there.
    assert [finding.name for finding in history.findings()] == ["UnheededFailure"]
    assert [record.value for record in history.logs[TopicPartition(topic, 0)].records] == [b"one", b"three"]


def test_polls_moves_and_commits(broker: KafkaBroker, history: History) -> None:
    topic = broker.create_topic()
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(4):
            producer.send(topic, b"%d" % number)
    settings = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with Consumer(broker.bootstrap_servers, **settings) as consumer:
        consumer.subscribe(topic)
        while len(consumer.poll(1000, 2)) < 2:
            pass
        consumer.commit()
        consumer.seek((topic, 0), 0)
        assert next(iter(consumer)).offset == 0
    polled = [record.offset for event in of(history, Polled) for record in event.records]  # type: ignore[union-attr]
    assert polled == [0, 1, 0]
    assert of(history, Moved)
    (commit,) = of(history, Committed)
    assert isinstance(commit, Committed)
    assert (commit.group, commit.offsets) == ("g", {TopicPartition(topic, 0): 2})
    assert commit.ends == {TopicPartition(topic, 0): 4}
    assert history.findings() == []


@pytest.mark.parametrize("in_background", [False, True])
def test_commits_that_the_group_refuses(broker: KafkaBroker, history: History, in_background: bool) -> None:
    topic = broker.create_topic()
    with Consumer(broker.bootstrap_servers, group_id="g", enable_auto_commit=False) as consumer:
        consumer.subscribe(topic)
        while not consumer.assignment():
            consumer.poll(10)
        offsets = {TopicPartition(topic, 0): 0}
        with broker.faults.fail("OffsetCommit", "UNKNOWN_MEMBER_ID", times=1):
            if in_background:
                done = threading.Event()
                consumer.commit_async(offsets, lambda offsets, error: done.set())
                assert done.wait(10)
            else:
                with pytest.raises(KafkaError):
                    consumer.commit(offsets)
    assert [event.code for event in of(history, CommitRefused)] == [25]  # type: ignore[union-attr]
    assert of(history, Committed) == []


def test_a_commit_whose_answer_is_lost_has_its_effect(broker: KafkaBroker, history: History) -> None:
    topic = broker.create_topic()
    with Consumer(broker.bootstrap_servers, group_id="g", enable_auto_commit=False) as consumer:
        consumer.assign([(topic, 0)])
        with broker.faults.close("OffsetCommit", times=1, applied=True):
            consumer.commit({TopicPartition(topic, 0): 3})
    assert [event.offsets for event in of(history, Committed)] == [{TopicPartition(topic, 0): 3}] * 2  # type: ignore[union-attr]


def test_transactions(broker: KafkaBroker, history: History) -> None:
    source, sink = TopicPartition(broker.create_topic(), 0), TopicPartition(broker.create_topic(), 0)
    with Producer(broker.bootstrap_servers, transactional_id="t") as producer:
        with producer.transaction():
            producer.send(sink.topic, b"committed")
            producer.send_offsets({source: 1}, "g")
        producer.begin_transaction()
        producer.send(sink.topic, b"aborted").result(10)
        producer.send_offsets({source: 2}, "g")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(sink.topic, b"open").result(10)
        history.read()
        states = [(record.value, record.state) for record in history.logs[sink].records]
        assert states == [(b"committed", "committed"), (b"aborted", "aborted"), (b"open", "open")]
        assert [finding.name for finding in history.findings()] == ["UnendedTransaction"]
        producer.send_offsets({source: 3}, "g")
        producer.commit_transaction()
    assert [(event.offsets[source], event.in_transaction) for event in of(history, Committed)] == [  # type: ignore[union-attr]
        (1, True),
        (3, True),
    ]
    assert [event.transaction for event in of(history, TransactionEnded)] == [1, 3]  # type: ignore[union-attr]
    assert [event.transaction for event in of(history, Sent)] == [1, 2, 3]  # type: ignore[union-attr]
    record = history.logs[sink].records[0]
    assert record.settled_at == 1


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_reads_before_the_commit(broker: KafkaBroker, history: History, level: str) -> None:
    topic = broker.create_topic()
    with (
        Producer(broker.bootstrap_servers, transactional_id="t") as producer,
        Consumer(broker.bootstrap_servers, isolation_level=level) as consumer,  # type: ignore[arg-type]
    ):
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        producer.begin_transaction()
        producer.send(topic, b"early").result(10)
        early = consumer.poll(100)
        producer.commit_transaction()
        while not early:
            early = consumer.poll(1000)
    found = [finding.name for finding in history.findings()]
    assert found == (["PrecommittedRead"] if level == "read_uncommitted" else [])


def test_clients_for_asyncio(broker: KafkaBroker, history: History) -> None:
    topic = broker.create_topic()

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap_servers) as producer:
            await producer.send_and_wait(topic, b"one")
        async with AsyncConsumer(broker.bootstrap_servers) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek_to_beginning()
            assert [record.value for record in await consumer.poll(5000)] == [b"one"]
            consumer.seek_to_beginning()
            async for record in consumer:
                assert record.value == b"one"
                break

    asyncio.run(work())
    assert len(of(history, Sent)) == 1
    assert len(of(history, Polled)) == 2


def test_nothing_is_recorded_after_the_block(broker: KafkaBroker) -> None:
    kept = AsyncProducer.try_send, AsyncConsumer.poll_now, AsyncConsumer.hold
    history = History()
    topic = broker.create_topic()
    with history.watching():
        assert AsyncProducer.try_send is not kept[0]
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b"one").result(10)
    assert history.events == []
    assert (AsyncProducer.try_send, AsyncConsumer.poll_now, AsyncConsumer.hold) == kept


def test_large_logs_and_restarts(broker: KafkaBroker, history: History) -> None:
    topic = broker.create_topic()
    with Producer(broker.bootstrap_servers, compression_type="gzip") as producer:
        for number in range(3000):
            producer.send(topic, bytes(1000), key=b"%d" % number)
    broker.restart(kill=True)
    with Consumer(broker.bootstrap_servers, group_id="g", enable_auto_commit=False) as consumer:
        consumer.assign([(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): 3})
    assert history.findings() == []
    assert len(history.logs[TopicPartition(topic, 0)].records) == 3000
    assert len(of(history, Committed)) == 1


def test_a_cluster() -> None:
    history = History()
    with KafkaCluster(brokers=3) as cluster:
        history.attach(cluster)
        topic = TopicPartition(cluster.create_topic(replicas=[[1, 2, 3]]), 0)
        with history.watching(), Producer(cluster.bootstrap_servers, transactional_id="t") as producer:
            with producer.transaction():
                producer.send(topic.topic, b"one")
                producer.send_offsets({topic: 1}, "g")
            cluster.move_leader(topic.topic, 0)
            with producer.transaction():
                producer.send(topic.topic, b"two")
        assert history.findings() == []
        assert [record.value for record in history.logs[topic].records] == [b"one", b"two"]
    (commit,) = of(history, Committed)
    assert isinstance(commit, Committed)
    assert commit.in_transaction
    assert commit.ends == {topic: 1} or commit.ends == {topic: 2}
    # Stopped, there is nothing to read: what was read stays.
    assert history.findings() == []


def test_where_a_log_ends_is_known_between_two_leaders() -> None:
    with KafkaCluster(brokers=3) as cluster:
        topic = TopicPartition(cluster.create_topic(replicas=[[1, 2, 3]]), 0)
        with Producer(cluster.bootstrap_servers) as producer:
            producer.send(topic.topic, b"one").result()
        cluster.stop_clock()  # the session of the broker that is killed lasts: nobody else leads
        cluster.kill(1)
        assert on_loop(cluster, lambda: end_offsets(nodes_of(cluster))) == {topic: 1}


def test_what_cannot_be_attached() -> None:
    with pytest.raises(ConfigError, match="str cannot be attached"):
        History().attach("localhost:9092")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [KafkaBroker, KafkaCluster])
def test_what_is_detached_is_recorded_no_more(kind: type[KafkaBroker] | type[KafkaCluster]) -> None:
    history, other = History(), History()
    with kind() as served:
        topic = served.create_topic()
        history.attach(served)
        other.attach(served)
        with Consumer(served.bootstrap_servers, group_id="g") as consumer:
            consumer.assign([(topic, 0)])
            consumer.commit({TopicPartition(topic, 0): 1})
            history.read()
            history.detach()
            consumer.commit({TopicPartition(topic, 0): 2})
        assert len(of(history, Committed)) == 1
        assert len(of(other, Committed)) >= 2
        assert history.logs
