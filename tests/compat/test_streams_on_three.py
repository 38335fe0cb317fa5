"""Kafka Streams with `group.protocol=streams` on three brokers, of which the coordinator of the group and the
leaders of partitions die in turn: what two instances have counted is the truth.

With `make soak` through more deaths, and on three nodes of Apache Kafka 4.3 as on ours.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random

import pytest

from broker.wire_client import WireClient
from compat.cluster_accounts import Nodes, all_in_sync
from compat.kafka_cluster import KafkaCluster as ApacheCluster
from compat.peers import until
from compat.streams_application import (
    BEGIN_MS,
    BY_STREAMS_GROUPS,
    GROUP_SETTINGS,
    PATIENT,
    STEP_MS,
    WINDOW_MS,
    Application,
    Start,
    Writer,
    has_all,
    numbers,
    read,
    starting,
)
from penstock import Admin
from penstock.errors import PenstockError
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.testing import KafkaCluster

pytestmark = [pytest.mark.compat, pytest.mark.timeout(1800)]

GROUP = "moved"
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"
SETTINGS = {
    **GROUP_SETTINGS,
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "num.partitions": "3",
}
PATIENCE_S = 400.0
INTERNAL = (f"{GROUP}-words-repartition", f"{GROUP}-counts-changelog", f"{GROUP}-windows-changelog")
KEYS = 9
TASKS, STANDBY_TASKS = 6, 6
"""Three partitions of lines and three of words, each with a store: windows or counts."""


class Ours:
    """Three brokers of ours, as the test takes them."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.servers = cluster.bootstrap_servers
        self.nodes: Sequence[int] = cluster.node_ids
        self.kill = cluster.kill
        self.start = cluster.start


@contextmanager
def our_nodes(directory: Path) -> Iterator[Nodes]:
    with KafkaCluster(3, directory, config=SETTINGS) as cluster:
        yield Ours(cluster)


@contextmanager
def apache_nodes(directory: Path) -> Iterator[Nodes]:
    with ApacheCluster("4.3.0", directory, heap_mb=384, settings=SETTINGS) as cluster:
        yield cluster


def coordinator(nodes: Nodes) -> int:
    """The id of the broker that coordinates the group, from whichever broker answers."""
    for address in nodes.servers.split(","):
        try:
            with WireClient(int(address.rpartition(":")[2])) as client:
                request = FindCoordinatorRequest(coordinator_keys=[GROUP])
                [found] = client.ask(request, 4).coordinators
        except (OSError, EOFError):
            continue
        if found.error_code == 0:
            return int(found.node_id)
    return -1


def leader(admin: Admin, topic: str) -> int:
    """The id of the broker that leads partition 0 of a topic."""
    try:
        [described] = admin.describe_topics([topic])
    except PenstockError:
        return -1
    return described.partitions[0].leader


class Run:
    """Two instances that count while brokers die."""

    def __init__(self, nodes: Nodes, start: Start, directory: Path, guarantee: str, seed: int) -> None:
        self._nodes, self._guarantee = nodes, guarantee
        self._dice = Random(seed)
        self._start, self._directory = start, directory
        self._writer = Writer(nodes.servers)

    def go(self, deaths: int, lines: int) -> None:
        writer = self._writer
        writer.prepare()
        words = (*BY_STREAMS_GROUPS, f"processing.guarantee={self._guarantee}", *PATIENT)
        with Admin(self._nodes.servers) as admin:
            admin.alter_config(group=GROUP, set={"streams.num.standby.replicas": "1"})
            writer.write(lines)
            both = [
                self._start(self._nodes.servers, GROUP, self._directory / name, *words, *more)
                for name, more in (("first", ()), ("second", ("num.stream.threads=2",)))
            ]
            self._wait(lambda: all(each.is_running for each in both), "both instances")
            targets: list[Callable[[], int]] = [
                lambda: coordinator(self._nodes),
                lambda: leader(admin, "lines"),
                lambda: leader(admin, INTERNAL[1]),
            ]
            for number in range(deaths):
                self._die(admin, targets[number % len(targets)], lines)
            self._wait(lambda: set(read(self._nodes.servers, "named")) == writer.named, "the names")
            # A window ends with the first line of its partition behind it.
            until_ms = writer.count * STEP_MS // WINDOW_MS * WINDOW_MS
            windows = Counter(
                f"key {each % KEYS}@{BEGIN_MS + each * STEP_MS // WINDOW_MS * WINDOW_MS}"
                for each in range(until_ms // STEP_MS)
            )
            self._wait(lambda: self._is("windows", windows), "the windows")
            self._wait(lambda: all(each.is_running for each in both), "both instances, still")
            self._wait(lambda: self._is_shared(admin), "every task, once")
            self._wait(lambda: self._are_stored(both), "the stores and what they have told")
        for each in both:
            each.close()
        assert self._is("counts", writer.words)

    def _die(self, admin: Admin, victim: Callable[[], int], lines: int) -> None:
        """Kill a broker while records come; the others have to count them before it is there again."""
        found = [-1]

        def is_found() -> bool:
            found[0] = victim()
            return found[0] >= 0

        self._wait(is_found, "somebody leads")
        node = self._nodes.nodes[found[0] - 1]
        self._writer.write(lines // 2)
        time.sleep(self._dice.uniform(0, 0.3))
        self._nodes.kill(node)
        self._writer.write(lines - lines // 2)
        self._wait(lambda: self._is("counts", self._writer.words), "the counts, without one broker")
        self._nodes.start(node)
        topics = ("lines", "counts", *INTERNAL)
        self._wait(lambda: all_in_sync(admin, topics), "all replicas are in sync")

    def _is(self, topic: str, wanted: Counter[str]) -> bool:
        found = numbers(self._nodes.servers, topic)
        return found == dict(wanted) if self._guarantee == EXACTLY_ONCE else has_all(found, wanted)

    def _is_shared(self, admin: Admin) -> bool:
        """Whether every task is active at one member, and in standby at another instance."""
        [group] = admin.describe_streams_groups([GROUP])
        active = Counter(task for member in group.members for task in member.active_tasks)
        assert set(active.values()) <= {1}, active
        standby = [task for member in group.members for task in member.standby_tasks]
        return group.state == "Stable" and len(active) == TASKS and len(standby) == STANDBY_TASKS

    def _are_stored(self, instances: Sequence[Application]) -> bool:
        """Whether some instance has each word with the last count that was told."""
        told = numbers(self._nodes.servers, "counts")
        return all(any(each.ask(word) == told[word] for each in instances) for word in "abc")

    def _wait(self, holds: Callable[[], object], what: str) -> None:
        until(holds, what, PATIENCE_S)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start instances; all end with the test."""
    with starting() as started:
        yield started


def test_the_coordinator_dies_while_two_instances_count(start: Start, tmp_path: Path) -> None:
    with our_nodes(tmp_path / "nodes") as nodes:
        Run(nodes, start, tmp_path, EXACTLY_ONCE, seed=1).go(deaths=1, lines=300)


@pytest.mark.soak
@pytest.mark.parametrize("guarantee", [EXACTLY_ONCE, AT_LEAST_ONCE])
@pytest.mark.parametrize("nodes", [our_nodes, apache_nodes])
def test_brokers_die_in_turn(
    nodes: Callable[[Path], AbstractContextManager[Nodes]], guarantee: str, start: Start, tmp_path: Path
) -> None:
    with nodes(tmp_path / "nodes") as found:
        Run(found, start, tmp_path, guarantee, seed=2).go(deaths=6, lines=300)
