"""Kafka Streams with `group.protocol=streams` counts correctly while brokers die.

There are three brokers and two instances. The group's coordinator and partition leaders are killed in turn.

`make soak` kills more brokers, and also runs the test on three nodes of Apache Kafka 4.3.
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
"""Numbers of active and standby tasks.

Each of three partitions has a task with a window store and one with a store of counts.
"""


class Ours:
    """A Penstock cluster of three brokers, with the interface that the test requires."""

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
    """Return the id of the group's coordinator as the first reachable broker reports it; -1 if none does."""
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
    """Return the id of the broker that leads partition 0 of a topic; -1 while the topic is unavailable."""
    try:
        [described] = admin.describe_topics([topic])
    except PenstockError:
        return -1
    return described.partitions[0].leader


class Run:
    """A test run: two instances count words while brokers are killed."""

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
        """Kill a broker while records are written; start it again after the instances have counted them."""
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
        """Return True if the group is stable, and each task is active at one member and has a standby."""
        [group] = admin.describe_streams_groups([GROUP])
        active = Counter(task for member in group.members for task in member.active_tasks)
        assert set(active.values()) <= {1}, active
        standby = [task for member in group.members for task in member.standby_tasks]
        return group.state == "Stable" and len(active) == TASKS and len(standby) == STANDBY_TASKS

    def _are_stored(self, instances: Sequence[Application]) -> bool:
        """Return True if for each word some instance's store has the last count in the output topic."""
        told = numbers(self._nodes.servers, "counts")
        return all(any(each.ask(word) == told[word] for each in instances) for word in "abc")

    def _wait(self, holds: Callable[[], object], what: str) -> None:
        until(holds, what, PATIENCE_S)


@pytest.fixture
def start() -> Iterator[Start]:
    """Provide a function that starts instances; all of them are killed when the test ends."""
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
