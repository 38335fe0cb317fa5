"""Mixed groups: our consumers with other people's in one group, on our broker and on Apache Kafka.

Members are processes that come, leave and are killed at random. Every record must be processed; when all
is quiet, the partitions must be with exactly one member each.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.group_members import COOPERATIVE
from compat.peers import HERE, java_command, maven_classpath, real_kafka, shared_kafka
from penstock import Admin, Broker, Consumer, Producer
from penstock.errors import KafkaError

pytestmark = pytest.mark.compat

PARTITIONS = 6
PYTHON_KINDS = ("penstock", "penstock-async", "confluent", "kafka-python", "aiokafka")
COOPERATIVE_KINDS = ("penstock", "penstock-async", "confluent")
numbers = itertools.count(os.getpid())


class Member:
    """A process in a group, and what it has said so far."""

    def __init__(self, kind: str, servers: str, group: str, topic: str, strategy: str = "range") -> None:
        self.kind = kind
        self.read: list[str] = []
        self.told: list[tuple[str, frozenset[int]]] = []
        self.held: frozenset[int] = frozenset()
        self.errors: list[str] = []
        if kind == "java":
            command = java_consumer(servers, group, topic, strategy)
        else:
            script = str(HERE / "group_members.py")
            command = [sys.executable, "-W", "ignore", script, kind, servers, group, topic, strategy]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._listen_to_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, *rest = line.split()
            if word == "r":
                self.read.append(rest[2])
            elif word == "v":  # Java's console consumer prints values only
                self.read.append(rest[0])
            elif word in "+-":
                places = frozenset(map(int, rest))
                self.held = self.held | places if word == "+" else self.held - places
                self.told.append((word, places))

    def _listen_to_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def end(self, how: int = signal.SIGTERM) -> None:
        """Stop the process, and hear all it has said."""
        self.process.send_signal(how)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


def java_consumer(servers: str, group: str, topic: str, strategy: str) -> list[str]:
    """Kafka's console consumer."""
    classes = {"range": "RangeAssignor", COOPERATIVE: "CooperativeStickyAssignor"}
    properties = {
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 300,
        "auto.commit.interval.ms": 200,
        "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{classes[strategy]}",
    }
    main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    words = ["--bootstrap-server", servers, "--topic", topic, "--group", group]
    words += ["--formatter-property", "print.key=true", "--formatter-property", "key.separator= "]
    words += [w for n, v in properties.items() for w in ("--command-property", f"{n}={v}")]
    return java_command(maven_classpath("kafka-4.3.0"), main, *words)


class Scene:
    """A topic with numbered records, and a group that reads it."""

    def __init__(self, servers: str, strategy: str = "range") -> None:
        self.servers = servers
        self.strategy = strategy
        self.topic = f"mixed-{next(numbers)}"
        self.group = f"group-{self.topic}"
        self.members: list[Member] = []
        self.gone: list[Member] = []
        self.count = 0
        with Admin(servers) as admin:
            admin.create_topic(self.topic, PARTITIONS)

    def produce(self, count: int) -> None:
        with Producer(self.servers) as producer:
            for number in range(self.count, self.count + count):
                # The key is what Java's console consumer prints first.
                producer.send(self.topic, b"%d" % number, key=b"v", partition=number % PARTITIONS)
        self.count += count

    def join(self, kind: str) -> Member:
        member = Member(kind, self.servers, self.group, self.topic, self.strategy)
        self.members.append(member)
        return member

    def end(self, member: Member, how: int = signal.SIGTERM) -> None:
        self.members.remove(member)
        self.gone.append(member)
        member.end(how)

    def missing(self) -> set[str]:
        seen = {value for member in [*self.members, *self.gone] for value in list(member.read)}
        return {str(number) for number in range(self.count)} - seen

    def assignments(self) -> list[tuple[int, ...]] | None:
        """The partitions of each member as the coordinator has them; None while the group rebalances."""
        with Admin(self.servers) as admin:
            try:
                (group,) = admin.describe_groups([self.group])
            except KafkaError:
                return None
        if group.state != "Stable" or len(group.members) != len(self.members):
            return None
        return [tuple(place.partition for place in member.partitions) for member in group.members]

    def is_settled(self) -> bool:
        shares = self.assignments()
        return shares is not None and sorted(itertools.chain(*shares)) == list(range(PARTITIONS))

    def wait(self, is_done: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_done():
            if time.monotonic() > deadline:
                said = {m.kind: (m.process.poll(), m.held, len(m.read), m.errors[-5:]) for m in self.members}
                pytest.fail(f"{what} in {timeout_s:g} s; {len(self.missing())} records missing; {said}")
            time.sleep(0.1)

    def close(self) -> None:
        for member in list(self.members):
            self.end(member, signal.SIGKILL)


@contextlib.contextmanager
def scene(servers: str, strategy: str = "range") -> Iterator[Scene]:
    made = Scene(servers, strategy)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def penstock_broker() -> Iterator[str]:
    with Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(params=["penstock", "4.3.0"])
def servers(request: pytest.FixtureRequest) -> str:
    if request.param == "penstock":
        found: str = request.getfixturevalue("penstock_broker")
        return found
    return shared_kafka(request.param)


def test_five_clients_share_a_topic(servers: str) -> None:
    """They come one after the other, and go: by farewell, and by SIGKILL."""
    with scene(servers) as group:
        group.produce(300)
        for kind in PYTHON_KINDS:
            group.join(kind)
        group.wait(lambda: not group.missing() and group.is_settled(), "everybody has a share")
        group.produce(300)
        group.end(group.members[0])
        group.end(group.members[-1], signal.SIGKILL)
        group.wait(lambda: not group.missing() and group.is_settled(), "those who stay have everything")
        group.join("penstock")
        group.produce(300)
        group.wait(lambda: not group.missing() and group.is_settled(), "a new one has a share")


def test_java_is_a_member_like_any_other(servers: str) -> None:
    with scene(servers) as group:
        group.produce(200)
        group.join("penstock")
        group.join("java")
        group.wait(lambda: not group.missing() and group.is_settled(), "both have a share")
        group.produce(200)
        group.wait(lambda: not group.missing(), "both read")
        assert all(member.read for member in group.members)
        group.end(group.members[0])
        group.produce(200)
        group.wait(lambda: not group.missing() and group.is_settled(), "Java has everything")


@pytest.mark.parametrize("other", ["confluent", "java", "penstock-async"])
def test_cooperative_rebalances_stop_nothing_that_need_not_stop(servers: str, other: str) -> None:
    with scene(servers, COOPERATIVE) as group:
        first = group.join("penstock")
        group.wait(lambda: len(first.held) == PARTITIONS, "the first has everything")
        group.join(other)
        group.wait(lambda: len(first.held) == PARTITIONS // 2 and group.is_settled(), "each has a half")
        kept = first.held
        group.produce(200)
        group.wait(lambda: not group.missing(), "both read")
        taken = [places for word, places in first.told if word == "-"]
        assert taken == [frozenset(range(PARTITIONS)) - kept]
        assert [places for word, places in first.told if word == "+" and places] == [
            frozenset(range(PARTITIONS))
        ]
        group.end(group.members[-1])
        group.wait(lambda: len(first.held) == PARTITIONS, "the first has everything again")
        assert [places for word, places in first.told if word == "-"] == taken


def storm(group: Scene, seconds: float, seed: int, kinds: tuple[str, ...]) -> None:
    """Members come and go at random while records are written; then everything must have been read."""
    dice = random.Random(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        group.produce(dice.randint(1, 200))
        roll = dice.random()
        if len(group.members) < 2 or (roll < 0.5 and len(group.members) < 4):
            group.join(dice.choice(kinds))
        elif roll < 0.75:
            group.end(dice.choice(group.members), dice.choice((signal.SIGTERM, signal.SIGKILL)))
        else:
            stalled = dice.choice(group.members).process
            stalled.send_signal(signal.SIGSTOP)
            time.sleep(dice.random() * 2)
            stalled.send_signal(signal.SIGCONT)
        time.sleep(dice.random() * 2)
    if not group.members:
        group.join(kinds[0])
    group.wait(lambda: not group.missing() and group.is_settled(), "all is quiet", 90)


@pytest.mark.parametrize("strategy", ["range", COOPERATIVE])
def test_a_short_storm(penstock_broker: str, strategy: str) -> None:
    kinds = PYTHON_KINDS if strategy == "range" else COOPERATIVE_KINDS
    with scene(penstock_broker, strategy) as group:
        storm(group, 12, 1, kinds)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("strategy", ["range", COOPERATIVE])
def test_a_storm_of_minutes(servers: str, strategy: str, seed: int) -> None:
    kinds = (
        (*PYTHON_KINDS, "java")
        if strategy == "range"
        else ("penstock", "penstock-async", "confluent", "java")
    )
    with scene(servers, strategy) as group:
        storm(group, 120, seed, (*kinds, "java"))


@pytest.mark.parametrize("release", ["2.8.2", "0.9.0.1"])
def test_groups_of_older_brokers(release: str) -> None:
    """JoinGroup v0 of 0.9 has one timeout for everything, and no member ids to begin with."""
    options: dict[str, Any] = {"group_id": "old", "auto_offset_reset": "earliest"}
    with real_kafka(release, {"auto.create.topics.enable": "true", "num.partitions": 2}) as servers:
        with Producer(servers, allow_auto_create_topics=True) as producer:
            for number in range(100):
                producer.send("t", b"%d" % number).result(30)
        values: list[bytes | None] = []
        with Consumer(servers, **options) as first, Consumer(servers, **options) as second:
            for consumer in (first, second):
                consumer.subscribe("t")
            deadline = time.monotonic() + 60
            while len(values) < 100 or not (first.assignment() and second.assignment()):
                assert time.monotonic() < deadline, (len(values), first.assignment(), second.assignment())
                values += [record.value for record in (*first.poll(100), *second.poll(100))]
        assert sorted(values) == sorted(b"%d" % number for number in range(100))
        with Consumer(servers, **options) as consumer:
            consumer.subscribe("t")
            while len(consumer.assignment()) < 2:
                consumer.poll(100)
            assert sum(at.offset for at in consumer.committed(consumer.assignment()).values() if at) == 100
