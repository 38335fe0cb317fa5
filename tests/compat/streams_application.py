"""The Kafka Streams word count of `java/streams`: its processes, its input, and checks of its output."""

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

from compat.peers import HERE, PATIENCE_S, java_command, maven_classpath, until
from penstock import Admin, Consumer, Producer, TopicPartition

BY_STREAMS_GROUPS = ("group.protocol=streams", "session.timeout.ms=", "heartbeat.interval.ms=")
"""Settings for a streams group (KIP-1071), in which the broker sets session and heartbeat times."""

PATIENT = ("retry.backoff.max.ms=300", "producer.transaction.timeout.ms=300000")
"""Settings for instances whose brokers are killed.

With a shorter transaction timeout, a transaction that times out meanwhile would end the instance.
"""

GROUP_SETTINGS = {
    "group.streams.min.session.timeout.ms": "8000",
    "group.streams.session.timeout.ms": "8000",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "300",
    "group.streams.assignment.interval.ms": "300",
}

TOPICS = ("lines", "names", "counts", "windows", "named")
PARTITIONS = 3
WINDOW_MS = 10_000
STEP_MS = 20
BEGIN_MS = (time.time_ns() // 1_000_000 // WINDOW_MS - 6) * WINDOW_MS
"""The start (in ms) of a window about a minute ago: much older records would be past retention."""


class Application:
    """One instance of the word count, in a JVM of its own, with the lines that it has printed."""

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
        """True if the last printed state is RUNNING.

        If the instance has printed an error, the test fails.
        """
        assert not any(line.startswith("error") for line in self.lines), self.lines
        return [line for line in self.lines if line.startswith("state")][-1:] == ["state RUNNING"]

    def ask(self, word: str) -> int:
        """Return the count of a word in the instance's store.

        Returns -1 while the store is unavailable, or if another instance stores the word.
        """
        assert self.process.stdin is not None
        before = len(self._answers())
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        until(lambda: len(self._answers()) > before, f"the count of {word}")
        count = self._answers()[-1].split()[-1]
        return -1 if count == "null" else int(count)

    def _answers(self) -> list[str]:
        return [line for line in self.lines if line.startswith("get ")]

    def close(self) -> None:
        """Let the instance shut down cleanly, and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """End the instance with SIGKILL, and close its pipes."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()


Start = Callable[..., "Application"]
"""A function that starts an instance, with the arguments of `Application`."""


@contextlib.contextmanager
def starting() -> Iterator[Start]:
    """Yield a function that starts instances; all of them are killed at the end of the ``with`` block."""
    with contextlib.ExitStack() as stack:

        def started(*args: object) -> Application:
            application = Application(*args)  # type: ignore[arg-type]
            stack.callback(application.kill)
            return application

        yield started


def read(servers: str, topic: str) -> list[tuple[str, bytes]]:
    """Return the keys and values of all committed records in a topic."""
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
    """Return the last number that a topic has for each key."""
    return {key: int(struct.unpack(">q", value)[0]) for key, value in read(servers, topic)}


def has_all(found: dict[str, int], wanted: Counter[str]) -> bool:
    """Return True if every word was counted at least as often as it was written.

    The test fails if twice as many words were counted in total.
    """
    is_there = found.keys() == wanted.keys() and all(found[key] >= count for key, count in wanted.items())
    assert sum(found.values()) < 2 * wanted.total()
    return is_there


class Writer:
    """A producer of lines of random words that keeps the counts expected from them."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._dice = random.Random(7)
        self.words: Counter[str] = Counter()
        self.named: set[tuple[str, bytes]] = set()
        self.count = 0

    def prepare(self) -> None:
        """Create the topics, and write the entries of the topic `names`."""
        with Admin(bootstrap_servers=self._servers) as admin:
            for topic in TOPICS:
                admin.create_topic(topic, PARTITIONS)
        with Producer(bootstrap_servers=self._servers) as producer:
            for number in range(9):
                producer.send("names", b"name %d" % number, key=b"key %d" % number)

    def write(self, count: int) -> None:
        with Producer(bootstrap_servers=self._servers, enable_idempotence=True) as producer:
            for _ in range(count):
                words = self._dice.choices("abcdefghij", k=4)
                self.words.update(words)
                number, line = self.count % 9, " ".join(words).encode()
                time_ms = BEGIN_MS + self.count * STEP_MS
                producer.send("lines", line, key=b"key %d" % number, timestamp=time_ms)
                self.named.add((f"key {number}", b"name %d: %s" % (number, line)))
                self.count += 1
