"""The targets of test histories: one broker, three brokers, three nodes of Apache Kafka, and their faults."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from compat.kafka_cluster import KafkaCluster as ApacheKafka
from penstock import Admin
from penstock.testing import KafkaBroker, KafkaCluster

Trouble = Callable[[random.Random], str]
"""A function that injects a fault, removes it again, and returns the fault's name."""

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
HELD_S = (0.3, 3.0)
"""The shortest and the longest duration of a pause or of a network failure, in seconds."""
NODE_PATIENCE_S = 1800.0
"""The time in which a node of Apache Kafka must have restarted, in seconds.

It is long because histories run at low priority.
"""
CALM_S = (0.5, 3.0)
"""The default for the shortest and the longest time between two faults, in seconds."""


class Target:
    """Running brokers, and the faults that can be injected into them."""

    def __init__(self, servers: str, replicas: int, troubles: list[Trouble]) -> None:
        self.servers, self.replicas, self._troubles = servers, replicas, troubles
        self.happened: list[str] = []
        self.error: BaseException | None = None
        """The exception that ended the faults early, such as a failed restart; None without one."""

    def add(self, trouble: Trouble) -> None:
        """Add a fault that the clients inject, such as the deletion of records."""
        self._troubles.append(trouble)

    def create_topic(self, name: str, partitions: int) -> None:
        with Admin(self.servers) as admin:
            config = {"min.insync.replicas": "2"} if self.replicas > 1 else {}
            admin.create_topic(name, partitions, replication_factor=self.replicas, config=config)

    def trouble(
        self, rng: random.Random, stopping: threading.Event, calm_s: tuple[float, float] = CALM_S
    ) -> None:
        """Inject random faults, with a random time between them, until `stopping` is set."""
        try:
            while not stopping.wait(rng.uniform(*calm_s)):
                self.happened.append(rng.choice(self._troubles)(rng))
        except BaseException as error:  # pytest.fail of a node that does not start is no Exception
            self.error = error
            stopping.set()


def _hold(rng: random.Random) -> None:
    time.sleep(rng.uniform(*HELD_S))


@contextlib.contextmanager
def one_broker(directory: Path) -> Iterator[Target]:
    """Start one Penstock broker with its data on disk, and yield it with its faults."""
    with KafkaBroker(directory, config=SETTINGS) as broker:

        def kill(rng: random.Random) -> str:
            broker.restart(kill=True)
            return "killed"

        def pause(rng: random.Random) -> str:
            with broker.paused():
                _hold(rng)
            return "paused"

        def cut(rng: random.Random) -> str:
            for api in ("Produce", "Fetch", "EndTxn", "AddPartitionsToTxn"):
                broker.faults.close(api, times=3, applied=rng.random() < 0.5, reset=rng.random() < 0.5)
            _hold(rng)
            broker.faults.clear()
            return "connections cut"

        yield Target(broker.bootstrap_servers, 1, [kill, pause, cut])


@contextlib.contextmanager
def our_cluster(directory: Path) -> Iterator[Target]:
    """Start three Penstock brokers with their data on disk, and yield them with their faults."""
    with KafkaCluster(3, directory, config=SETTINGS) as cluster:

        def kill(rng: random.Random) -> str:
            node = rng.choice(cluster.node_ids)
            cluster.kill(node)
            _hold(rng)
            cluster.start(node)
            return "killed"

        def pause(rng: random.Random) -> str:
            with cluster.paused(rng.choice(cluster.node_ids)):
                _hold(rng)
            return "paused"

        def cut(rng: random.Random) -> str:
            node = rng.choice(cluster.node_ids)
            rng.choice([cluster.cut_off, cluster.cut_from_controller, cluster.cut_from_clients])(node)
            _hold(rng)
            cluster.heal()
            return "cut off"

        yield Target(cluster.bootstrap_servers, 3, [kill, pause, cut])


@contextlib.contextmanager
def apache_kafka(directory: Path) -> Iterator[Target]:
    """Start three nodes of Apache Kafka, each broker and controller; yield them with their faults."""
    settings = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
        # Three JVMs on a busy machine: with less, the controllers elect one another without end.
        "controller.quorum.election.timeout.ms": 3000,
        "controller.quorum.fetch.timeout.ms": 5000,
        "broker.session.timeout.ms": 9000,
        "broker.heartbeat.interval.ms": 1000,
        "initial.broker.registration.timeout.ms": 600_000,
    }
    with ApacheKafka(
        "4.3.0", directory, heap_mb=384, settings=settings, patience_s=NODE_PATIENCE_S
    ) as cluster:

        def kill(rng: random.Random) -> str:
            node = rng.choice(cluster.nodes)
            cluster.kill(node)
            _hold(rng)
            cluster.start(node)
            return "killed"

        def pause(rng: random.Random) -> str:
            node = rng.choice(cluster.nodes)
            cluster.signal(node, signal.SIGSTOP)
            _hold(rng)
            cluster.signal(node, signal.SIGCONT)
            return "paused"

        yield Target(cluster.servers, 3, [kill, pause])


TARGETS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Target]]] = {
    "broker": one_broker,
    "cluster": our_cluster,
    "kafka": apache_kafka,
}
