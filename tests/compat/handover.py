"""A data directory that brokers serve in turn on one port, while clients stay connected."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from compat.peers import HERE, free_ports, java_command, maven_classpath, real_kafka, until
from penstock import Consumer as OurConsumer
from penstock import Producer as OurProducer
from penstock import read_topic
from penstock.client.produce.delivery import Delivery
from penstock.errors import PenstockError

PLAIN, IN_TRANSACTIONS = "plain", "in-transactions"
"""The two topics that the clients use; each has two partitions."""

PATIENCE_S = 300
"""Seconds that clients may take to make progress, since a broker may take minutes to start."""

WAITS_S = 900
"""Seconds that clients keep unacknowledged records, and transactions stay open, while no broker runs.

It is longer than any broker takes to start: a transaction that times out fences its producer's epoch.
"""


class Turns:
    """Brokers that serve the same data directory at the same address, one after the other."""

    def __init__(self, root: Path, *, dynamic_quorum: bool = False, directories: int = 1) -> None:
        self.root = root
        self.directory = root / "data"
        """The data directory, or the first one if there are several."""
        self.directories = [self.directory, *(root / f"data-{number}" for number in range(1, directories))]
        self.port, self._controller = free_ports(2)
        self.servers = f"127.0.0.1:{self.port}"
        self.controller_listener = f"CONTROLLER://127.0.0.1:{self._controller}"
        """The controller's listener.

        A test that sets `listeners` for Apache Kafka must include it.
        """
        self._dynamic_quorum = dynamic_quorum

    @property
    def _log_dirs(self) -> str:
        return ",".join(map(str, self.directories))

    def home(self, partition: str) -> Path:
        """Return the data directory that contains the log of a partition."""
        [found] = [directory for directory in self.directories if (directory / partition).is_dir()]
        return found

    @contextlib.contextmanager
    def kafka(
        self, version: str, settings: Mapping[str, object] | None = None, *, killed: bool = False
    ) -> Iterator[str]:
        """Run Apache Kafka on the data directory in its current state; yield its bootstrap servers."""
        own: dict[str, object] = {
            "listeners": f"PLAINTEXT://{self.servers},{self.controller_listener}",
            "advertised.listeners": f"PLAINTEXT://{self.servers}",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "log.dirs": self._log_dirs,
        }
        if self._dynamic_quorum:
            own["controller.quorum.voters"] = ""
            own["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{self._controller}"
        with real_kafka(
            version,
            {**own, **(settings or {})},
            directory=self.root,
            in_order=not killed,
            first_port=self.port,
        ) as servers:
            yield servers

    @contextlib.contextmanager
    def ours(self, *settings: str, killed: bool = False) -> Iterator[str]:
        """Run Penstock's broker as a process on the data directory; `settings` are ``name=value``."""
        command = [sys.executable, "-m", "penstock.broker", "--port", str(self.port)]
        command += ["--config", f"log.dirs={self._log_dirs}", "--config", "node.id=1"]
        few = ("offsets.topic.num.partitions=5", "transaction.state.log.num.partitions=2")
        for setting in (*few, *settings):
            command += ["--config", setting]
        with (self.root / "ours.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        with process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                assert line.startswith("penstock broker"), (self.root / "ours.log").read_text()[-3000:]
                yield self.servers
            finally:
                process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
                assert process.wait(PATIENCE_S) in (0, -signal.SIGKILL)


class Connected:
    """Clients of Java, librdkafka and Penstock that stay connected: producers and group members.

    Java and librdkafka each have a transactional producer too.
    """

    def __init__(self, servers: str, *, java: bool = True) -> None:
        self._servers = servers
        self._is_done = threading.Event()
        self.acked: list[str] = []
        self.committed: list[str] = []
        self.read: dict[str, list[tuple[int, int]]] = {"librdkafka": [], "ours": [], "java": []}
        self.failures: list[str] = []
        self._threads: list[threading.Thread] = []
        self._java: subprocess.Popen[str] | None = None
        if java:
            source = HERE / "java" / "handover" / "Connected.java"
            command = java_command(
                maven_classpath("kafka-4.3.0"), source, servers, PLAIN, IN_TRANSACTIONS, 1000 * WAITS_S
            )
            self._java = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )

        works = [self._produce, self._transact, self._consume, self._produce_ours, self._consume_ours]
        for work in [*works, *([self._take_lines] if java else [])]:
            thread = threading.Thread(target=self._run, args=(work,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def advance(self) -> None:
        """Wait until every client has made progress: at least 20 more records since the call."""
        before = self._counts()
        until(
            lambda: (
                self.failures
                or all(after >= 20 + at for after, at in zip(self._counts(), before, strict=True))
            ),
            "every client gets on",
            PATIENCE_S,
        )
        assert not self.failures, self.failures[:10]

    def _counts(self) -> list[int]:
        """Return a progress counter for each client, so that a client that stands still is noticed."""
        names = ("librdkafka", "ours", *(("java",) if self._java is not None else ()))
        acked, committed = list(self.acked), list(self.committed)
        return [
            *(sum(value.startswith(f"{name} ") for value in acked) for name in names),
            *(
                sum(value.startswith(f"{name}-tx ") for value in committed)
                for name in names
                if name != "ours"
            ),
            *(len(self.read[name]) for name in names),
        ]

    def _take_lines(self) -> None:
        assert self._java is not None
        assert self._java.stdout is not None
        for line in self._java.stdout:
            self._take(line.rstrip("\n"))

    def finish(self) -> None:
        """Wait until all sent records are acknowledged, then end the clients."""
        self._is_done.set()
        if self._java is not None:
            assert self._java.stdin is not None
            self._java.stdin.write("\n")
            self._java.stdin.close()
            self._java.wait(2 * PATIENCE_S)
        for thread in self._threads:
            thread.join(2 * PATIENCE_S)
            assert not thread.is_alive(), "a client hangs"

    def stop(self) -> None:
        """Stop the clients that still run."""
        self._is_done.set()
        if self._java is not None:
            self._java.kill()
            self._java.wait()
            for stream in (self._java.stdin, self._java.stdout):
                if stream is not None:
                    stream.close()

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "acked":
            self.acked.append(rest)
        elif word == "committed":
            self.committed.append(f"java-tx {rest}")
        elif word == "read":
            partition, offset, *_ = rest.split(" ")
            self.read["java"].append((int(partition), int(offset)))
        elif word == "failed":
            self.failures.append(f"java: {rest}")

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.failures.append(f"{work.__name__}: {error!r}")

    # --- librdkafka --------------------------------------------------------------------------------------

    def _settings(self, **more: object) -> dict[str, object]:
        named = {name.replace("_", "."): value for name, value in more.items()}
        return {
            "bootstrap.servers": self._servers,
            "log_level": 0,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 200,
            **named,
        }

    def _produce(self) -> None:
        producer = Producer(self._settings(enable_idempotence=True, message_timeout_ms=WAITS_S * 1000))

        def delivered(error: KafkaError | None, message: Message) -> None:
            value = (message.value() or b"").decode()
            if error is None:
                self.acked.append(value)
            else:
                self.failures.append(f"librdkafka: {value} {error}")

        number = 0
        while not self._is_done.is_set():
            producer.produce(PLAIN, f"librdkafka {number}", partition=number % 2, on_delivery=delivered)
            producer.poll(0.005)
            number += 1
        assert producer.flush(PATIENCE_S) == 0

    def _transact(self) -> None:
        producer = Producer(
            self._settings(transactional_id="librdkafka", transaction_timeout_ms=WAITS_S * 1000)
        )
        again(lambda: producer.init_transactions(30))
        number = 0
        while not self._is_done.is_set():
            value = f"librdkafka-tx {number}"
            producer.begin_transaction()
            try:
                producer.produce(IN_TRANSACTIONS, value, partition=0)
                producer.produce(IN_TRANSACTIONS, value, partition=1)
                again(lambda: producer.commit_transaction(30))
                self.committed.append(value)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                again(lambda: producer.abort_transaction(30))
            number += 1
            time.sleep(0.02)

    def _consume(self) -> None:
        consumer = Consumer(
            self._settings(group_id="librdkafka", auto_offset_reset="earliest", enable_auto_commit=False)
        )
        consumer.subscribe([PLAIN])
        while not self._is_done.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                self.read["librdkafka"].append((message.partition(), message.offset()))
                consumer.commit(message, asynchronous=True)
        consumer.close()

    # --- ours --------------------------------------------------------------------------------------------

    def _produce_ours(self) -> None:
        options = {"enable_idempotence": True, "delivery_timeout_ms": WAITS_S * 1000}
        with OurProducer(self._servers, **options) as producer:
            number = 0
            sent: deque[tuple[str, Delivery]] = deque()
            while not self._is_done.is_set():
                value = f"ours {number}"
                sent.append((value, producer.send(PLAIN, value.encode(), partition=number % 2)))
                number += 1
                time.sleep(0.01)
                while sent and sent[0][1].done():
                    self._acknowledged(*sent.popleft())
            while sent:
                self._acknowledged(*sent.popleft())

    def _acknowledged(self, value: str, delivery: Delivery) -> None:
        delivery.result(WAITS_S)
        self.acked.append(value)

    def _consume_ours(self) -> None:
        options = {"group_id": "ours", "auto_offset_reset": "earliest"}
        with OurConsumer(self._servers, **options) as consumer:
            consumer.subscribe(PLAIN)
            while not self._is_done.is_set():
                try:
                    records = consumer.poll(timeout_ms=100)
                except PenstockError:
                    time.sleep(0.1)
                    continue
                self.read["ours"] += [(record.partition, record.offset) for record in records]

    # --- the accounts ------------------------------------------------------------------------------------

    def check(self) -> None:
        """Assert that no acknowledged record is lost or duplicated.

        Also assert that groups have read all records up to their committed offsets.
        """
        assert not self.failures, self.failures[:10]
        clients = {"ours", "librdkafka"} | ({"java"} if self._java is not None else set())
        assert {value.split()[0] for value in self.acked} == clients
        assert {value.split()[0] for value in self.committed} == {f"{each}-tx" for each in clients - {"ours"}}
        table = read_topic(PLAIN, self._servers, columns=["value", "partition", "offset"])
        values = [value.decode() for value in table.column("value").to_pylist()]
        assert len(values) == len(set(values)), "something is there twice"
        assert set(self.acked) <= set(values), "something acknowledged is lost"
        table = read_topic(IN_TRANSACTIONS, self._servers, columns=["value"], isolation="read_committed")
        ended = sorted(value.decode() for value in table.column("value").to_pylist())
        assert sorted(ended) == sorted(2 * self.committed), "each in both partitions, and no other"
        for reader, places in self.read.items():
            for partition in (0, 1):
                offsets = sorted({offset for at, offset in places if at == partition})
                assert offsets == list(range(len(offsets))), f"{reader} has missed something"
                assert offsets or reader not in clients


def again(call: Callable[[], object]) -> None:
    """Call a function of a librdkafka client, and repeat it while its error is retriable."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            call()
            return
        except KafkaException as error:
            # A coordinator that is being elected or loaded answers so; librdkafka does not call it retriable.
            moving = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
            may_repeat = error.args[0].retriable() or error.args[0].code() in moving
            if not may_repeat or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
