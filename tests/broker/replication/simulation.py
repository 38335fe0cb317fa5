"""A cluster with a simulated network, clock and disks; one seed decides everything that happens.

The nodes are the product's: `ClusterMember`, `MetadataPublisher`, `LocalReplica`, `ReplicaFetcher`, `Quorum`
and the condition under which the gate acknowledges. A world has one queue of events, ordered by time. A
message is an event, and may be lost, delayed or repeated; crashes, torn writes, cut links and pauses are
events, too. All invariants are checked after every event. `python tests/broker/replication/simulation.py
SEED` replays a run and prints its events.
"""

from __future__ import annotations

import heapq
import sys
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from penstock.broker.config.values import BrokerConfig
from penstock.broker.partitions.log_store import MemoryStore
from penstock.broker.partitions.partition import Partition
from penstock.broker.replication.control.authority import RemoteAuthority
from penstock.broker.replication.control.quorum import Quorum
from penstock.broker.replication.gate import WrittenRecords
from penstock.broker.replication.local_replica import replica_of
from penstock.broker.replication.member import ClusterMember
from penstock.broker.replication.metadata_publisher import MetadataPublisher
from penstock.broker.replication.transport.messages import CONTROLLER
from penstock.broker.requests.purgatory import Purgatory
from penstock.clock import ManualClock
from penstock.common.failures import Failures
from penstock.errors import KafkaError
from penstock.log.memory import MemoryLog
from penstock.protocol.message import Message
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.produce_response import PartitionProduceResponse
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.records.batch import encode_batch
from penstock.records.format.batch_header import read_header

TOPIC, TOPIC_ID = "t", bytes(15) + b"\x2a"
NODES = (1, 2, 3)
SESSION_MS, HEARTBEAT_MS, LAG_MS = 500, 100, 400
TRACE_LINES = 60
QUIET_MS = 20_000
LATE_MS = 3_000


class Violation(AssertionError):
    """The error that the simulation raises when an invariant is broken."""


class SimNode:
    """One simulated node. A crash ends its life and a start begins the next one; its disk survives."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world, self.id = world, node_id
        self.store = MemoryStore(node_id, world.clock)
        self.life = 0
        self.member: ClusterMember | None = None
        self.purgatory = Purgatory()
        self.failures = Failures(world.clock.monotonic)
        self.clock = world.clock
        self.paused_until = 0
        self.saved: dict[tuple[str, int], int] = {}
        self._wake_at = float("inf")

    def start(self) -> None:
        world = self.world
        self.life += 1
        self.purgatory = Purgatory()
        self._wake_at = float("inf")
        self.member = member = ClusterMember(
            self.id,
            world,
            world.clock,
            lag_s=LAG_MS / 1000,
            heartbeat_s=HEARTBEAT_MS / 1000,
            incarnation=self.life,
            random=Random(f"{world.seed} {self.id} {self.life}"),
            saved=self.saved,
        )
        self._begin(member)
        member.join({"PLAINTEXT": ("sim", self.id)})
        self.settle()

    def _begin(self, member: ClusterMember) -> None:
        world = self.world
        records, next_batch = world.quorum.everything()
        authority = RemoteAuthority(world.quorum, world, member, len(NODES))
        now_ms = world.clock.now_ms()
        publisher = MetadataPublisher(world.config, self.store, now_ms, member, authority, records)
        member.begin(publisher, self, next_batch)

    def crash(self) -> None:
        if self.member is not None:
            self.member.end()
        self.member = None
        self.life += 1

    @property
    def partition(self) -> Partition | None:
        """The partition in the running node's metadata; None while the node is dead."""
        if self.member is None:
            return None
        return self.member.cluster.topics[TOPIC].partitions[0]

    @property
    def log(self) -> MemoryLog | None:
        """The log on the node's disk, also while the node is dead; None if there is none."""
        return self.store._logs.get((TOPIC_ID, 0))

    def settle(self) -> None:
        """Resume requests that are due, and schedule the next call for the next deadline."""
        now = self.world.clock.monotonic()
        for _ in range(100):
            due = self.purgatory.take_due(now)
            if not due:
                break
            for resume in due:
                resume()
        deadline = self.purgatory.next_deadline()
        if deadline is not None and deadline < self._wake_at - 1e-9:
            self._wake_at = deadline
            life = self.life

            def wake() -> None:
                if self.life == life:
                    self._wake_at = float("inf")
                    self.settle()

            ms = max(0, round(deadline * 1000) - self.world.uptime_ms + 1)
            self.world.after(ms, self.id, wake)


class World:
    """A simulated cluster: its nodes, controller, clock and events. It is also the nodes' transport."""

    pace_ms = 60
    """The maximum time in ms between two batches of the producer."""
    tearing = 0.02
    """The share of writes, from 0 to 1, during which the node dies, so that the write is torn."""
    lateness = 0.0
    """The share of messages, from 0 to 1, that are up to three seconds later than the others."""
    deletions = 0.0
    """The share of producer turns, from 0 to 1, in which records are deleted instead of produced."""

    def __init__(self, seed: int, *, faults: float = 1.0) -> None:
        self.random = Random(seed)
        self.seed = seed
        self.clock = ManualClock(1_000_000)
        self.uptime_ms = 0
        """The simulated time in ms since the start, which `step` advances."""
        self.config = BrokerConfig(self._settings())
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self.events: list[tuple[int, float, int, int | None, Callable[[], None]]] = []
        self._number = 0
        self.cut: set[tuple[int, int]] = set()
        self.loss = self.random.choice((0.0, 0.02, 0.1)) * faults
        self.repetition = self.random.choice((0.0, 0.05)) * faults
        self.delay_ms = self.random.choice((1, 5, 40, 200))
        self.minimum = self.random.choice((1, 2, 2))
        self.quorum = Quorum(MemoryLog(now_ms=0), "sim", self, self.clock, SESSION_MS / 1000, Random(seed))
        self.nodes = {each: self._make_node(each) for each in NODES}
        self._checker = Checker(self)
        self.acked: dict[int, bytes] = {}
        self._waiting: list[tuple[WrittenRecords, PartitionProduceResponse, int, bytes]] = []
        self.deleted_to = 0
        """The offset below which records may have been deleted."""
        self.gone_to = 0
        """The offset below which records must stay deleted: the deletion was acknowledged."""
        self._deleting: list[tuple[Partition, int]] = []
        self._quiet_until = 0
        """The time in ms before which nothing is produced."""
        self._values = 0
        self.steps = 0

    def _settings(self) -> dict[str, str]:
        return {"offsets.topic.num.partitions": "1"}

    def _make_node(self, node_id: int) -> SimNode:
        return SimNode(self, node_id)

    # --- time and messages -------------------------------------------------------------------------------

    def after(self, ms: int, node: int | None, action: Callable[[], None]) -> None:
        """Schedule an action after this number of ms, at a node, or at no particular node for None."""
        self._number += 1
        heapq.heappush(self.events, (self.uptime_ms + ms, self.random.random(), self._number, node, action))

    def send(self, source: int, target: int, message: Any, answered: Callable[[Any], None]) -> None:
        """Carry a message and its answer; each may be lost, delayed or repeated."""
        life = self.life_of(source)

        def answer(response: Any) -> None:
            def deliver() -> None:
                if self.life_of(source) == life:
                    answered(response)

            self._carry(target, source, deliver)

        def receive() -> None:
            if target == CONTROLLER:
                self.quorum.receive(source, message, answer)
            else:
                there = self.nodes[target].member
                if there is not None:
                    there.receive(source, message, answer)

        self._carry(source, target, receive)

    def passes(self, source: int, target: int) -> bool:
        """Return True if messages from one node currently reach another."""
        return (source, target) not in self.cut

    def life_of(self, node: int) -> int:
        """Return the number of a node's current life, which its starts count; 0 for the controller."""
        return 0 if node == CONTROLLER else self.nodes[node].life

    def _carry(self, source: int, target: int, deliver: Callable[[], None]) -> None:
        if (source, target) in self.cut or self.random.random() < self.loss:
            return
        times = 2 if self.random.random() < self.repetition else 1
        for _ in range(times):
            ms = self.random.randint(0, self.delay_ms)
            if self.lateness and self.random.random() < self.lateness:
                ms += self.random.randint(0, LATE_MS)
            self.after(ms, target if target > 0 else None, deliver)

    def step(self) -> None:
        """Let the next event happen, and check the invariants."""
        when, _, _, node, action = heapq.heappop(self.events)
        if when > self.uptime_ms:
            self.clock.advance(when - self.uptime_ms)
            self.uptime_ms = when
        self.steps += 1
        if node is not None:
            there = self.nodes[node]
            if there.paused_until > self.uptime_ms:
                self.after(there.paused_until - self.uptime_ms, node, action)
                return
            action()
            if there.member is not None:
                there.settle()
        else:
            action()
        self._acknowledge()
        self._checker.check()

    def run(self, until_ms: int) -> None:
        """Let all events up to a time happen."""
        while self.events and self.events[0][0] <= until_ms:
            self.step()

    # --- what a cluster lives through --------------------------------------------------------------------

    def begin(self) -> None:
        """Create the topic, and start the nodes."""
        self.quorum.commit(self._topics(), self.clock.now_ms())
        for node in self.nodes.values():
            node.start()
        self.after(SESSION_MS // 8, None, self._expire)
        self.after(5, None, self._produce)
        self.after(7, None, self._consume)

    def _topics(self) -> list[Message]:
        return [
            TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
            ConfigRecord(
                resource_type=2,
                resource_name=TOPIC,
                name="min.insync.replicas",
                value=str(self.minimum),
            ),
            PartitionRecord(
                topic_id=TOPIC_ID,
                partition_id=0,
                replicas=list(NODES),
                isr=list(NODES),
                leader=-1,
                leader_epoch=0,
                partition_epoch=0,
            ),
        ]

    def _expire(self) -> None:
        self.after(SESSION_MS // 8, None, self._expire)
        self.quorum.expire()

    def tell(self, text: str) -> None:
        """Append a line to the trace of the run."""
        self.trace.append(f"{self.uptime_ms:6} {text}")

    def _produce(self) -> None:
        self.after(self.random.randint(1, self.pace_ms), None, self._produce)
        node = self.nodes[self.random.choice(NODES)]
        partition = node.partition
        if partition is None or node.paused_until > self.uptime_ms or not partition.leads:
            return
        if self._quiet_until > self.uptime_ms:
            return
        if self.deletions and self.random.random() < self.deletions:
            self._delete(node, partition)
            return
        self._values += 1
        value = b"%d" % self._values
        count = self.random.choice((1, 1, 2, 5)) if self.deletions else 1  # logs may begin amid a batch
        acks_all = self.random.random() < 0.8
        try:
            base_offset, *_ = partition.append(
                memoryview(bytearray(encode_batch([(None, value, (), 1)] * count))),
                9,
                self.clock.now_ms(),
                acks=-1 if acks_all else 1,
            )
        except KafkaError as error:
            self.tell(f"{node.id} refuses {value!r}: {error.code}")
            return
        self.tell(f"{node.id} appends {value!r} at {base_offset}, epoch {partition.leader_epoch}")
        if self.random.random() < self.tearing:
            assert node.log is not None
            node.log.truncate_to(base_offset)
            self.tell(f"{node.id} dies while it writes: the batch is torn")
            self.kill(node.id)
            return
        if acks_all:
            answer = PartitionProduceResponse(base_offset=base_offset)
            self._waiting.append((WrittenRecords(partition, answer), answer, base_offset, value))
        node.member._node.purgatory.notify(partition, 100)
        node.settle()

    def _delete(self, node: SimNode, partition: Partition) -> None:
        """Delete all committed records, or some of them.

        Nothing is produced for up to 3 s afterwards, so that logs stay empty.
        """
        mark = partition.high_watermark
        offset = mark if self.random.random() < 0.5 else self.random.randint(0, mark)
        self.deleted_to = max(self.deleted_to, offset)
        self._quiet_until = self.uptime_ms + self.random.randint(0, 3000)
        self._deleting.append((partition, partition.delete_records(offset)))
        self.tell(f"{node.id} deletes what is before {offset}, epoch {partition.leader_epoch}")
        node.settle()

    def _acknowledge(self) -> None:
        self._deleting = [each for each in self._deleting if each[0].leads]
        for partition, offset in self._deleting:
            if partition.low_watermark >= offset > self.gone_to:
                self.gone_to = offset
                self.tell(f"the deletion of what is before {offset} is acknowledged")
        if not self._waiting:
            return
        still = []
        for written, answer, offset, value in self._waiting:
            if not written.is_done:
                still.append((written, answer, offset, value))
            elif not answer.error_code:
                self.acked[offset] = value
                self.tell(f"{value!r} at {offset} is acknowledged")
        self._waiting = still

    def _consume(self) -> None:
        self.after(self.random.randint(1, 40), None, self._consume)
        node = self.nodes[self.random.choice(NODES)]
        partition = node.partition
        if partition is None or node.paused_until > self.uptime_ms:
            return
        offset = self.random.randint(0, max(0, partition.reader.end_offset))
        try:
            found = partition.read(offset, 10_000, at_least_one=True).to_bytes()
        except KafkaError:
            return
        self._checker.delivered(found, node.id)

    def kill(self, node: int) -> None:
        """Crash a node, which is started again later; its waiting requests get no answer."""
        there = self.nodes[node]
        partition = there.partition
        self._waiting = [each for each in self._waiting if each[0].partition is not partition]
        self._deleting = [each for each in self._deleting if each[0] is not partition]
        there.crash()
        self.tell(f"{node} is killed")
        self.after(self.random.randint(10, 1500), None, lambda: self._revive(node))

    def _revive(self, node: int) -> None:
        if self.nodes[node].member is None:
            self.tell(f"{node} starts")
            self.nodes[node].start()

    def trouble(self) -> None:
        """Inject a random fault, such as a crash or a cut link."""
        kind, node = self.random.random(), self.random.choice(NODES)
        there = self.nodes[node]
        if kind < 0.35:
            if there.member is not None:
                self.kill(node)
        elif kind < 0.6:
            other = self.random.choice([each for each in (*NODES, CONTROLLER) if each != node])
            links = {(node, other), (other, node)} if self.random.random() < 0.7 else {(node, other)}
            self.cut |= links
            self.tell(f"cut {sorted(links)}")
        elif kind < 0.75:
            self.cut.clear()
            self.tell("all links heal")
        elif kind < 0.9:
            there.paused_until = self.uptime_ms + self.random.randint(50, 1500)
            self.tell(f"{node} is paused until {there.paused_until}")
        elif there.member is not None:
            there.member.save_high_watermarks()

    def heal(self) -> None:
        """End all faults: restore links, resume paused nodes and start dead ones."""
        self.cut.clear()
        self.loss = self.repetition = self.lateness = self.deletions = 0.0
        self.delay_ms = min(self.delay_ms, 40)
        for node in self.nodes.values():
            node.paused_until = 0
            if node.member is None:
                node.start()
        self.tell("healed")


class Checker:
    """The checks of the simulation's invariants, run after each event."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leaders: dict[int, int] = {}
        self._committed: list[Entry] = []
        self._delivered: dict[int, bytes] = {}
        self._settled: dict[int, int] = {}
        self._seen: list[Any] = []

    def fail(self, law: str) -> None:
        world = self._world
        image = world.quorum.image.topics[TOPIC].partitions[0]
        logs = {
            each.id: (each.log.end_offset, records_of(each.log)[-4:], each.log.leader_epochs.entries[-4:])
            for each in world.nodes.values()
            if each.log is not None
        }
        story = "\n".join(world.trace)
        raise Violation(
            f"seed {world.seed}, step {world.steps}: {law}\nleader {image.leader}, epoch {image.leader_epoch}"
            f", {image.replicas}\nends of logs, last records, epochs: {logs}\n{story}"
        )

    def check(self) -> None:
        """Check all invariants on the current state; skip it if nothing has changed since the last check."""
        world = self._world
        image = world.quorum.image.topics[TOPIC].partitions[0]
        replicas = [(each, each.partition) for each in world.nodes.values()]
        seen = [image.leader, image.leader_epoch, image.replicas, len(world.acked)]
        for node, found in replicas:
            log = node.log
            seen.append(None if log is None else log.end_offset)
            seen.append(None if found is None else (found.leads, found.leader_epoch, found.high_watermark))
        if seen == self._seen:
            return
        self._seen = seen
        if image.leader >= 0 and image.leader not in image.replicas.in_sync:
            self.fail("the leader is not in the ISR")
        for node, found in replicas:
            leads = found is not None and found.leads and replica_of(found).followers is not None
            if found is None or not leads:
                continue
            if self._leaders.setdefault(found.leader_epoch, node.id) != node.id:
                self.fail(f"two leaders of epoch {found.leader_epoch}")
        self._agree([(node, found) for node, found in replicas if found is not None])
        for node, found in replicas:
            is_current = found is not None and found.leads and found.leader_epoch == image.leader_epoch
            if found is not None and is_current and image.leader == node.id:
                self._lead(node, found)

    def _agree(self, replicas: list[tuple[SimNode, Partition]]) -> None:
        """Check that any two replicas have equal records below the lower of their high watermarks."""
        logs = [(node, found.high_watermark, records_of(node.log)) for node, found in replicas]
        for number, (node, mark, records) in enumerate(logs):
            if mark > 0 and (node.log is None or mark > node.log.end_offset):
                self.fail(f"the high watermark of {node.id}, {mark}, is behind the end of its log")
            for other, other_mark, others in logs[number + 1 :]:
                common = min(mark, other_mark)
                if are_different(records[:common], others[:common]):
                    self.fail(f"{node.id} and {other.id} differ below {common}")

    def _lead(self, node: SimNode, found: Partition) -> None:
        """Check that the leader has all committed records, and none whose deletion was acknowledged.

        Records below its high watermark are committed from now on.
        """
        records, known = records_of(node.log), len(self._committed)
        if len(records) < known or are_different(records[:known], self._committed):
            self.fail(f"committed records are not in the log of leader {node.id}")
        if None in records[self._world.deleted_to :]:
            self.fail(f"leader {node.id} lacks records that nobody deleted")
        if any(records[: self._world.gone_to]):
            self.fail(f"leader {node.id} has records whose deletion was acknowledged")
        mark = found.high_watermark
        if mark > known:
            self._committed += records[known:mark]
            for offset, record in enumerate(self._committed[known:], known):
                if record is not None and self._delivered.get(offset, record[1]) != record[1]:
                    self.fail(f"offset {offset} was delivered with another record")
        for offset, value in self._world.acked.items():
            # A leader that does not know yet of the next may have acknowledged it: what counts is that all
            # that can lead have it.
            record = records[offset] if offset < len(records) else (-1, b"")
            if record is not None and record[1] != value:
                self.fail(f"{value!r} at {offset} was acknowledged, and leader {node.id} does not have it")
        if replica_of(found).is_settled:
            before = max(self._settled.values(), default=0)
            if mark < before:
                self.fail(f"the high watermark has gone back from {before} to {mark}")
            self._settled[found.leader_epoch] = mark

    def delivered(self, data: bytes, node: int) -> None:
        """Check batches that a node gave to a consumer against earlier deliveries and committed records."""
        for offset, value in records_in(data):
            if self._delivered.setdefault(offset, value) != value:
                self.fail(f"node {node} gave another record at offset {offset} than was given before")
            committed = self._committed[offset] if offset < len(self._committed) else None
            if committed is not None and committed[1] != value:
                self.fail(f"node {node} gave a record at offset {offset} that is not the committed one")


def records_in(data: bytes) -> list[tuple[int, bytes]]:
    """Return the offset and the value of each record in a sequence of batches."""
    found = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        value = value_of(data[position : position + header.size])
        found += [(offset, value) for offset in range(header.base_offset, header.last_offset + 1)]
        position += header.size
    return found


Entry = tuple[int, bytes] | None
"""The leader epoch and the value of a record; None if the record was deleted."""


def records_of(log: MemoryLog | None) -> list[Entry]:
    """Return a list with the entry of each offset in a log."""
    if log is None:
        return []
    found: list[Entry] = [None] * log.end_offset
    for segment in log.segments:
        for batch in segment._batches:  # type: ignore[attr-defined]
            first = int.from_bytes(batch[:8], "big")
            end = first + int.from_bytes(batch[23:27], "big") + 1
            entry = int.from_bytes(batch[12:16], "big", signed=True), value_of(batch)
            for offset in range(max(first, log.start_offset), end):
                found[offset] = entry
    return found


def are_different(some: list[Entry], others: list[Entry]) -> bool:
    """Return True if two logs have different records at an offset that both have."""
    if some == others:
        return False
    pairs = zip(some, others, strict=False)
    return any(one != other for one, other in pairs if one is not None and other is not None)


def value_of(batch: bytes) -> bytes:
    """Return the value of a batch's first record; all records of a batch have equal values."""
    return bytes(batch[67 : 61 + (batch[61] >> 1)])


def run(seed: int, *, troubles: int = 12, trouble_every_ms: int = 700) -> World:
    """Run a simulated cluster with faults, then without, until it has recovered.

    Raises:
        Violation: an invariant was broken, or the cluster has not recovered.
    """
    world = World(seed)
    world.begin()
    world.run(world.random.randint(50, 600))
    for _ in range(troubles):
        world.trouble()
        world.run(world.uptime_ms + world.random.randint(1, trouble_every_ms))
    world.heal()
    deadline = world.uptime_ms + QUIET_MS
    while not is_whole(world):
        if world.uptime_ms > deadline:
            world._checker.fail("the cluster has not recovered")
        world.run(world.uptime_ms + 200)
    before = len(world.acked)
    while len(world.acked) <= before:
        if world.uptime_ms > deadline:
            world._checker.fail("nothing is acknowledged any more")
        world.run(world.uptime_ms + 200)
    return world


def is_whole(world: World) -> bool:
    """Return True if the partition has a leader and all its replicas are in sync."""
    image = world.quorum.image.topics[TOPIC].partitions[0]
    return image.leader >= 0 and set(image.replicas.in_sync) == set(NODES)


def main(run: Callable[[int], World] = run) -> int:
    """Run the seed on the command line, or a range of seeds given as FIRST..LAST; return the exit code."""
    first, _, last = sys.argv[1].partition("..")
    for seed in range(int(first), int(last or first) + 1):
        try:
            world = run(seed)
        except Violation as violation:
            print(violation)
            return 1
        if not last:
            print("\n".join(world.trace), f"\n{world.steps} steps, {len(world.acked)} acknowledged")
    print("no violation")
    return 0


if __name__ == "__main__":
    sys.exit(main())
