"""Penstock's and third-party consumers together in one group, on Penstock's broker and Apache Kafka.

Members are processes that join, leave, stall and are killed at random. Every record must be processed. When
no member joins or leaves any more, each partition must be assigned to exactly one member.
"""

from __future__ import annotations

import contextlib
import itertools
import json
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

from compat.group_members import COOPERATIVE, KIP_848
from compat.peers import (
    HERE,
    LEAKY_CLIENTS,
    PATIENCE_S,
    go_program,
    java_command,
    maven_classpath,
    real_kafka,
    shared_kafka,
)
from penstock import Admin, Broker, Consumer, Producer
from penstock.errors import KafkaError

pytestmark = [pytest.mark.compat, *LEAKY_CLIENTS]

PARTITIONS = 6
PYTHON_KINDS = ("penstock", "penstock-async", "confluent", "kafka-python", "aiokafka")
COOPERATIVE_KINDS = ("penstock", "penstock-async", "confluent")
JAVA_KINDS = ("java", "verifiable")
KINDS_FOR_0_9 = ("penstock", "penstock-async", "confluent", "kafka-python")
CLASSIC_TIMES = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300}
numbers = itertools.count(os.getpid())


class Member:
    """A group member in a process of its own, with the records and assignments that it has printed."""

    def __init__(
        self, kind: str, servers: str, group: str, topic: str, strategy: str = "range", release: str = ""
    ) -> None:
        self.kind = kind
        self.stalled_until = 0.0
        self.read: list[str] = []
        self.told: list[tuple[str, frozenset[int]]] = []
        self.held: frozenset[int] = frozenset()
        self.errors: list[str] = []
        if kind in JAVA_KINDS:
            command = java_consumer(kind, servers, group, topic, strategy)
        elif kind == "franz":
            command = [str(go_program("franz-groups")), servers, group, topic, strategy]
        else:
            script = str(HERE / "group_members.py")
            command = [sys.executable, "-W", "ignore", script, kind, servers, group, topic, strategy, release]
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
            if line.startswith("{") and line.endswith("}\n"):
                self._hear_verifiable(json.loads(line))
                continue
            if not line.endswith("\n"):  # killed in the middle of it
                break
            word, *rest = line.split()
            if word == "r":
                self.read.append(rest[2])
            elif word == "v":  # Java's console consumer prints values only
                self.read.append(rest[0])
            elif word in "+-":
                places = frozenset(map(int, rest))
                self.held = self.held | places if word == "+" else self.held - places
                self.told.append((word, places))

    def _hear_verifiable(self, said: dict[str, Any]) -> None:
        """Process an event that Kafka's VerifiableConsumer printed: records read, or a changed assignment."""
        if said["name"] == "record_data":
            self.read.append(said["value"])
        elif said["name"] in ("partitions_assigned", "partitions_revoked"):
            places = frozenset(place["partition"] for place in said["partitions"])
            is_more = said["name"] == "partitions_assigned"
            self.held = self.held | places if is_more else self.held - places
            self.told.append(("+" if is_more else "-", places))

    def stall(self, seconds: float) -> None:
        """Pause the process with SIGSTOP, and set the time at which it is to continue."""
        self.stalled_until = time.monotonic() + seconds
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.stalled_until = 0.0
        self.process.send_signal(signal.SIGCONT)

    def _listen_to_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def end(self, how: int = signal.SIGTERM) -> None:
        """Stop the process with a signal, and read the rest of its output."""
        self.process.send_signal(how)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


def java_consumer(kind: str, servers: str, group: str, topic: str, strategy: str) -> list[str]:
    """Return the command line of Kafka's console consumer or VerifiableConsumer."""
    classes = {"range": "RangeAssignor", COOPERATIVE: "CooperativeStickyAssignor", KIP_848: ""}
    assignor = f"org.apache.kafka.clients.consumer.{classes[strategy]}"
    words = ["--bootstrap-server", servers, "--topic", topic]
    if kind == "verifiable":
        main = "org.apache.kafka.tools.VerifiableConsumer"
        words += ["--group-id", group, "--reset-policy", "earliest", "--enable-autocommit", "--verbose"]
        if strategy == KIP_848:
            words += ["--group-protocol", "consumer"]
        else:
            words += ["--session-timeout", "6000", "--assignment-strategy", assignor]
    else:
        properties = {
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            **({"group.protocol": "consumer"} if strategy == KIP_848 else CLASSIC_TIMES),
            **({} if strategy == KIP_848 else {"partition.assignment.strategy": assignor}),
        }
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        words += ["--group", group]
        words += ["--formatter-property", "print.key=true", "--formatter-property", "key.separator= "]
        words += [w for n, v in properties.items() for w in ("--command-property", f"{n}={v}")]
    return java_command(maven_classpath("kafka-4.3.0"), main, *words)


class Scene:
    """A topic with numbered records, and a group that reads it."""

    def __init__(self, servers: str, strategy: str = "range", release: str = "") -> None:
        self.servers = servers
        self.strategy = strategy
        self.release = release
        self.topic = f"mixed-{next(numbers)}"
        self.group = f"group-{self.topic}"
        # 0.9.0 forgets what it has just read from other connections when it meets an API it does not know.
        self.options: dict[str, Any] = {"api_version_request": not release}
        self.members: list[Member] = []
        self.gone: list[Member] = []
        self.count = 0
        if release:  # that old a broker makes topics when they are first written to
            with Producer(servers, allow_auto_create_topics=True, **self.options) as producer:
                producer.send(self.topic, b"0", key=b"v", partition=0).result(PATIENCE_S)
            self.count = 1
            return
        with Admin(servers) as admin:
            admin.create_topic(self.topic, PARTITIONS)

    def produce(self, count: int) -> None:
        with Producer(self.servers, **self.options) as producer:
            for number in range(self.count, self.count + count):
                # The key is what Java's console consumer prints first.
                producer.send(self.topic, b"%d" % number, key=b"v", partition=number % PARTITIONS)
        self.count += count

    def join(self, kind: str, strategy: str = "") -> Member:
        strategy = strategy or self.strategy
        member = Member(kind, self.servers, self.group, self.topic, strategy, self.release)
        self.members.append(member)
        return member

    def end(self, member: Member, how: int = signal.SIGTERM) -> None:
        member.go_on()
        self.members.remove(member)
        self.gone.append(member)
        member.end(how)

    def missing(self) -> set[str]:
        seen = {value for member in [*self.members, *self.gone] for value in list(member.read)}
        return {str(number) for number in range(self.count)} - seen

    def assignments(self) -> list[tuple[int, ...]] | None:
        """Return the partitions of each member as the coordinator reports them.

        Returns None while the group rebalances.
        """
        with Admin(self.servers, **self.options) as admin:
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

    def wait(self, is_done: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_done():
            if time.monotonic() > deadline:
                said = [(m.kind, m.process.poll(), m.held, len(m.read), m.errors[-5:]) for m in self.members]
                with Admin(self.servers, **self.options) as admin:
                    group = admin.describe_groups([self.group])
                missing = len(self.missing())
                pytest.fail(f"{what} in {timeout_s:g} s; {missing} records missing; {said}; {group}")
            time.sleep(0.1)

    def close(self) -> None:
        for member in list(self.members):
            self.end(member, signal.SIGKILL)


@contextlib.contextmanager
def scene(servers: str, strategy: str = "range", release: str = "") -> Iterator[Scene]:
    made = Scene(servers, strategy, release)
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
    """Five different clients join one after the other. Later one leaves, and one is killed."""
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


@pytest.mark.parametrize("kind", JAVA_KINDS)
def test_java_is_a_member_like_any_other(servers: str, kind: str) -> None:
    with scene(servers) as group:
        group.produce(200)
        group.join("penstock")
        group.join(kind)
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
    """Let members join, leave, stall and die at random while records are written.

    At the end every record must have been read.
    """
    dice = random.Random(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        group.produce(dice.randint(1, 200))
        for member in group.members:
            if 0 < member.stalled_until <= time.monotonic():
                member.go_on()
        roll = dice.random()
        if len(group.members) < 2 or (roll < 0.5 and len(group.members) < 4):
            group.join(dice.choice(kinds))
        elif roll < 0.75:
            group.end(dice.choice(group.members), dice.choice((signal.SIGTERM, signal.SIGKILL)))
        else:
            # Some stall for so long that others get their partitions.
            dice.choice(group.members).stall(dice.choice((0.5, 2, 9)))
        time.sleep(dice.random() * 2)
    for member in group.members:
        member.go_on()
    if not group.members:
        group.join(kinds[0])
    group.wait(lambda: not group.missing() and group.is_settled(), "all is quiet")


@pytest.mark.parametrize("strategy", ["range", COOPERATIVE])
def test_a_short_storm(penstock_broker: str, strategy: str) -> None:
    kinds = PYTHON_KINDS if strategy == "range" else COOPERATIVE_KINDS
    with scene(penstock_broker, strategy) as group:
        storm(group, 12, 1, kinds)


@pytest.mark.parametrize(
    "release", ["4.3.0", *(pytest.param(each, marks=pytest.mark.soak) for each in ("2.8.2", "0.9.0.1"))]
)
@pytest.mark.parametrize("seconds", [12, pytest.param(120, marks=pytest.mark.soak)])
def test_a_storm_at_apache_kafka(release: str, seconds: float) -> None:
    with contextlib.ExitStack() as stack:
        if release.startswith("0.9"):
            servers = stack.enter_context(real_kafka(release, {"num.partitions": PARTITIONS}))
            group = stack.enter_context(scene(servers, release="0.9"))
            storm(group, seconds, 1, KINDS_FOR_0_9)
        else:
            group = stack.enter_context(scene(shared_kafka(release)))
            storm(group, seconds, 1, (*PYTHON_KINDS, *JAVA_KINDS) if seconds > 60 else PYTHON_KINDS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("strategy", ["range", COOPERATIVE])
def test_a_storm_of_minutes(servers: str, strategy: str, seed: int) -> None:
    kinds = PYTHON_KINDS if strategy == "range" else COOPERATIVE_KINDS
    with scene(servers, strategy) as group:
        storm(group, 120, seed, (*kinds, *JAVA_KINDS))


@pytest.mark.parametrize("release", ["2.8.2", "0.9.0.1"])
def test_groups_of_older_brokers(release: str) -> None:
    """Kafka 0.9's JoinGroup v0 has one timeout, the session's, and assigns member ids in its response."""
    options: dict[str, Any] = {"group_id": "old", "auto_offset_reset": "earliest"}
    with real_kafka(release, {"auto.create.topics.enable": "true", "num.partitions": 2}) as servers:
        with Producer(servers, allow_auto_create_topics=True) as producer:
            for number in range(100):
                producer.send("t", b"%d" % number).result(PATIENCE_S)
        values: list[bytes | None] = []
        with Consumer(servers, **options) as first, Consumer(servers, **options) as second:
            for consumer in (first, second):
                consumer.subscribe("t")
            deadline = time.monotonic() + PATIENCE_S
            while len(values) < 100 or not (first.assignment() and second.assignment()):
                assert time.monotonic() < deadline, (len(values), first.assignment(), second.assignment())
                values += [record.value for record in (*first.poll(100), *second.poll(100))]
        assert sorted(values) == sorted(b"%d" % number for number in range(100))
        with Consumer(servers, **options) as consumer:
            consumer.subscribe("t")
            while len(consumer.assignment()) < 2:
                consumer.poll(100)
            assert sum(at.offset for at in consumer.committed(consumer.assignment()).values() if at) == 100
