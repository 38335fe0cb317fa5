"""A simulated cluster whose nodes also coordinate groups and transactions for simulated clients.

Each client has one connection. A request may be lost, delayed, or carried out without an answer; it is never
repeated automatically. A client gives a connection up only if it has no request in flight on it. `python
tests/broker/replication/coordination.py SEED` replays a run.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from unittest import mock

from broker.replication.simulation import NODES, QUIET_MS, SimNode, Violation, World, main
from penstock.broker.context import Context
from penstock.broker.interceptors import Stage
from penstock.broker.node import Node
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.broker.replication.control.authority import RemoteAuthority
from penstock.broker.replication.control.forwarding import Forwarding
from penstock.broker.replication.coordinators import ClusterCoordinators
from penstock.broker.replication.gate import ReplicationGate
from penstock.broker.replication.member import ClusterMember
from penstock.broker.replication.metadata_publisher import MetadataPublisher
from penstock.broker.requests.purgatory import Wait
from penstock.broker.session import Session
from penstock.common.failures import Failures
from penstock.common.java_hash import partition_of
from penstock.protocol.message import Message
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.topic_record import TopicRecord

OUT, PARTITIONS = "out", 2
TOPICS = {
    OUT: bytes(15) + b"\x2b",
    OFFSETS_TOPIC: bytes(15) + b"\x2c",
    TRANSACTIONS_TOPIC: bytes(15) + b"\x2d",
}
"""A dict from topic name to topic id; each topic has `PARTITIONS` partitions.

The topic of the plain simulation exists besides these.
"""

SETTINGS = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "transaction.state.log.num.partitions": str(PARTITIONS),
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}

ANSWER_MS = 700
"""The time in ms for which a client waits for an answer before it gives up its connection."""

Script: TypeAlias = Generator[Any, Any, None]
"""A generator with the behavior of a client.

It yields either a pause in ms, or a node, a request and its version. It is sent the response, or None if
there is none.
"""


class Raising(Failures):
    """A replacement for `Failures` that raises each exception that a node would catch and count.

    Without it an error in the product could go unnoticed in the simulation.
    """

    def caught(self, component: str, context: str, error: BaseException | None = None) -> None:
        error = error or sys.exc_info()[1]
        raise Violation(f"{component}: {context}: {error!r}") from error


class CoordinatedNode(SimNode):
    """A simulated node with request handlers, coordinators and the replication gate."""

    world: CoordinatedWorld
    node: Node
    authority: RemoteAuthority

    def _begin(self, member: ClusterMember) -> None:
        world = self.world
        records, next_batch = world.quorum.everything()
        self.authority = authority = RemoteAuthority(world.quorum, world, member, len(NODES))
        now_ms = world.clock.now_ms()
        publisher = MetadataPublisher(world.config, self.store, now_ms, member, authority, records)
        self.node = node = Node(world.config, self.store, world.clock, (), publisher.cluster)
        self.purgatory = node.purgatory
        node.failures = Raising(world.clock.monotonic)
        node.membership = member.moves = ClusterCoordinators(node, member, world)
        member.begin(publisher, node, next_batch)
        node.interceptors.set(Stage.FORWARDING, Forwarding(authority).intercept)
        node.interceptors.set(Stage.REPLICATION, ReplicationGate(member, selects_by_rack=False).intercept)

    def handle(self, request: Any, version: int, connection: int, answered: Callable[[Any], None]) -> None:
        """Handle a request; `answered` gets the response, at once or later before the node's next crash."""
        node, life = self.node, self.life
        context: Context[Any] = Context(node, Session(connection, "sim", ("sim", self.id)))
        route = node.router.find(request.API_KEY, version)
        context.version = version
        context.arrived = node.clock.monotonic()

        def go_on(call: Callable[[], Any]) -> None:
            if self.life != life:
                return
            context.now_ms, context.now = node.clock.now_ms(), node.clock.monotonic()
            outcome = call()
            if type(outcome) is Wait:
                later = outcome.answer or (lambda: route.handle(request, context))
                node.purgatory.park(outcome, lambda: go_on(later))
            else:
                answered(outcome)

        go_on(lambda: route.handle(request, context))


class Client:
    """A simulated client that follows a script and has one request in flight at a time."""

    def __init__(self, world: CoordinatedWorld, name: str, script: Script) -> None:
        self.world, self.name = world, name
        self._script = script
        self._number = 0
        self.is_done = False

    def go_on(self, answer: Any = None) -> None:
        """Resume the script with an answer, and carry out its next step."""
        try:
            step = self._script.send(answer)
        except StopIteration:
            self.is_done = True
            return
        self._number += 1
        if isinstance(step, int):
            self.world.after(step, None, self._if_current(lambda: self.go_on()))
            return
        node, request, version = step
        self.world.after(ANSWER_MS, None, self._if_current(lambda: self.go_on()))
        self.world.ask(self, node, request, version, self._number)

    def _if_current(self, action: Callable[[], None]) -> Callable[[], None]:
        number = self._number

        def run() -> None:
            if self._number == number:
                action()

        return run

    def has_under_way(self, number: int) -> bool:
        """Return True if the client still waits for the request with this number."""
        return self._number == number


class CoordinatedWorld(World):
    """A simulated cluster with coordinators and clients."""

    pace_ms = 300

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.clients: list[Client] = []
        self._connections = itertools.count(1)

    def _settings(self) -> dict[str, str]:
        return SETTINGS

    def _make_node(self, node_id: int) -> SimNode:
        return CoordinatedNode(self, node_id)

    def _topics(self) -> list[Message]:
        records = super()._topics()
        for name, topic_id in TOPICS.items():
            records.append(TopicRecord(name=name, topic_id=topic_id))
            records.append(
                ConfigRecord(resource_type=2, resource_name=name, name="min.insync.replicas", value="2")
            )
            for index in range(PARTITIONS):
                replicas = [*NODES[index:], *NODES[:index]]
                records.append(
                    PartitionRecord(
                        topic_id=topic_id,
                        partition_id=index,
                        replicas=replicas,
                        isr=replicas,
                        leader=-1,
                        leader_epoch=0,
                        partition_epoch=0,
                    )
                )
        return records

    def add(self, name: str, script: Script) -> None:
        """Add a client with a script, which starts within 50 ms."""
        client = Client(self, name, script)
        self.clients.append(client)
        self.after(self.random.randint(1, 50), None, client.go_on)

    def ask(self, client: Client, node: int, request: Any, version: int, number: int) -> None:
        """Carry a client's request to a node, and the response back; each may be lost."""
        delay = self.random.randint(0, min(self.delay_ms, 60))
        if self.random.random() < self.loss:
            return

        def receive() -> None:
            there = self.nodes[node]
            if there.member is None or not client.has_under_way(number):
                return
            assert isinstance(there, CoordinatedNode)
            there.handle(request, version, next(self._connections), answer)

        def answer(response: Any) -> None:
            if self.random.random() < self.loss:
                return

            def deliver() -> None:
                if client.has_under_way(number):
                    client.go_on(response)

            self.after(self.random.randint(0, min(self.delay_ms, 60)), None, deliver)

        self.after(delay, node, receive)

    def leader(self, topic: str, index: int) -> int:
        """Return the leader of a partition in a random node's metadata.

        If that node has none, or is dead, return a random node.
        """
        there = self.nodes[self.random.choice(NODES)]
        if there.member is not None:
            leader = there.member.cluster.topics[topic].partitions[index].leader
            if leader > 0:
                return leader
        return self.random.choice(NODES)

    def coordinator(self, topic: str, key: str) -> int:
        """Return a node that may be the coordinator of a group or a transactional id."""
        return self.leader(topic, partition_of(key, PARTITIONS))

    def reach(self, source: int, target: int) -> Node | None:
        """Return the node `target`, or None if `source` cannot reach it now."""
        there = self.nodes.get(target)
        is_cut = (source, target) in self.cut or (target, source) in self.cut
        if there is None or there.member is None or is_cut or there.paused_until > self.uptime_ms:
            return None
        assert isinstance(there, CoordinatedNode)
        return there.node

    def heal(self) -> None:
        self.tearing = 0.0
        super().heal()

    @property
    def leading(self) -> dict[int, CoordinatedNode | None]:
        """A dict from each partition of topic `OUT` to its leader; None if the leader is dead."""
        found: dict[int, CoordinatedNode | None] = {}
        for index, image in enumerate(self.quorum.image.topics[OUT].partitions):
            there = self.nodes.get(image.leader)
            found[index] = there if isinstance(there, CoordinatedNode) and there.member is not None else None
        return found

    @property
    def out_of_sync(self) -> list[str]:
        """A line for each partition without a leader or with replicas that are not in sync."""
        return [
            f"{name}-{each.index} ({each.leader}, {each.replicas.in_sync})"
            for name, topic in self.quorum.image.topics.items()
            for each in topic.partitions
            if each.leader < 0 or set(each.replicas.in_sync) != set(NODES)
        ]


@contextmanager
def _quiet() -> Iterator[None]:
    """Turn off logging for the length of a block: dying nodes log much, which would take most of the time."""
    logger = logging.getLogger("penstock")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def run(seed: int, *, troubles: int = 10, trouble_every_ms: int = 700) -> CoordinatedWorld:
    """Run a simulated cluster with faults, then without, until all its clients have finished.

    Raises:
        Violation: an invariant was broken, or the cluster has not recovered.
    """
    from broker.replication.coordination_laws import Laws

    world = CoordinatedWorld(seed)
    laws = Laws(world)
    with (
        mock.patch("penstock.broker.groups.service._new_member_id", side_effect=laws.new_member_id),
        _quiet(),
    ):
        world.begin()
        laws.begin()
        world.run(world.random.randint(50, 600))
        for _ in range(troubles):
            world.trouble()
            world.run(world.uptime_ms + world.random.randint(1, trouble_every_ms))
        world.heal()
        deadline = world.uptime_ms + QUIET_MS
        laws.end_soon()
        while world.out_of_sync or not all(each.is_done for each in world.clients):
            if world.uptime_ms > deadline:
                busy = [each.name for each in world.clients if not each.is_done]
                world._checker.fail(f"not recovered; at work are {busy}, {world.out_of_sync} are not in sync")
            world.run(world.uptime_ms + 200)
        laws.check_end()
    return world


if __name__ == "__main__":
    from broker.replication import coordination  # not this copy of it: laws compare classes

    sys.exit(main(coordination.run))
