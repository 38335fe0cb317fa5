"""Kafka Streams, unchanged, against our broker: its stores, its internal topics, its groups that rebalance.

In `make soak` the same runs against three brokers, and against Apache Kafka.
"""

from __future__ import annotations

import contextlib
import random
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from compat.peers import HERE, PATIENCE_S, java, java_command, maven_classpath, real_kafka, until
from compat.places import ONE_AND_LATER_THREE, PLACES, made
from penstock import Admin, Broker, Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "5", "num.partitions": "3"}
TOPICS = ("lines", "names", "counts", "windows", "named")
PARTITIONS = 3
WINDOW_MS = 10_000
STEP_MS = 20
BEGIN_MS = (time.time_ns() // 1_000_000 // WINDOW_MS - 6) * WINDOW_MS
"""The beginning of a window a minute ago: records of long ago would not be kept."""


class Application:
    """One instance of the word count, in a JVM of its own."""

    def __init__(self, servers: str, name: str, directory: Path, *settings: str) -> None:
        program = HERE / "java" / "streams" / "WordCount.java"
        command = java_command(maven_classpath("streams"), program, servers, name, directory, *settings)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.lines: list[str] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())

    @property
    def is_running(self) -> bool:
        """Whether it says so. An error fails the test."""
        assert not any(line.startswith("error") for line in self.lines), self.lines
        return [line for line in self.lines if line.startswith("state")][-1:] == ["state RUNNING"]

    def ask(self, word: str) -> int:
        """What its store says of a word; -1 while it cannot be asked."""
        assert self.process.stdin is not None
        before = len(self._answers())
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        until(lambda: len(self._answers()) > before, f"the count of {word}")
        return int(self._answers()[-1].split()[-1])

    def _answers(self) -> list[str]:
        return [line for line in self.lines if line.startswith("get ")]

    def close(self) -> None:
        """Let it end in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """End it at once, and close the pipes."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Application]]:
    """Start instances; all end with the test."""
    with contextlib.ExitStack() as stack:

        def started(*args: object) -> Application:
            application = Application(*args)  # type: ignore[arg-type]
            stack.callback(application.kill)
            return application

        yield started


@pytest.fixture(params=[*ONE_AND_LATER_THREE, pytest.param("Apache Kafka", marks=pytest.mark.soak)])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param in PLACES:
        with made(request.param, tmp_path / "data", SETTINGS) as brokers:
            yield brokers.bootstrap_servers
    else:
        with real_kafka("4.3.0", settings=SETTINGS) as found:
            yield found


def read(servers: str, topic: str) -> list[tuple[str, bytes]]:
    """Keys and values of a topic, from its beginning to its end."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    rows: list[tuple[str, bytes]] = []
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        consumer.seek_to_beginning()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            rows += [((r.key or b"").decode(), r.value or b"") for r in consumer.poll(timeout_ms=500)]
    return rows


def numbers(servers: str, topic: str) -> dict[str, int]:
    """The last number of each key."""
    return {key: int(struct.unpack(">q", value)[0]) for key, value in read(servers, topic)}


def has_all(found: dict[str, int], wanted: Counter[str]) -> bool:
    """Whether everything was counted at least once: more is allowed, though not twice as much."""
    is_there = found.keys() == wanted.keys() and all(found[key] >= count for key, count in wanted.items())
    assert sum(found.values()) < 2 * wanted.total()
    return is_there


class Writer:
    """Writes lines of random words, and knows what should come of them."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._dice = random.Random(7)
        self.words: Counter[str] = Counter()
        self.named: set[tuple[str, bytes]] = set()
        self.count = 0

    def prepare(self) -> None:
        """Make the topics, and fill the table of names."""
        with Admin(bootstrap_servers=self._servers) as admin:
            for topic in TOPICS:
                admin.create_topic(topic, PARTITIONS)
        with Producer(bootstrap_servers=self._servers) as producer:
            for number in range(9):
                producer.send("names", b"name %d" % number, key=b"key %d" % number)

    def write(self, count: int) -> None:
        with Producer(bootstrap_servers=self._servers) as producer:
            for _ in range(count):
                words = self._dice.choices("abcdefghij", k=4)
                self.words.update(words)
                number, line = self.count % 9, " ".join(words).encode()
                time_ms = BEGIN_MS + self.count * STEP_MS
                producer.send("lines", line, key=b"key %d" % number, timestamp=time_ms)
                self.named.add((f"key {number}", b"name %d: %s" % (number, line)))
                self.count += 1


def test_word_count(servers: str, start: Callable[..., Application], tmp_path: Path) -> None:
    """Two instances share the work; one is killed, and the other goes on where its changelog ends."""
    writer = Writer(servers)
    writer.prepare()
    writer.write(300)
    first = start(servers, "wordcount", tmp_path / "first")
    second = start(servers, "wordcount", tmp_path / "second", "num.stream.threads=2")
    until(lambda: first.is_running and second.is_running, "both instances")
    writer.write(300)
    until(lambda: has_all(numbers(servers, "counts"), writer.words), "the counts")
    until(lambda: set(read(servers, "named")) == writer.named, "the names")
    first_window = Counter(f"key {number % 9}@{BEGIN_MS}" for number in range(WINDOW_MS // STEP_MS))
    until(lambda: has_all(numbers(servers, "windows"), first_window), "the windows")

    first.kill()
    writer.write(300)
    until(lambda: has_all(numbers(servers, "counts"), writer.words), "the rest")
    until(lambda: second.is_running, "the one that is left")
    until(lambda: second.ask("a") == numbers(servers, "counts")["a"], "its store and what it told")
    with Admin(bootstrap_servers=servers) as admin:
        made = {topic for topic in admin.list_topics() if topic.startswith("wordcount-")}
        changelog = admin.describe_config("wordcount-counts-changelog")
    assert {"wordcount-words-repartition", "wordcount-counts-changelog"} <= made
    assert changelog["cleanup.policy"].value == "compact"
    second.close()
    _reset(servers)


def _reset(servers: str) -> None:
    """Apache Kafka's tool brings the group back to the beginning, and takes the internal topics away."""
    asked = ("--bootstrap-server", servers, "--application-id", "wordcount", "--input-topics", "lines")
    tool = "org.apache.kafka.tools.StreamsResetter"
    java(maven_classpath("kafka-4.3.0"), tool, *asked, "--force", check=True)
    with Admin(bootstrap_servers=servers) as admin:
        until(lambda: not any(t.startswith("wordcount-") for t in admin.list_topics()), "their end")


def test_exactly_once_where_instances_are_killed(
    servers: str, start: Callable[..., Application], tmp_path: Path
) -> None:
    """Each word is counted once, though two instances die in the middle and their state is gone."""
    guarantee = "processing.guarantee=exactly_once_v2"
    writer = Writer(servers)
    writer.prepare()
    writer.write(300)
    first = start(servers, "exact", tmp_path / "first", guarantee)
    until(lambda: sum(numbers(servers, "counts").values()) > 200, "the first counts")
    writer.write(300)
    first.kill()
    second = start(servers, "exact", tmp_path / "second", guarantee)
    until(lambda: numbers(servers, "counts") == dict(writer.words), "every word, once")
    writer.write(300)
    second.kill()
    third = start(servers, "exact", tmp_path / "third", guarantee)
    until(lambda: numbers(servers, "counts") == dict(writer.words), "every word of the rest, once")
    third.close()
    assert numbers(servers, "counts") == dict(writer.words)


BY_STREAMS_GROUPS = ("group.protocol=streams", "session.timeout.ms=", "heartbeat.interval.ms=")
"""The broker decides about sessions and heartbeats of streams groups (KIP-1071)."""

GROUP_SETTINGS = {
    "group.streams.min.session.timeout.ms": "8000",
    "group.streams.session.timeout.ms": "8000",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "300",
    "group.streams.assignment.interval.ms": "300",
}


@pytest.fixture(params=[*ONE_AND_LATER_THREE, pytest.param("Apache Kafka", marks=pytest.mark.soak)])
def streams_servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    settings = {**SETTINGS, **GROUP_SETTINGS}
    if request.param in PLACES:
        with made(request.param, tmp_path / "data", settings) as brokers:
            yield brokers.bootstrap_servers
    else:
        with real_kafka("4.3.0", settings=settings) as found:
            yield found


def groups_tool(servers: str, *args: object) -> str:
    tool = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    done = java(maven_classpath("kafka-4.3.0"), tool, "--bootstrap-server", servers, *args, check=True)
    return done.stdout


def test_word_count_by_a_streams_group(
    streams_servers: str, start: Callable[..., Application], tmp_path: Path
) -> None:
    """The broker makes the internal topics and assigns tasks, and a standby takes over from who is killed."""
    servers = streams_servers
    writer = Writer(servers)
    writer.prepare()
    with Admin(bootstrap_servers=servers) as admin:
        admin.alter_config(group="tasks", set={"streams.num.standby.replicas": "1"})
    writer.write(300)
    first = start(servers, "tasks", tmp_path / "first", *BY_STREAMS_GROUPS, "application.server=one:1")
    second = start(
        servers, "tasks", tmp_path / "second", *BY_STREAMS_GROUPS, "num.stream.threads=2",
        "application.server=two:2",
    )  # fmt: skip
    until(lambda: first.is_running and second.is_running, "both instances")
    writer.write(300)
    until(lambda: has_all(numbers(servers, "counts"), writer.words), "the counts")
    assert "tasks" in groups_tool(servers, "--list").split()
    members = groups_tool(servers, "--describe", "--group", "tasks", "--members", "--verbose")
    assert members.count(" ACTIVE:") == 3, members
    assert " STANDBY:" in members
    first.kill()
    writer.write(300)
    until(lambda: has_all(numbers(servers, "counts"), writer.words), "the rest")
    until(lambda: second.is_running, "the one that is left")
    until(lambda: second.ask("a") == numbers(servers, "counts")["a"], "its store and what it told")
    second.close()
    reset = ("--group", "tasks", "--reset-offsets", "--input-topic", "lines", "--to-earliest", "--execute")
    until(
        lambda: "Empty" in groups_tool(servers, "--describe", "--group", "tasks", "--state"), "an empty group"
    )
    assert "lines" in groups_tool(servers, *reset)
    assert "tasks" in groups_tool(servers, "--delete", "--group", "tasks")
    assert "tasks" not in groups_tool(servers, "--list").split()


def test_what_is_not_offered_ends_it_at_once(start: Callable[..., Application], tmp_path: Path) -> None:
    """It does not wait for what will never come; the exception says why."""
    with Broker(config={**SETTINGS, "group.coordinator.rebalance.protocols": "classic"}) as broker:
        servers = broker.bootstrap_servers
        Writer(servers).prepare()
        application = start(servers, "refused", tmp_path / "refused", *BY_STREAMS_GROUPS)
        application.process.wait(PATIENCE_S)
        application.kill()  # what it printed has been read by then
        reason = "The cluster does not support the STREAMS group protocol"
        assert any(reason in line for line in application.lines), application.lines
