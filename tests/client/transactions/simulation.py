"""A simulation of the producer's transaction logic with the broker's coordinator, from one seed.

The environment is that of the broker's own simulation: requests and answers are delayed, lost and repeated;
the broker is killed between any two steps; partitions are unavailable; clients die or live on as zombies. The
clients are the producer's decision logic: `TransactionMachine` and `Accumulator`, without a socket or an
event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from broker.transactions.history import Fate, Unit
from broker.transactions.simulation import IDS, PARTITIONS, REQUEST_TIMEOUT_S, TIMED_OUT, Request, World
from penstock.broker.transactions.outbox import ApiOutcome
from penstock.client.cluster.retry import Backoff
from penstock.client.config import ProducerConfig
from penstock.client.group.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.produce.accumulator import Accumulator
from penstock.client.produce.batch_payload import rows_of
from penstock.client.produce.batches import ProducerBatch
from penstock.client.producer_id import ProducerId
from penstock.client.transactions.machine import TransactionMachine
from penstock.client.transactions.pauses import Pauses
from penstock.client.transactions.states import ProducerPhase
from penstock.client.transactions.steps import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    End,
    FindCoordinator,
    Initialize,
    Step,
    StepAnswer,
)
from penstock.errors import PenstockError, RequestTimeoutError, TransactionError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import error_for

DATA = [TopicPartition(*one) for one in PARTITIONS[:3]]
OFFSETS = PARTITIONS[3]
CONFIG = ProducerConfig.parse(
    None,
    {
        "bootstrap_servers": "nowhere",
        "transactional_id": "x",
        "delivery_timeout_ms": 4_000,
        "retry_backoff_ms": 50,
        "batch_size": 1,
    },
)
IN_FLIGHT_MAX = 5


class MachineClient:
    """A simulated producer whose application begins, writes, commits and aborts transactions."""

    def __init__(self, world: MachineWorld, transactional_id: str, name: str) -> None:
        self.world = world
        self.id = transactional_id
        self.name = name
        self.is_new = world.level >= 2 and world.random.random() < 0.5
        self.lives = True
        self.connection = next(world.connections)
        dice = world.random.random
        self.machine = TransactionMachine(transactional_id, Pauses(Backoff(50, 400), dice))
        self.batches = Accumulator(CONFIG, dice)
        self.batches.transaction = self.machine
        self.in_flight = 0
        self.offset_sequences: dict[ProducerId, int] = {}
        self.numbers = count()
        self.unit: Unit | None = None
        self.ended = 0
        world.after(world.random.uniform(0, 1), self.start)

    # -- the application

    def start(self) -> None:
        self.machine.initialize()
        self.go_on()

    def go_on(self) -> None:
        """Take the next step: of the application, the transaction machine or the batches."""
        if not self.lives:
            return
        self.look_at_end()
        if self.machine.state is ProducerPhase.READY and not self.world.is_quiet:
            self.begin()
        elif self.machine.state is ProducerPhase.ABORTABLE_ERROR:
            self.call(self.machine.abort)
        elif self.machine.state is ProducerPhase.FATAL_ERROR:
            self.lives = False
            return
        self.pump()

    def begin(self) -> None:
        self.machine.begin(is_implicit=self.is_new)
        self.batches.open(self.machine.owner)
        self.unit = self.world.history.begin(f"{self.name}.{next(self.numbers)}")
        self.write(self.unit, self.world.random.choice((0, 1, 1, 2, 3, 6)))

    def write(self, unit: Unit, left: int) -> None:
        """Write a value at intervals, `left` times in all, and then end the transaction."""
        if not self.lives or unit is not self.unit or self.machine.state is not ProducerPhase.IN_TRANSACTION:
            return
        random = self.world.random
        if left == 0:
            self.end()
            return
        value = f"{unit.name}/{left}"
        if random.random() < 0.2 and not self.machine.has_offsets:
            unit.write(f"{OFFSETS[0]}-{OFFSETS[1]}", value)
            self.machine.send_offsets(
                GroupMetadata(value), {TopicPartition("in", 0): OffsetAndMetadata(left)}
            )
        else:
            tp = random.choice(DATA)
            unit.write(f"{tp.topic}-{tp.partition}", value)
            self.batches.append(tp, (None, value.encode(), (), 0), 100, lambda: self.world.now_s)
        self.world.after(random.choice((0.0, 0.001, 0.05, 0.4)), lambda: self.write(unit, left - 1))
        self.go_on()

    def end(self) -> None:
        if self.machine.has_offsets:
            unit = self.unit
            assert unit is not None
            self.world.after(0.05, lambda: self.write(unit, 0))
            return
        if self.world.random.random() < 0.7:
            assert self.unit is not None
            self.call(self.machine.commit)
            self.unit.fate = Fate.UNKNOWN
        else:
            self.call(self.machine.abort)
        self.go_on()

    def call(self, call: Callable[[], None]) -> None:
        call()
        self.batches.seal(TransactionError("no transaction is open"))

    def look_at_end(self) -> None:
        if self.unit is None:
            return
        if self.machine.ended > self.ended:
            if self.unit.fate is Fate.UNKNOWN:
                self.unit.fate = Fate.COMMITTED
            self.ended, self.unit = self.machine.ended, None
        elif self.machine.state is ProducerPhase.ABORTABLE_ERROR:
            self.unit.fate = Fate.ABORTED  # the commit was refused, for certain

    # -- what the driver and the sender do in a producer

    def pump(self) -> None:
        world, machine, batches = self.world, self.machine, self.batches
        if machine.is_dropping:
            batches.drop_unsent(TransactionError("the transaction was aborted"))
        now = world.now_s
        next_expiry = batches.expire(now)
        step = machine.next_step(now, is_settled=self.may_end())
        if step is not None:
            self.take(step)
        while self.in_flight < IN_FLIGHT_MAX:
            drained = batches.drain(now, lambda tp: 0, lambda node: True)
            if not drained.requests:
                break
            for batch in drained.requests[0]:
                self.produce(batch)
        wake_at = min(next_expiry, drained.wake_at if self.in_flight < IN_FLIGHT_MAX else float("inf"))
        for when in (wake_at, machine.wake_at):
            if now < when < float("inf"):
                world.after(when - now + 1e-6, self.go_on)

    def may_end(self) -> bool:
        if self.machine.state is ProducerPhase.ABORTING:
            return not self.batches.has_in_flight
        return not self.batches.has_unsettled and not self.batches.has_in_flight

    def take(self, step: Step) -> None:
        if isinstance(step, FindCoordinator):
            self.world.after(0.001, lambda: self.answered(step, StepAnswer(node=0)))
        else:
            self.send(self.request_of(step), lambda outcome: self.step_ended(step, outcome))

    def request_of(self, step: Step) -> Request:
        assert not isinstance(step, FindCoordinator)

        def made(kind: str, **what: Any) -> Request:
            return Request(kind, self.id, *step.owner, self.machine.is_implicit, **what)

        if isinstance(step, Initialize):
            return made("initialize")
        if isinstance(step, AddPartitions):
            return made("add", partition=min(step.partitions))
        if isinstance(step, AddOffsets):
            return made("add", partition=OFFSETS)
        if isinstance(step, End):
            return made("end", is_commit=step.is_commit)
        sequence = self.offset_sequences.get(step.owner, 0)
        return made("produce", partition=OFFSETS, sequence=sequence, value=step.group.group_id)

    def step_ended(self, step: Step, outcome: ApiOutcome) -> None:
        if outcome is TIMED_OUT:
            self.machine.lost(step, self.world.now_s, is_sent=True)
            self.go_on()
            return
        codes = {}
        if isinstance(step, AddPartitions):
            # One partition of several was asked for: the others are to be tried again.
            codes = dict.fromkeys(step.partitions, 3 if not outcome.error else int(outcome.error))
            codes[min(step.partitions)] = int(outcome.error)
            step = AddPartitions(step.owner, frozenset([min(step.partitions)]))
            codes = {tp: code for tp, code in codes.items() if tp in step.partitions}
        if isinstance(step, CommitOffsets) and not outcome.error:
            self.offset_sequences[step.owner] = self.offset_sequences.get(step.owner, 0) + 1
        owner = ProducerId(outcome.producer_id, outcome.epoch)
        self.answered(step, StepAnswer(0 if codes else int(outcome.error), codes, owner))

    def answered(self, step: Step, answer: StepAnswer) -> None:
        if self.lives:
            self.machine.answered(step, answer, self.world.now_s)
            self.go_on()

    def produce(self, batch: ProducerBatch) -> None:
        tp = TopicPartition(batch.outcome.topic, batch.outcome.partition)
        value = rows_of(batch)[0][1]
        assert value is not None
        request = Request(
            "produce",
            self.id,
            *batch.owner,
            self.machine.is_implicit,
            tp,
            batch.base_sequence,
            value.decode(),
        )
        self.in_flight += 1

        def ended(outcome: ApiOutcome) -> None:
            self.in_flight -= 1
            now = self.world.now_s
            if outcome is TIMED_OUT:
                self.batches.fail(batch, RequestTimeoutError("no answer"), now)
            elif outcome.error:
                error: PenstockError = error_for(outcome.error)
                self.batches.fail(batch, error, now)
            else:
                self.batches.succeed(batch, 0)
            self.go_on()

        self.send(request, ended)

    def send(self, request: Request, ended: Callable[[ApiOutcome], None]) -> None:
        open_ones: list[Callable[[ApiOutcome], None]] = [ended]

        def settle(outcome: ApiOutcome) -> None:
            if not open_ones or not self.lives:
                return
            open_ones.clear()
            if outcome.closes_connection or outcome is TIMED_OUT:
                self.connection = next(self.world.connections)
                outcome = TIMED_OUT
            ended(outcome)

        self.world.after(REQUEST_TIMEOUT_S, lambda: settle(TIMED_OUT))
        self.world.deliver(request, self.connection, settle)


class MachineWorld(World):
    """The broker's simulation with the client's real producer logic instead of simple clients."""

    def _new_client(self, transactional_id: str) -> None:
        for client in self.clients:
            if client.id == transactional_id and self.random.random() < 0.5:
                client.lives = False
        client = MachineClient(self, transactional_id, f"{transactional_id}{next(self._names)}")
        self.clients.append(client)  # type: ignore[arg-type]

    def _judge(self) -> None:
        for client in self.clients:
            if client.lives:
                machine = client.machine  # type: ignore[attr-defined]
                assert machine.state is ProducerPhase.READY, f"{client.name} is stuck: {machine.state.value}"
        super()._judge()


__all__ = ["IDS", "MachineClient", "MachineWorld"]
