"""A model of Kafka's transactions and of Spark's batches, for tests of the exactly-once sink.

Every call to the model's cluster waits twice: before it takes effect and before its response arrives. A
seeded scheduler decides which waiting call continues. It may delay a call for any time, or kill its task, so
that a crash can fall between any two steps. A delayed task continues later, as a zombie.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import PenstockError
from penstock.spark.exactly_once.decision import Decision, Ranges, SinkState, TaskTransaction, TopicIds
from penstock.spark.exactly_once.driver import SinkDriver
from penstock.spark.exactly_once.settlement import TransactionFate

PARTITIONS = 3
TASKS = 3


class FencedError(PenstockError):
    """The model's error for a producer that another one with its transactional id has fenced."""


@dataclass
class Entry:
    """A record or a transaction marker in a partition of the model."""

    producer: tuple[int, int]
    row: Any = None
    marker: str | None = None


@dataclass
class Producer:
    """The state of a transactional id at the model's coordinator."""

    producer_id: int
    epoch: int = -1
    state: str = "Empty"
    partitions: set[int] = field(default_factory=set)


class World:
    """The state of the model: its partitions, its transactions, Spark's checkpoint and the scheduler."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.log: dict[int, list[Entry]] = {p: [] for p in range(PARTITIONS)}
        self.starts = dict.fromkeys(range(PARTITIONS), 0)
        self.ids: dict[str, Producer] = {}
        self.store: list[Decision | int] = []
        self.offset_log: set[int] = set()
        self.commit_log: set[int] = set()
        self.is_faulty = True
        self.timeouts = self.copies = self.rolled_forward = 0
        self._turns: list[asyncio.Future[None]] = []

    # -- the schedule

    async def turn(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._turns.append(future)
        await future

    async def schedule(self) -> None:
        """Let waiting calls continue in random order until the task is cancelled."""
        while True:
            await asyncio.sleep(0)
            self._turns = [each for each in self._turns if not each.done()]
            if not self._turns:
                continue
            if self.is_faulty and self.dice.random() < 0.01:
                self.time_out()
            self._turns.pop(self.dice.randrange(len(self._turns))).set_result(None)

    # -- transactions

    def initialize(self, name: str) -> tuple[int, int]:
        producer = self.ids.setdefault(name, Producer(len(self.ids)))
        self.close(producer, "abort", producer.epoch + 1)
        producer.epoch += 1
        producer.state = "Empty"
        return producer.producer_id, producer.epoch

    def close(self, producer: Producer, marker: str, epoch: int) -> None:
        if producer.state != "Ongoing":
            return
        for partition in sorted(producer.partitions):
            self.log[partition].append(Entry((producer.producer_id, epoch), marker=marker))
        producer.partitions.clear()
        producer.state = "CompleteCommit" if marker == "commit" else "CompleteAbort"
        producer.epoch = epoch

    def produce(self, name: str, owner: tuple[int, int], partition: int, row: Any) -> int:
        producer = self.ids[name]
        if (producer.producer_id, producer.epoch) != owner or producer.state.startswith("Complete"):
            raise FencedError("fenced")
        producer.state = "Ongoing"
        producer.partitions.add(partition)
        self.log[partition].append(Entry(owner, row))
        return len(self.log[partition]) - 1

    def end(self, transaction: TaskTransaction, verdict: str) -> bool:
        """Run EndTxn with the rules of KIP-890; return True if its error code is 0."""
        producer = self.ids[transaction.transactional_id]
        if producer.producer_id != transaction.producer_id:
            return False
        if producer.epoch == transaction.epoch and producer.state == "Ongoing":
            self.close(producer, verdict, producer.epoch + 1)
            return True
        wanted = "CompleteCommit" if verdict == "commit" else "CompleteAbort"
        return producer.epoch == transaction.epoch + 1 and producer.state == wanted

    def time_out(self) -> None:
        open_ones = [each for each in self.ids.values() if each.state == "Ongoing"]
        if open_ones:
            producer = self.dice.choice(open_ones)
            self.close(producer, "abort", producer.epoch + 1)
            self.timeouts += 1

    def outcome(self, partition: int, offset: int) -> str | None:
        """Return "commit" or "abort" for a record, or None while its transaction is open."""
        producer_id = self.log[partition][offset].producer[0]
        for entry in self.log[partition][offset:]:
            if entry.marker is not None and entry.producer[0] == producer_id:
                return entry.marker
        return None

    def visible(self) -> list[Any]:
        """Return the rows that a read_committed consumer finds."""
        return [
            entry.row
            for partition, entries in self.log.items()
            for offset, entry in enumerate(entries)
            if entry.marker is None and self.outcome(partition, offset) == "commit"
        ]


class ModelCluster:
    """The model's implementation of the calls that a sink's driver makes to a Kafka cluster."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.epoch = -1
        self.sequence = 0

    async def take_over(self) -> SinkState:
        await self.world.turn()
        self.epoch = self.world.initialize("driver")[1]
        state = SinkState()
        for each in self.world.store:
            state = state.with_finished(each) if isinstance(each, int) else state.with_decision(each)
        await self.world.turn()
        return state

    async def decide(self, decision: Decision) -> None:
        await self.world.turn()
        if self.world.ids["driver"].epoch != self.epoch:
            raise FencedError("another driver has taken over")
        self.world.store.append(Decision.from_bytes(decision.to_bytes()))
        await self.world.turn()

    async def finish(self, batch: int) -> None:
        await self.world.turn()
        self.world.store.append(batch)
        await self.world.turn()

    async def end(self, transaction: TaskTransaction, *, is_commit: bool) -> TransactionFate:
        await self.world.turn()
        is_done = self.world.end(transaction, "commit" if is_commit else "abort")
        await self.world.turn()
        return TransactionFate.COMMITTED if is_done else TransactionFate.UNCLEAR

    async def inspect(
        self, transactions: Collection[TaskTransaction], ranges: Ranges
    ) -> Mapping[TaskTransaction, TransactionFate]:
        await self.world.turn()
        fates = {each: self._fate(each, ranges) for each in transactions}
        await self.world.turn()
        return fates

    def _fate(self, transaction: TaskTransaction, ranges: Ranges) -> TransactionFate:
        for partition, offset in self._records(transaction, ranges):
            if offset < self.world.starts[partition]:
                return TransactionFate.LOST
            outcome = self.world.outcome(partition, offset)
            if outcome is not None:
                return TransactionFate.COMMITTED if outcome == "commit" else TransactionFate.ABORTED
        return TransactionFate.UNCLEAR

    def _records(self, transaction: TaskTransaction, ranges: Ranges) -> list[tuple[int, int]]:
        return [
            (partition, offset)
            for partition, (first, end) in ranges["topic"].items()
            for offset in range(first, end)
            if self.world.log[partition][offset].producer == transaction[1:]
            and self.world.log[partition][offset].marker is None
        ]

    async def copy(
        self, transactions: Collection[TaskTransaction], ranges: Ranges
    ) -> tuple[TaskTransaction, Ranges, TopicIds]:
        self.world.copies += 1
        await self.world.turn()
        owner = self.world.initialize("copy")
        spans: dict[int, tuple[int, int]] = {}
        for each in transactions:
            for partition, offset in self._records(each, ranges):
                await self.world.turn()
                at = self.world.produce("copy", owner, partition, self.world.log[partition][offset].row)
                spans[partition] = (min(at, spans.get(partition, (at, 0))[0]), at + 1)
        await self.world.turn()
        return TaskTransaction("copy", *owner), {"topic": spans}, frozenset()

    async def replaced(self, topic_ids: TopicIds) -> Collection[str]:
        await self.world.turn()
        return ()

    async def open_ids(self) -> Collection[str]:
        await self.world.turn()
        found = [n for n, each in self.world.ids.items() if each.state == "Ongoing" and n.startswith("task")]
        await self.world.turn()
        return found

    async def fence(self, transactional_id: str) -> None:
        await self.world.turn()
        self.world.initialize(transactional_id)
        await self.world.turn()


class AttemptFailed(PenstockError):
    """The model's error for a task whose executor died."""


async def attempt(
    world: World, batch: int, task: int, number: int, rows: list[Any]
) -> tuple[TaskTransaction | None, Ranges]:
    """Run a task attempt: write rows in a transaction of its own, and leave the transaction open."""
    spans: dict[int, tuple[int, int]] = {}
    owner = None
    name = ""
    for generation in range(4):
        name = f"task-{batch % 2}-{task}-{number}-{generation}"
        known = world.ids.get(name)
        await world.turn()
        if known is None or known.state != "Ongoing":
            break
    for row in rows:
        if owner is None:
            await world.turn()
            owner = world.initialize(name)
        await world.turn()
        if world.is_faulty and world.dice.random() < 0.02:
            raise AttemptFailed("an executor died")
        partition = world.dice.randrange(PARTITIONS)
        at = world.produce(name, owner, partition, row)
        spans[partition] = (min(at, spans.get(partition, (at, 0))[0]), at + 1)
    await world.turn()
    return (TaskTransaction(name, *owner) if owner else None), {"topic": spans}


def rows_of(batch: int) -> list[tuple[int, int]]:
    """Return the rows of a batch, which are equal in every run."""
    return [(batch, number) for number in range((batch * 5) % 7)]


async def run_query(world: World, batches: int) -> None:
    """Run the query once, from the checkpoint to the last batch. Raise an error if it fails."""
    from penstock.spark.exactly_once.decision import merged

    driver = SinkDriver(ModelCluster(world))
    batch = max(world.commit_log, default=-1) + 1
    while batch < batches:
        await world.turn()
        world.offset_log.add(batch)
        rows = rows_of(batch)
        world.dice.shuffle(rows)
        shares = [rows[task::TASKS] for task in range(TASKS)]
        written = await asyncio.gather(
            *(run_task(world, batch, task, share) for task, share in enumerate(shares))
        )
        transactions = [each for each, _ in written if each is not None]
        await driver.commit(batch, transactions, merged(ranges for _, ranges in written), len(rows))
        await world.turn()
        if batch in world.commit_log:
            raise PenstockError("concurrent update of the checkpoint")
        world.commit_log.add(batch)
        batch += 1


async def run_task(world: World, batch: int, task: int, rows: list[Any]) -> tuple[Any, Ranges]:
    """Run a task with retries, and sometimes a speculative attempt whose result is ignored."""
    if world.is_faulty and world.dice.random() < 0.1:
        twin = asyncio.create_task(attempt(world, batch, task, 9, list(rows)))
        twin.add_done_callback(lambda done: done.cancelled() or done.exception())
    for number in range(4):
        try:
            return await attempt(world, batch, task, number, list(rows))
        except PenstockError:
            continue
    raise AttemptFailed("a task failed four times")
