"""Tests of batches in a transaction: any lost batch makes the transaction abortable."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from for_each import for_each
from penstock.client.cluster.retry import Backoff
from penstock.client.config import ProducerConfig
from penstock.client.produce.accumulator import Accumulator
from penstock.client.producer_id import ProducerId
from penstock.client.transactions.machine import TransactionMachine
from penstock.client.transactions.pauses import Pauses
from penstock.client.transactions.states import ProducerPhase
from penstock.client.transactions.steps import End, FindCoordinator, Initialize, StepAnswer
from penstock.errors import AuthenticationError, TransactionAbortableError, TransactionStateError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import error_for

T0 = TopicPartition("t", 0)
CONFIG = ProducerConfig.parse(None, {"bootstrap_servers": "nowhere", "transactional_id": "x"})


class Scene:
    """A transaction machine and an accumulator, in a transaction with one unsent record."""

    def __init__(self, *, is_implicit: bool) -> None:
        self.machine = TransactionMachine("x", Pauses(Backoff(100, 1000), lambda: 0.5))
        self.batches = Accumulator(CONFIG, lambda: 0.5)
        self.batches.transaction = self.machine
        self.machine.initialize()
        assert self.take(StepAnswer(node=1)) == FindCoordinator(1, "x")
        assert self.take(StepAnswer(owner=ProducerId(7, 0))) == Initialize(ProducerId(-1, -1))
        self.machine.begin(is_implicit=is_implicit)
        self.batches.open(self.machine.owner)
        self.delivery = self.append()

    def take(self, answer: StepAnswer) -> object:
        step = self.machine.next_step(0.0, is_settled=True)
        if step is not None:
            self.machine.answered(step, answer, 0.0)
        return step

    def append(self) -> object:
        return self.batches.append(T0, (None, b"v", (), 0), 50, lambda: 0.0)[0]

    def send(self) -> object:
        drained = self.batches.drain(1.0, lambda tp: 1, lambda node: True)
        if not drained.requests:
            self.take(StepAnswer())
            drained = self.batches.drain(1.0, lambda tp: 1, lambda node: True)
        (batch,) = drained.requests[1]
        return batch


def unsent_batches_are_abandoned(scene: Scene) -> None:
    scene.batches.abandon(AuthenticationError("no longer welcome"))


def sent_batches_are_abandoned(scene: Scene) -> None:
    scene.send()
    scene.batches.abandon(AuthenticationError("no longer welcome"))


def time_is_up(scene: Scene) -> None:
    scene.batches.expire(1000.0)


def time_is_up_in_flight(scene: Scene) -> None:
    scene.send()
    scene.batches.expire(1000.0)


def the_broker_refuses(scene: Scene) -> None:
    scene.batches.fail(scene.send(), error_for(87), 1.0)  # type: ignore[arg-type]


def the_sequence_has_a_gap(scene: Scene) -> None:
    scene.batches.fail(scene.send(), error_for(45), 1.0)  # type: ignore[arg-type]


def the_epoch_is_old(scene: Scene) -> None:
    scene.batches.fail(scene.send(), error_for(47), 1.0)  # type: ignore[arg-type]


LOSSES = [
    unsent_batches_are_abandoned,
    sent_batches_are_abandoned,
    time_is_up,
    time_is_up_in_flight,
    the_broker_refuses,
    the_sequence_has_a_gap,
    the_epoch_is_old,
]


@for_each([(lose, is_implicit) for lose in LOSSES for is_implicit in [False, True]])
def test_a_lost_batch_makes_the_transaction_abortable(
    lose: Callable[[Scene], None], is_implicit: bool
) -> None:
    scene = Scene(is_implicit=is_implicit)
    lose(scene)
    assert scene.machine.state is ProducerPhase.ABORTABLE_ERROR
    with pytest.raises(TransactionAbortableError):
        scene.machine.commit()
    assert scene.batches.owner == ProducerId(7, 0)
    assert not scene.batches.wants_epoch


def test_a_lost_batch_with_a_number_asks_for_an_epoch_before_kip_890() -> None:
    scene = Scene(is_implicit=False)
    the_broker_refuses(scene)
    scene.machine.abort()
    assert scene.take(StepAnswer()) == End(ProducerId(7, 0), False, False)
    assert scene.machine.state is ProducerPhase.INITIALIZING
    assert scene.take(StepAnswer(owner=ProducerId(7, 1))) == Initialize(ProducerId(7, 0))
    assert scene.machine.state is ProducerPhase.READY
    assert scene.machine.owner == ProducerId(7, 1)


def test_with_kip_890_the_end_gives_the_epoch() -> None:
    scene = Scene(is_implicit=True)
    the_broker_refuses(scene)
    scene.machine.abort()
    assert scene.take(StepAnswer(owner=ProducerId(7, 1))) == End(ProducerId(7, 0), False, True)
    assert scene.machine.state is ProducerPhase.READY
    assert scene.machine.owner == ProducerId(7, 1)


def test_nothing_is_accepted_outside_of_a_transaction() -> None:
    scene = Scene(is_implicit=True)
    scene.batches.seal(TransactionStateError("no transaction is open"))
    with pytest.raises(TransactionStateError):
        scene.append()
    assert scene.batches.has_unsettled
    scene.batches.drop_unsent(TransactionAbortableError("aborted"))
    assert not scene.batches.has_unsettled
    assert not scene.batches.has_in_flight


def test_nothing_is_sent_before_there_is_a_transaction() -> None:
    batches = Accumulator(CONFIG, lambda: 0.5)
    batches.open(ProducerId(7, 0))
    batches.append(T0, (None, b"v", (), 0), 50, lambda: 0.0)
    assert batches.drain(1.0, lambda tp: 1, lambda node: True).requests == {}
    assert not batches.wants_epoch


def test_the_transaction_has_failed_when_the_application_gets_the_error_of_a_record() -> None:
    scene = Scene(is_implicit=True)
    states: list[ProducerPhase] = []
    batch = scene.send()
    batch.outcome.on_settled(lambda: states.append(scene.machine.state))  # type: ignore[attr-defined]
    scene.batches.fail(batch, error_for(87), 1.0)  # type: ignore[arg-type]
    assert states == [ProducerPhase.ABORTABLE_ERROR]
