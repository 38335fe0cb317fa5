"""Transactions of Penstock's producer at Apache Kafka, before and with KIP-890, while nodes are killed."""

from __future__ import annotations

# ruff: noqa: PT012
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from broker.transactions.history import Fate, History, Read, anomalies
from client.transactions.levels import set_level
from compat.kafka_cluster import KafkaCluster
from compat.peers import LEAKY_CLIENTS, need_module, shared_kafka, until
from penstock import Admin, Consumer, Producer, TopicPartition, read_topic
from penstock.client import GroupMetadata
from penstock.errors import (
    KafkaError,
    NetworkError,
    PenstockError,
    ProducerFencedError,
    RequestTimeoutError,
    TransactionAbortableError,
    TransactionFatalError,
    TransactionRetriableError,
)

confluent_kafka = need_module("confluent_kafka")

pytestmark = [
    pytest.mark.compat,
    pytest.mark.timeout(600),
    *LEAKY_CLIENTS,
]

_names = itertools.count()
FLOWS = [("4.3.0", 2), ("4.3.0", 0), ("3.9.1", None)]


@pytest.fixture(scope="module", params=FLOWS, ids=["4.3-new", "4.3-old", "3.9"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    version, level = request.param
    servers = shared_kafka(version)
    if level is not None:
        set_level(servers, level)
    yield servers
    if level == 0:
        set_level(servers, 2)


def read_confluent(servers: str, topic: str, partitions: int) -> list[bytes]:
    """Return the values that librdkafka's consumer reads with `read_committed`, its default."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 2}
    )
    ends = {}
    for partition in range(partitions):
        tp = confluent_kafka.TopicPartition(topic, partition, 0)
        ends[partition] = consumer.get_watermark_offsets(tp, timeout=30)[1]
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(partitions)])
    values: list[bytes] = []
    while any(
        0 <= consumer.position([confluent_kafka.TopicPartition(topic, number)])[0].offset < end
        or (end and consumer.position([confluent_kafka.TopicPartition(topic, number)])[0].offset < 0)
        for number, end in ends.items()
    ):
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            values.append(message.value())
    consumer.close()
    return sorted(values)


def committed(servers: str, topic: str) -> list[bytes]:
    table = read_topic(topic, servers, columns=["value"], isolation="read_committed")
    return sorted(table.column("value").to_pylist())


def test_all_that_a_transactional_producer_does(servers: str) -> None:
    name = f"producer-{next(_names)}"
    with Admin(servers) as admin, Producer(servers, transactional_id=name) as producer:
        admin.create_topic(name, partitions=2)
        expected: list[bytes] = []
        with producer.transaction():
            producer.send_arrow(name, pa.table({"value": [b"table %04d" % n for n in range(3000)]}))
            producer.send(name, b"record")
            producer.send_offsets({TopicPartition(name, 0): 7}, name)
        expected += [*(b"table %04d" % n for n in range(3000)), b"record"]
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(name, b"aborted")
            producer.send_offsets({TopicPartition(name, 0): 9}, name)
            producer.flush()
            raise ZeroDivisionError
        until(
            lambda: admin.list_group_offsets(name) and not admin.list_transactions(states=["Ongoing"]),
            "the offsets are there",
        )
        assert [at.offset for at in admin.list_group_offsets(name).values()] == [7]
        with pytest.raises(TransactionAbortableError), producer.transaction():
            producer.send(name, b"of a stale member")
            stale = GroupMetadata(name, 3, "stale")
            producer.send_offsets({TopicPartition(name, 0): 11}, stale)
        for number in range(20):
            with producer.transaction():
                producer.send(name, b"%d" % number)
            expected.append(b"%d" % number)
        producer.begin_transaction()
        producer.send(name, b"prepared")
        coordinates = producer.prepare_transaction()
        (described,) = admin.describe_transactions([name])
        assert (described.state, described.producer_epoch) == ("Ongoing", coordinates.producer_epoch)
        (open_one,) = [
            each
            for producers in admin.describe_producers([(name, 0), (name, 1)]).values()
            for each in producers
            if each.transaction_start_offset is not None
        ]
        assert open_one.producer_id == coordinates.producer_id
        admin.end_transaction(coordinates, commit=True)
        admin.end_transaction(coordinates, commit=True)
        expected.append(b"prepared")
    until(lambda: admin_state(servers, name) == "CompleteCommit", "the transaction is complete")
    assert committed(servers, name) == sorted(expected)
    assert read_confluent(servers, name, 2) == sorted(expected)


def admin_state(servers: str, name: str) -> str:
    with Admin(servers) as admin:
        return admin.describe_transactions([name])[0].state


def test_fences_and_hanging_transactions(servers: str) -> None:
    name = f"fenced-{next(_names)}"
    with Admin(servers) as admin:
        admin.create_topic(name)
        with Producer(servers, transactional_id=name) as old, Producer(servers, transactional_id=name) as new:
            old.begin_transaction()
            old.send(name, b"old").result(30)
            new.init_transactions()
            with pytest.raises((TransactionAbortableError, ProducerFencedError)):
                old.commit_transaction()
            with new.transaction():
                new.send(name, b"new")
            with pytest.raises(TransactionFatalError):
                old.abort_transaction()
                old.begin_transaction()
            new.begin_transaction()
            new.send(name, b"left open").result(30)
            assert admin.find_hanging_transactions([(name, 0)], older_than_ms=0) == []
            start = admin.describe_producers([(name, 0)])[TopicPartition(name, 0)][0].transaction_start_offset
            assert start is not None
            admin.abort_hanging_transaction((name, 0), start)
            admin.fence_producer(name)
            with pytest.raises((TransactionAbortableError, ProducerFencedError)):
                new.commit_transaction()
    assert committed(servers, name) == [b"new"]


def test_consume_transform_produce(servers: str) -> None:
    name = f"etl-{next(_names)}"
    with Admin(servers) as admin:
        admin.create_topic(name, partitions=2)
        admin.create_topic(f"{name}-out")
    with Producer(servers) as source:
        for number in range(40):
            source.send(name, b"%d" % number, partition=number % 2)
    options = {"group_id": name, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with (
        Producer(servers, transactional_id=name) as producer,
        Consumer(servers, isolation_level="read_committed", **options) as consumer,
    ):
        consumer.subscribe(name)
        seen = 0
        while seen < 40:
            records = consumer.poll(timeout_ms=500, max_records=15)
            if records:
                with producer.transaction():
                    for record in records:
                        producer.send(f"{name}-out", record.value)
                    producer.send_offsets(consumer.positions(), consumer)
                seen += len(records)
    assert read_confluent(servers, f"{name}-out", 1) == sorted(b"%d" % number for number in range(40))


class Life:
    """Transactions that one producer runs until it fails and a new producer continues.

    A history records their outcomes.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.servers, self.topic, self.partitions = servers, topic, partitions
        self.history = History()
        self.is_over = False
        self.errors: list[BaseException] = []
        self.committed = 0

    def run(self) -> None:
        try:
            while not self.is_over:
                self.produce()
        except BaseException as error:
            self.errors.append(error)

    def produce(self) -> None:
        settings = {"delivery.timeout.ms": 20_000, "max.block.ms": 10_000, "request.timeout.ms": 5_000}
        try:
            with Producer(self.servers, config=settings, transactional_id=self.topic) as producer:
                while not self.is_over:
                    self.transact(producer)
        except (TransactionFatalError, RequestTimeoutError, NetworkError):
            return

    def transact(self, producer: Producer) -> None:
        try:
            producer.begin_transaction()
        except TransactionRetriableError:
            return
        number = len(self.history.units)
        unit = self.history.begin(str(number))
        try:
            for index in range(2 * self.partitions):
                value = f"{number}/{index}"
                unit.write(str(index % self.partitions), value)
                producer.send(self.topic, value.encode(), partition=index % self.partitions)
            tp = TopicPartition(self.topic, 0)
            producer.send_offsets({tp: number}, self.topic)
            if number % 4 == 3:
                producer.abort_transaction()
                return
            unit.fate = Fate.UNKNOWN
            while True:
                try:
                    producer.commit_transaction()
                except TransactionRetriableError:
                    if self.is_over:
                        raise
                else:
                    break
            unit.fate = Fate.COMMITTED
            self.committed += 1
        except TransactionAbortableError:
            unit.fate = Fate.ABORTED
            producer.abort_transaction()


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("level", [2, 0])
def test_three_nodes_of_which_any_is_killed(tmp_path: Path, level: int) -> None:
    """Leaders and coordinators are killed and restarted.

    At the end the group's offset is that of the last committed transaction.
    """
    random = Random(29 + level)
    with KafkaCluster("4.3.0", tmp_path) as cluster:
        set_level(cluster.servers, level)
        with Admin(cluster.servers) as admin:
            admin.create_topic("life", partitions=4, replication_factor=3)
        life = Life(cluster.servers, "life", 4)
        thread = threading.Thread(target=life.run)
        thread.start()
        until(lambda: life.committed > 3 or life.errors, "transactions are committed")
        for _ in range(9):
            before = life.committed
            node = random.randrange(3)
            cluster.kill(node)
            time.sleep(random.uniform(0.5, 6))
            cluster.start(node)
            until(lambda: life.committed > before + 3 or life.errors, "it goes on")  # noqa: B023
        life.is_over = True
        thread.join(120)
        assert not life.errors
        with Producer(cluster.servers, transactional_id="life") as producer:
            producer.init_transactions()
        with Admin(cluster.servers) as admin:
            wait_until_all_is_stable(admin, 4)
            for partition in range(4):
                for isolation in ("read_committed", "read_uncommitted"):
                    table = read_topic(
                        "life",
                        cluster.servers,
                        columns=["offset", "value"],
                        partitions=[partition],
                        isolation=isolation,
                    )
                    offsets = table.column("offset").to_pylist()
                    values = [value.decode() for value in table.column("value").to_pylist()]
                    rows = tuple(zip(offsets, values, strict=True))
                    life.history.reads.append(Read(str(partition), isolation == "read_committed", rows, True))
            assert anomalies(life.history) == []
            visible = {int(value.split("/")[0]) for read in life.history.reads[::2] for _, value in read.rows}
            found = admin.list_group_offsets("life")
            assert {tp: at.offset for tp, at in found.items()} == {TopicPartition("life", 0): max(visible)}
    assert life.committed > 40


def wait_until_all_is_stable(admin: Admin, partitions: int) -> None:
    def is_stable() -> bool:
        places = [TopicPartition("life", number) for number in range(partitions)]
        try:
            ends = [
                admin.list_offsets(dict.fromkeys(places, -1), isolation=isolation)
                for isolation in ("read_committed", "read_uncommitted")
            ]
        except (KafkaError, PenstockError):
            return False
        return ends[0] == ends[1]

    until(is_stable, "every partition is stable")
