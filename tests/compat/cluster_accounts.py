"""Clients on a cluster whose brokers are killed and restarted in turn, and the accounts of each afterwards.

Every client is a process of its own, with a producer (acks=all, idempotent) and a group of two members on a
topic of its own. Its arguments are the bootstrap servers and the topic, which names the group as well. It
prints a line for each event: ``a N`` record N has been acknowledged, ``e N ...`` it has failed, ``r N`` a
member has read it, ``sent N`` the producer has ended after N records. A line of input ends the producer,
another one or the end of the input ends the members and the program.

One driver for every cluster: it needs the addresses, and how a node is killed and started.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from compat.peers import go_program, java_command, maven_classpath, need, node_program, until
from penstock import Admin, Consumer
from penstock.errors import PenstockError
from penstock.model import TopicPartition

HERE = Path(__file__).resolve().parent
PARTITIONS = 3
START_PATIENCE_S = 240.0
SETTLING_PATIENCE_S = 240.0

COMMANDS: dict[str, Callable[[], Sequence[str]]] = {
    "penstock": lambda: python_command("penstock"),
    "librdkafka": lambda: python_command("librdkafka"),
    "kafka-python": lambda: python_command("kafka-python"),
    "aiokafka": lambda: python_command("aiokafka"),
    "java": lambda: java_command(maven_classpath("kafka-4.3.0"), HERE / "java/cluster/ClusterClient.java"),
    "sarama": lambda: [str(go_program("sarama"))],
    "franz": lambda: [str(go_program("franz"))],
    "kafkajs": lambda: [need("node"), str(node_program("kafkajs") / "cluster.js")],
}
"""The clients, by name, and how each is run."""

IN_BETWEEN = {"sarama": ["cluster"], "franz": ["cluster"]}
"""What programs with several parts get between the servers and the topic."""


def python_command(kind: str) -> list[str]:
    """The command line of a client of Python."""
    return [sys.executable, str(HERE / "cluster_clients.py"), kind]


class Nodes(Protocol):
    """A cluster whose nodes can be killed."""

    servers: str
    nodes: Sequence[int]

    def kill(self, node: int) -> None:
        """End a node by SIGKILL, or as under it."""

    def start(self, node: int) -> None:
        """Start it again, and wait until it answers."""


@dataclass
class Account:
    """What became of the records of one client."""

    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    stored: int = 0
    lost: list[int] = field(default_factory=list)
    """Acknowledged and not in the log."""
    twice: list[int] = field(default_factory=list)
    """In the log more than once."""
    unread: list[int] = field(default_factory=list)
    """In the log, and never read by the group."""
    reread: int = 0
    """How often the group has read a record again, since it had not been committed."""
    behind: int = 0
    """How many records lie behind what the group has committed."""
    status: int | None = None

    @property
    def is_good(self) -> bool:
        """Whether nothing is lost, there twice, unread or uncommitted, and the program has ended well."""
        is_whole = not (self.lost or self.twice or self.unread or self.behind)
        return is_whole and self.acknowledged > 0 and self.status == 0

    def __str__(self) -> str:
        return (
            f"sent {self.sent}, acknowledged {self.acknowledged}, failed {self.failed}, "
            f"stored {self.stored}, lost {self.lost[:5]}, twice {self.twice[:5]}, "
            f"unread {self.unread[:5]}, read again {self.reread}, "
            f"uncommitted {self.behind}, exit status {self.status}"
        )


class Client:
    """One client that runs."""

    def __init__(self, name: str, servers: str, directory: Path) -> None:
        self.name = name
        self.acknowledged: set[int] = set()
        self.failed: list[str] = []
        self.read: Counter[int] = Counter()
        self.sent: int | None = None
        self._complaints = directory / f"{name}.err"
        command = [*COMMANDS[name](), servers, *IN_BETWEEN.get(name, []), name]
        with self._complaints.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=directory
            )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                return  # killed in the middle of a line
            word, _, rest = line.decode(errors="replace").strip().partition(" ")
            if word == "a":
                self.acknowledged.add(int(rest))
            elif word == "r":
                self.read[int(rest)] += 1
            elif word == "sent":
                self.sent = int(rest)
            else:
                self.failed.append(f"{word} {rest}")

    def order(self) -> None:
        """Have it go on to the next of its ends."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()

    def end(self) -> int | None:
        """End the members; return the exit status, None where it had to be killed."""
        self.order()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(SETTLING_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill()

    def kill(self) -> None:
        """End it, if it has not ended."""
        self.process.kill()
        self.process.wait()
        self._thread.join(10)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def complaints(self) -> str:
        """The end of what it has written to its standard error."""
        return self._complaints.read_text(errors="replace")[-3000:]


@contextlib.contextmanager
def running(names: Sequence[str], servers: str, directory: Path) -> Iterator[dict[str, Client]]:
    """Run clients; what still runs at the end is killed."""
    found: dict[str, Client] = {}
    try:
        for name in names:
            found[name] = Client(name, servers, directory)
        yield found
    finally:
        for client in found.values():
            client.kill()


def accounts_of(
    cluster: Nodes,
    names: Sequence[str],
    directory: Path,
    *,
    seed: int,
    kills: int,
    down_s: tuple[float, float],
    up_s: tuple[float, float],
) -> dict[str, Account]:
    """Have clients produce and consume while nodes are killed; return the account of each.

    `down_s` and `up_s` are the shortest and longest time for which a node is away, and between two kills once
    all replicas are in sync again.
    """
    random = Random(seed)
    with Admin(cluster.servers) as admin:
        for name in names:
            admin.create_topic(name, PARTITIONS, 3, {"min.insync.replicas": "2"})
        with running(names, cluster.servers, directory) as clients:
            for client in clients.values():
                until(
                    lambda client=client: client.acknowledged and client.read,  # type: ignore[misc]
                    f"{client.name} produces and consumes",
                    START_PATIENCE_S,
                )
            order: list[int] = []
            for _ in range(kills):
                order = order or random.sample(list(cluster.nodes), len(cluster.nodes))
                node = order.pop()
                cluster.kill(node)
                time.sleep(random.uniform(*down_s))
                cluster.start(node)
                until(lambda: all_in_sync(admin, names), "all replicas are in sync", SETTLING_PATIENCE_S)
                time.sleep(random.uniform(*up_s))
            for client in clients.values():
                client.order()
            return {name: account_of(cluster, admin, client) for name, client in clients.items()}


def all_in_sync(admin: Admin, names: Sequence[str]) -> bool:
    """Whether every partition has a leader and all replicas in sync."""
    try:
        topics = admin.describe_topics([*names, "__consumer_offsets"])
    except PenstockError:
        return False
    parts = [each for topic in topics for each in topic.partitions]
    return all(each.leader >= 0 and set(each.in_sync_replicas) >= set(each.replicas) for each in parts)


def account_of(cluster: Nodes, admin: Admin, client: Client) -> Account:
    """Wait until a client has settled, or time is up, end it, and compare what it says with the log."""
    deadline = time.monotonic() + SETTLING_PATIENCE_S

    def wait(holds: Callable[[], bool]) -> None:
        while not holds() and time.monotonic() < deadline and client.process.poll() is None:
            time.sleep(0.05)

    wait(lambda: client.sent is not None)
    stored = stored_of(cluster.servers, client.name)
    wait(lambda: client.read.keys() >= stored.keys())
    wait(lambda: behind_of(admin, client.name, sum(stored.values())) == 0)
    account = Account(sent=client.sent or 0, status=client.end())
    account.acknowledged, account.failed = len(client.acknowledged), len(client.failed)
    account.stored = sum(stored.values())
    account.lost = sorted(client.acknowledged - stored.keys())
    account.twice = sorted(number for number, count in stored.items() if count > 1)
    account.unread = sorted(stored.keys() - client.read.keys())
    account.reread = sum(client.read.values()) - len(client.read)
    account.behind = behind_of(admin, client.name, account.stored)
    if not account.is_good:
        print(client.name, *client.failed[:10], client.complaints(), sep="\n")
    return account


def stored_of(servers: str, topic: str) -> Counter[int]:
    """The numbers in a topic, and how often each is there."""
    partitions = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    found: Counter[int] = Counter()
    with Consumer(servers, {"auto.offset.reset": "earliest"}) as consumer:
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            found.update(int(record.value or b"") for record in consumer.poll(200))
    return found


def behind_of(admin: Admin, group: str, stored: int) -> int:
    """How many records a group has not committed, of topics that hold nothing else; all while it has no
    coordinator.
    """
    try:
        offsets = admin.list_group_offsets(group)
    except PenstockError:
        return stored
    return stored - sum(each.offset for tp, each in offsets.items() if tp.topic == group)
