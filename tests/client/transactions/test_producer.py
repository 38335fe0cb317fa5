"""Tests of a transactional producer with a broker in the test's process, with both protocol versions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pytest

from client.transactions.levels import LEVELS, committed_values, set_level
from penstock import Admin, Broker, Consumer, Producer, TopicPartition, read_topic, write_topic
from penstock.client import AsyncProducer, GroupMetadata, TransactionCoordinates
from penstock.errors import (
    ConfigError,
    EncodeError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionStateError,
)

# ruff: noqa: PT012
SETTINGS = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 20}
_names = itertools.count()


class Place(NamedTuple):
    """A broker with one transaction protocol version, and a topic and an id for one test."""

    servers: str
    admin: Admin
    topic: str
    name: str

    def producer(self, **options: object) -> Producer:
        return Producer(self.servers, config=SETTINGS, transactional_id=self.name, **options)

    def committed(self) -> list[bytes]:
        return committed_values(self.servers, self.admin, self.topic, self.name)

    def written(self) -> list[bytes]:
        return sorted(read_topic(self.topic, self.servers, columns=["value"]).column("value").to_pylist())


@pytest.fixture(scope="module", params=LEVELS)
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[str, Admin]]:
    with Broker() as broker:
        set_level(broker.bootstrap_servers, request.param)
        with Admin(broker.bootstrap_servers) as admin:
            yield broker.bootstrap_servers, admin


@pytest.fixture
def place(cluster: tuple[str, Admin]) -> Place:
    servers, admin = cluster
    number = next(_names)
    admin.create_topic(f"t{number}", partitions=3)
    return Place(servers, admin, f"t{number}", f"id{number}")


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(place: Place) -> None:
    with place.producer() as producer:
        with producer.transaction():
            for number in range(30):
                producer.send(place.topic, b"%d" % number)
            assert place.committed() == []
        assert len(place.committed()) == 30
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(place.topic, b"never")
            producer.flush()
            1 / 0  # noqa: B018
        assert b"never" in place.written()
        with producer.transaction():
            producer.send(place.topic, b"later")
    assert place.committed() == sorted([b"%d" % number for number in range(30)] + [b"later"])


def test_arrow_tables_and_records_share_a_transaction(place: Place) -> None:
    table = pa.table({"value": [b"%05d" % number for number in range(5000)]})
    with place.producer(batch_size=4000) as producer:
        with producer.transaction():
            delivery = producer.send_arrow(place.topic, table)
            producer.send(place.topic, b"one more")
        summary = delivery.result(0)
        assert summary.rows == sum(end - start for start, end in summary.offsets.values()) == 5000
        with pytest.raises(KeyError), producer.transaction():
            producer.send_arrow(place.topic, table).result(10)
            raise KeyError
    assert len(place.committed()) == 5001
    assert len(place.written()) == 10001


def test_a_prepared_transaction_is_ended_by_its_coordinates_alone(place: Place) -> None:
    for commit in (True, False):
        with place.producer() as producer:
            producer.begin_transaction()
            producer.send(place.topic, b"prepared %d" % commit)
            coordinates = producer.prepare_transaction()
            assert coordinates == producer.transaction_coordinates
            with pytest.raises(TransactionStateError):
                producer.send(place.topic, b"too late")
        (described,) = place.admin.describe_transactions([place.name])
        assert described.state == "Ongoing"
        assert described.producer_id == coordinates.producer_id
        assert described.producer_epoch == coordinates.producer_epoch
        assert len(described.partitions) == 1
        place.admin.end_transaction(coordinates, commit=commit)
        place.admin.end_transaction(TransactionCoordinates(*coordinates), commit=commit)
        assert place.admin.describe_transactions([place.name])[0].state.startswith("Complete")
    assert place.committed() == [b"prepared 1"]


def test_coordinates_of_a_transaction_that_is_over_are_told_apart(place: Place) -> None:
    with place.producer() as producer:
        producer.begin_transaction()
        producer.send(place.topic, b"1")
        coordinates = producer.prepare_transaction()
    with place.producer() as successor, successor.transaction():
        successor.send(place.topic, b"2")
    for commit in (True, False):
        with pytest.raises(ProducerFencedError):
            place.admin.end_transaction(coordinates, commit=commit)
    assert place.committed() == [b"2"]


def test_a_prepared_transaction_can_be_ended_by_its_producer(place: Place) -> None:
    with place.producer() as producer:
        producer.begin_transaction()
        producer.send(place.topic, b"1")
        producer.prepare_transaction()
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send(place.topic, b"2")
        producer.prepare_transaction()
        producer.abort_transaction()
    assert place.committed() == [b"1"]


def test_a_newer_producer_of_the_id_fences_the_older_one(place: Place) -> None:
    with place.producer() as old, place.producer() as new:
        old.begin_transaction()
        old.send(place.topic, b"old").result(10)
        new.init_transactions()
        with pytest.raises((ProducerFencedError, TransactionAbortableError)):
            old.send(place.topic, b"older").result(10)
            old.commit_transaction()
        with new.transaction():
            new.send(place.topic, b"new")
        with pytest.raises(ProducerFencedError):
            old.abort_transaction()
        with pytest.raises(ProducerFencedError):
            old.begin_transaction()
    assert place.committed() == [b"new"]


def test_offsets_are_committed_with_the_transaction_or_not_at_all(place: Place) -> None:
    tp = TopicPartition(place.topic, 0)
    with place.producer() as producer:
        with pytest.raises(KeyError), producer.transaction():
            producer.send_offsets({tp: 5}, place.name)
            raise KeyError
        assert place.admin.list_group_offsets(place.name) == {}
        with producer.transaction():
            producer.send(place.topic, b"out")
            producer.send_offsets({tp: 7}, place.name)
        found = place.admin.list_group_offsets(place.name)
        assert {tp: at.offset for tp, at in found.items()} == {tp: 7}


def test_a_member_that_its_group_has_gone_on_without_is_refused(place: Place) -> None:
    with place.producer() as producer:
        stale = GroupMetadata(place.name, 5, "gone", None)
        with pytest.raises(TransactionAbortableError) as caught, producer.transaction():
            producer.send(place.topic, b"stale")
            producer.send_offsets({TopicPartition(place.topic, 0): 5}, stale)
        assert isinstance(caught.value.__cause__, KafkaError)
        assert caught.value.__cause__.code in (22, 25)
        with producer.transaction():
            producer.send(place.topic, b"next")
    assert place.committed() == [b"next"]


def test_consume_transform_produce_is_exactly_once(place: Place) -> None:
    out = f"{place.topic}-out"
    place.admin.create_topic(out)
    with place.producer() as source, source.transaction():
        for number in range(20):
            source.send(place.topic, b"%d" % number, partition=number % 3)
    options = {"group_id": place.name, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with (
        Producer(place.servers, config=SETTINGS, transactional_id=f"{place.name}-out") as producer,
        Consumer(place.servers, isolation_level="read_committed", **options) as consumer,
    ):
        consumer.subscribe(place.topic)
        seen = 0
        while seen < 20:
            records = consumer.poll(timeout_ms=200, max_records=7)
            if not records:
                continue
            with producer.transaction():
                for record in records:
                    producer.send(out, record.value)
                producer.send_offsets(consumer.positions(), consumer)
            seen += len(records)
    table = read_topic(out, place.servers, columns=["value"], isolation="read_committed")
    assert sorted(table.column("value").to_pylist()) == sorted(b"%d" % number for number in range(20))
    committed = place.admin.list_group_offsets(place.name)
    assert sum(at.offset for at in committed.values()) >= 20


def test_after_an_abort_a_consumer_goes_back_to_what_is_committed(place: Place) -> None:
    with Producer(place.servers) as source:
        for number in range(10):
            source.send(place.topic, b"%d" % number, partition=0)
    options = {"group_id": place.name, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    tp = TopicPartition(place.topic, 0)
    with place.producer() as producer, Consumer(place.servers, **options) as consumer:
        consumer.subscribe(place.topic)
        read: list[list[int]] = []
        for commits in (False, True, False):
            records = []
            while not records:
                records = consumer.poll(timeout_ms=200, max_records=4)
            read.append([record.offset for record in records])
            producer.begin_transaction()
            producer.send_offsets(consumer.positions(), consumer)
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
                consumer.seek_to_committed()
        assert read == [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]]
        assert consumer.position(tp) == 4
        committed = consumer.committed([tp])[tp]
        assert committed is not None
        assert committed.offset == 4


def test_calls_in_the_wrong_order_change_nothing(place: Place) -> None:
    with place.producer() as producer:
        for call in (producer.commit_transaction, producer.abort_transaction, producer.prepare_transaction):
            with pytest.raises(TransactionStateError):
                call()
        with pytest.raises(TransactionStateError, match="begin_transaction"):
            producer.send(place.topic, b"outside")
        with producer.transaction():
            with pytest.raises(TransactionStateError):
                producer.begin_transaction()
            producer.send(place.topic, b"inside")
    assert place.committed() == [b"inside"]


def test_an_empty_transaction_costs_nothing_and_is_fine(place: Place) -> None:
    with place.producer() as producer:
        with producer.transaction():
            pass
        producer.begin_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(place.topic, b"1")
    assert place.committed() == [b"1"]
    assert [one.state for one in place.admin.describe_transactions([place.name])] == ["CompleteCommit"]


def test_a_producer_that_is_closed_aborts_what_is_open(place: Place) -> None:
    with place.producer() as producer:
        producer.begin_transaction()
        producer.send(place.topic, b"1").result(10)
    assert place.admin.describe_transactions([place.name])[0].state == "CompleteAbort"
    assert place.committed() == []


def test_a_topic_is_written_at_once_or_not_at_all(place: Place) -> None:
    settings = {**SETTINGS, "transactional.id": place.name}
    tables = [pa.table({"value": [b"1", b"2"]}), pa.table({"value": [b"3"]})]
    assert write_topic(tables, place.topic, place.servers, config=settings).rows == 3
    assert place.committed() == [b"1", b"2", b"3"]
    with pytest.raises(EncodeError):
        write_topic([*tables, pa.table({"other": [1]})], place.topic, place.servers, config=settings)
    assert place.committed() == [b"1", b"2", b"3"]


def test_without_an_id_there_are_no_transactions(place: Place) -> None:
    with Producer(place.servers) as producer:
        with pytest.raises(ConfigError, match=r"transactional\.id"):
            producer.transaction()
        with pytest.raises(ConfigError, match=r"transactional\.id"):
            producer.begin_transaction()
    with pytest.raises(ConfigError, match="idempotence"):
        Producer(place.servers, transactional_id="x", acks=1)


def test_an_interruption_aborts(place: Place) -> None:
    with place.producer() as producer:
        with pytest.raises(KeyboardInterrupt), producer.transaction():
            producer.send(place.topic, b"interrupted").result(10)
            raise KeyboardInterrupt
        with producer.transaction():
            producer.send(place.topic, b"next")
    assert place.committed() == [b"next"]


def test_a_cancelled_task_aborts(place: Place) -> None:
    async def work(producer: AsyncProducer, begun: asyncio.Event) -> None:
        async with producer.transaction():
            await producer.send_and_wait(place.topic, b"cancelled")
            begun.set()
            await asyncio.Event().wait()

    async def play() -> None:
        async with AsyncProducer(place.servers, config=SETTINGS, transactional_id=place.name) as producer:
            begun = asyncio.Event()
            task = asyncio.create_task(work(producer, begun))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with producer.transaction():
                await producer.send(place.topic, b"next")

    asyncio.run(play())
    assert place.committed() == [b"next"]


def test_the_asyncio_producer_has_the_same_transactions(place: Place) -> None:
    async def play() -> None:
        async with AsyncProducer(place.servers, config=SETTINGS, transactional_id=place.name) as producer:
            async with producer.transaction():
                await producer.send(place.topic, b"1")
            with pytest.raises(KeyError):
                async with producer.transaction():
                    await producer.send(place.topic, b"2")
                    raise KeyError
            await producer.begin_transaction()
            await producer.send(place.topic, b"3")
            await producer.commit_transaction()

    asyncio.run(play())
    assert place.committed() == [b"1", b"3"]
