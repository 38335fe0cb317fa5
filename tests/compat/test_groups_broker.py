"""Third-party consumers in groups on Penstock's broker, also mixed in one group, over broker restarts."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from compat.peers import LEAKY_CLIENTS, PATIENCE_S, free_ports, need_module, until
from compat.places import PLACES, made
from penstock import Broker, Cluster

aiokafka = need_module("aiokafka")
confluent_kafka = need_module("confluent_kafka")
kafka = need_module("kafka")

from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange  # noqa: E402
from aiokafka.coordinator.assignors.roundrobin import (  # noqa: E402
    RoundRobinPartitionAssignor as AioRoundRobin,
)
from aiokafka.coordinator.assignors.sticky.sticky_assignor import (  # noqa: E402
    StickyPartitionAssignor as AioSticky,
)
from confluent_kafka.admin import AdminClient  # noqa: E402
from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: E402
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # noqa: E402
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # noqa: E402

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    *LEAKY_CLIENTS,
]

PARTITIONS = 6

KAFKA_PYTHON = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
AIOKAFKA = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}

Place = tuple[int, int]
"""A partition and an offset."""


class Consumer(threading.Thread):
    """A third-party consumer on a thread, with its assignment and the positions it has read.

    It commits automatically.
    """

    made: ClassVar[list[Consumer]] = []

    def __init__(self, servers: str, group: str, assignor: str) -> None:
        super().__init__(daemon=True)
        self.servers = servers
        self.group = group
        self.assignor = assignor
        self.assigned: set[int] = set()
        self.seen: list[Place] = []
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self.made.append(self)

    def run(self) -> None:
        try:
            self.consume()
        except BaseException as error:
            self.failure = error

    def consume(self) -> None:
        raise AssertionError

    @classmethod
    def end_all(cls) -> None:
        """Stop the consumers that a failed test has left, since their sockets would disturb later tests."""
        for consumer in cls.made:
            consumer.stopping.set()
        for consumer in cls.made:
            if consumer.ident is not None:
                consumer.join(PATIENCE_S)
        cls.made.clear()

    def stop(self) -> None:
        self.stopping.set()
        self.join(PATIENCE_S)
        assert not self.is_alive(), f"{type(self).__name__} does not end"
        if self.failure is not None:
            raise self.failure


class Confluent(Consumer):
    def consume(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": self.assignor,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 300,
            }
        )
        consumer.subscribe(["t"])
        while not self.stopping.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.seen.append((message.partition(), message.offset()))
            self.assigned = {place.partition for place in consumer.assignment()}
        consumer.close()


class KafkaPython(Consumer):
    def consume(self) -> None:
        consumer = kafka.KafkaConsumer(
            "t",
            bootstrap_servers=self.servers,
            group_id=self.group,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[KAFKA_PYTHON[self.assignor]],
            session_timeout_ms=6000,
            heartbeat_interval_ms=300,
        )
        # A leader whose metadata changes while it joins may forget its assignment (FINDINGS.md).
        consumer.partitions_for_topic("t")
        while not self.stopping.is_set():
            for records in consumer.poll(100).values():
                self.seen.extend((record.partition, record.offset) for record in records)
            self.assigned = {place.partition for place in consumer.assignment()}
        consumer.close()


class AioKafka(Consumer):
    def consume(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            "t",
            bootstrap_servers=self.servers,
            group_id=self.group,
            auto_offset_reset="earliest",
            partition_assignment_strategy=(AIOKAFKA[self.assignor],),
            session_timeout_ms=6000,
            heartbeat_interval_ms=300,
        )
        await consumer.start()
        while not self.stopping.is_set():
            for records in (await consumer.getmany(timeout_ms=100)).values():
                self.seen.extend((record.partition, record.offset) for record in records)
            self.assigned = {place.partition for place in consumer.assignment()}
        await consumer.stop()


CLIENTS: list[type[Consumer]] = [Confluent, KafkaPython, AioKafka]


@pytest.fixture(params=PLACES)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker | Cluster]:
    with made(request.param, tmp_path, num_partitions=PARTITIONS) as broker:
        yield broker
        Consumer.end_all()


def write(servers: str, first: int, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(first, first + count):
        producer.produce("t", b"%d" % number, partition=number % PARTITIONS)
    producer.flush(PATIENCE_S)


def share(consumers: list[Any]) -> Callable[[], bool]:
    """Return a condition that holds when these consumers have all partitions, each at least one."""

    def is_shared() -> bool:
        parts = [set(consumer.assigned) for consumer in consumers]
        return all(parts) and sorted(index for part in parts for index in part) == list(range(PARTITIONS))

    return is_shared


def everything(count: int) -> set[Place]:
    return {(number % PARTITIONS, number // PARTITIONS) for number in range(count)}


@pytest.mark.parametrize("client", CLIENTS)
def test_alone_it_reads_commits_and_goes_on_where_it_was(broker: Broker, client: type[Consumer]) -> None:
    write(broker.bootstrap_servers, 0, 60)
    first = client(broker.bootstrap_servers, "g", "range")
    first.start()
    until(lambda: set(first.seen) == everything(60), "not everything was read")
    first.stop()
    broker.close()
    broker.start()
    write(broker.bootstrap_servers, 60, 60)
    second = client(broker.bootstrap_servers, "g", "range")
    second.start()
    until(lambda: len(second.seen) >= 60, "the rest was not read")
    second.stop()
    assert set(second.seen) == everything(120) - everything(60)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_three_kinds_of_clients_share_a_topic(broker: Broker, assignor: str) -> None:
    servers = broker.bootstrap_servers
    write(servers, 0, 60)
    consumers = [client(servers, "mixed", assignor) for client in CLIENTS]
    for consumer in consumers:
        consumer.start()
    until(share(consumers), "the partitions are not shared")
    write(servers, 60, 240)

    def seen() -> set[Place]:
        return {place for consumer in consumers for place in consumer.seen}

    until(lambda: seen() == everything(300), "not everything was read")
    leaver = consumers.pop(0)
    before = seen() | set(leaver.seen)
    leaver.stop()
    until(share(consumers), "what was left is not taken over")
    write(servers, 300, 60)
    until(lambda: before | seen() == everything(360), "what came later was not read")
    for consumer in consumers:
        consumer.stop()


@pytest.mark.parametrize(
    "clients", [[KafkaPython, KafkaPython], [AioKafka, AioKafka], [KafkaPython, AioKafka]]
)
def test_sticky_members_share_a_topic(broker: Broker, clients: list[type[Consumer]]) -> None:
    consumers = [client(broker.bootstrap_servers, "sticky", "sticky") for client in clients]
    write(broker.bootstrap_servers, 0, 6)
    for consumer in consumers:
        consumer.start()
    until(share(consumers), "the partitions are not shared")
    for consumer in consumers:
        consumer.stop()


def test_cooperative_members_share_a_topic(broker: Broker) -> None:
    consumers = [Confluent(broker.bootstrap_servers, "coop", "cooperative-sticky") for _ in range(3)]
    write(broker.bootstrap_servers, 0, 60)
    for consumer in consumers:
        consumer.start()
        until(lambda: bool(consumers[0].assigned), "the first has nothing")
    until(share(consumers), "the partitions are not shared")
    for consumer in consumers:
        consumer.stop()


def test_a_member_that_dies_is_replaced_after_its_session(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    write(servers, 0, 6)
    code = (
        "import confluent_kafka as c, sys\n"
        f"k = c.Consumer({{'bootstrap.servers': '{servers}', 'group.id': 'g', 'session.timeout.ms': 6000}})\n"
        "k.subscribe(['t'])\n"
        "while True:\n"
        "    k.poll(0.1)\n"
        "    if k.assignment(): print('in', flush=True)\n"
    )
    victim = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"in\n"
        other = KafkaPython(servers, "g", "range")
        other.start()
        until(lambda: len(other.assigned) == PARTITIONS // 2, "the partitions are not shared")
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    until(lambda: len(other.assigned) == PARTITIONS, "the dead keep their partitions")
    other.stop()


def test_members_stay_members_while_the_broker_is_killed_and_comes_back(tmp_path: Path) -> None:
    """After SIGKILL the group keeps its generation and committed offsets, and no member joins again."""

    [port] = free_ports(1)

    def start() -> subprocess.Popen[bytes]:
        where = ["--port", str(port), "--data-dir", str(tmp_path)]
        command = [sys.executable, "-m", "penstock.broker", *where, "--config", "num.partitions=6"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert b" listening on " in process.stdout.readline()
        return process

    process = start()
    servers = f"127.0.0.1:{port}"
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 300,
            "reconnect.backoff.max.ms": 300,
        }
    )
    assignments: list[Any] = []
    try:
        consumer.subscribe(["t"], on_assign=lambda _, partitions: assignments.append(partitions))
        write(servers, 0, 6)
        read = 0
        for round_number in range(3):
            deadline = time.monotonic() + PATIENCE_S
            while read < 6 * (round_number + 1):
                assert time.monotonic() < deadline
                message = consumer.poll(0.2)
                read += message is not None and message.error() is None
            committed = consumer.commit(asynchronous=False)
            member_id = consumer.memberid()
            process.kill()
            process.communicate()
            process = start()
            admin = AdminClient({"bootstrap.servers": servers})
            found = admin.describe_consumer_groups(["g"])["g"].result(PATIENCE_S)
            assert [member.member_id for member in found.members] == [member_id]
            again = consumer.committed(list(committed), timeout=PATIENCE_S)
            assert {p.partition: p.offset for p in again} == {p.partition: p.offset for p in committed}
            write(servers, 6 * (round_number + 1), 6)
        assert len(assignments) == 1
    finally:
        consumer.close()
        process.kill()
        process.communicate()


def test_administrators_see_and_remove_groups(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    write(servers, 0, 6)
    consumer = KafkaPython(servers, "g", "range")
    consumer.start()
    until(lambda: len(consumer.assigned) == PARTITIONS, "nothing is assigned")
    admin = AdminClient({"bootstrap.servers": servers})
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert [(group.group_id, group.state.name) for group in listed.valid] == [("g", "STABLE")]
    described = admin.describe_consumer_groups(["g"])["g"].result(PATIENCE_S)
    assert described.partition_assignor == "range"
    [member] = described.members
    assert len(member.assignment.topic_partitions) == PARTITIONS
    with pytest.raises(confluent_kafka.KafkaException, match=r"NON_EMPTY_GROUP|not empty"):
        admin.delete_consumer_groups(["g"])["g"].result(PATIENCE_S)
    consumer.stop()
    admin.delete_consumer_groups(["g"])["g"].result(PATIENCE_S)
    assert admin.list_consumer_groups().result(PATIENCE_S).valid == []
