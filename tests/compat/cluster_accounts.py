"""Run clients on a cluster whose brokers are killed in turn, and account for each client's records.

Every client is a process of its own, with a producer (acks=all, idempotent) and a group of two members on a
topic of its own. Its arguments are the bootstrap servers and the topic, which names the group as well. It
prints a line for each event: ``a N`` record N has been acknowledged, ``e N ...`` it has failed, ``r N`` a
member has read it, ``sent N`` the producer has ended after N records. A line on standard input ends the
producer. A second line, or the end of the input, ends the group members and the program.

This module works with any cluster that has addresses, and methods to kill and start a node.
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
"""A dict from a client's name to a function that returns the command line of its program."""

IN_BETWEEN = {"sarama": ["cluster"], "franz": ["cluster"]}
"""Arguments between the servers and the topic, for the client programs that have several modes."""


def python_command(kind: str) -> list[str]:
    """Return the command line of one of the Python clients in `cluster_clients.py`."""
    return [sys.executable, str(HERE / "cluster_clients.py"), kind]


class Nodes(Protocol):
    """A cluster whose nodes can be killed and started: what `accounts_of` requires of a cluster."""

    servers: str
    nodes: Sequence[int]

    def kill(self, node: int) -> None:
        """End a node with SIGKILL, or without a clean shutdown where the node is no process of its own."""

    def start(self, node: int) -> None:
        """Start a killed node again, and wait until it answers."""


@dataclass
class Account:
    """The outcome of one client's records: how many were sent, stored, lost, duplicated or not read."""

    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    stored: int = 0
    lost: list[int] = field(default_factory=list)
    """Records that were acknowledged but are not in the log."""
    twice: list[int] = field(default_factory=list)
    """Records that are in the log more than once."""
    unread: list[int] = field(default_factory=list)
    """Records that are in the log but that the group never read."""
    reread: int = 0
    """The number of times that the group read a record again because its offset was not committed."""
    behind: int = 0
    """The group's lag: the number of records behind its committed offsets."""
    status: int | None = None

    @property
    def is_good(self) -> bool:
        """True if no record is lost, duplicated, unread or uncommitted, and the program exited with 0."""
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
    """A running client program, with the events that it has printed so far."""

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
        """Send the program a line of input: the first ends its producer, the second its group members."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()

    def end(self) -> int | None:
        """End the group members; return the program's exit status, or None if it had to be killed."""
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
        """Kill the program if it is still running, and close its pipes."""
        self.process.kill()
        self.process.wait()
        self._thread.join(10)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def complaints(self) -> str:
        """Return the last 3,000 characters that the program wrote to its standard error."""
        return self._complaints.read_text(errors="replace")[-3000:]


@contextlib.contextmanager
def running(names: Sequence[str], servers: str, directory: Path) -> Iterator[dict[str, Client]]:
    """Run client programs for a ``with`` block; kill those that still run at its end."""
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
    """Run clients while nodes of the cluster are killed; return an `Account` for each client name.

    `down_s` is the range, in seconds, from which the time that a node stays down is drawn. `up_s` is the
    range of the pause before the next kill, once all replicas are in sync again.
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
    """Return True if every partition has a leader and all of its replicas are in sync."""
    try:
        topics = admin.describe_topics([*names, "__consumer_offsets"])
    except PenstockError:
        return False
    parts = [each for topic in topics for each in topic.partitions]
    return all(each.leader >= 0 and set(each.in_sync_replicas) >= set(each.replicas) for each in parts)


def account_of(cluster: Nodes, admin: Admin, client: Client) -> Account:
    """Wait until a client has read and committed everything, end it, and compare its output with the log.

    The wait ends early after `SETTLING_PATIENCE_S` seconds, or when the program exits.
    """
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
    """Count how often each number is stored in a topic."""
    partitions = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    found: Counter[int] = Counter()
    with Consumer(servers, {"auto.offset.reset": "earliest"}) as consumer:
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            found.update(int(record.value or b"") for record in consumer.poll(200))
    return found


def behind_of(admin: Admin, group: str, stored: int) -> int:
    """Return how many of a topic's `stored` records a group has not committed.

    While the group has no coordinator, all records count as not committed.
    """
    try:
        offsets = admin.list_group_offsets(group)
    except PenstockError:
        return stored
    return stored - sum(each.offset for tp, each in offsets.items() if tp.topic == group)
