"""Tests that simulate thousands of transactional producers, and find deliberate bugs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from broker.transactions.history import Fate
from client.transactions.simulation import MachineClient, MachineWorld
from penstock.broker.transactions.coordinator import TransactionCoordinator
from penstock.client.produce.accumulator import Accumulator
from penstock.client.producer_id import ProducerId
from penstock.client.transactions import machine
from penstock.client.transactions.machine import TransactionMachine
from penstock.client.transactions.steps import End, Step
from penstock.client.transactions.verdicts import FENCING, Verdict, judge_step

SOAK_SEEDS = int(os.environ.get("PENSTOCK_SOAK_SEEDS", "4000"))


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_no_transaction_is_lost_or_halved(first: int) -> None:
    for seed in range(first, first + 10):
        MachineWorld(seed).run()


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_nor_before_kip_890(first: int) -> None:
    for seed in range(first, first + 10):
        MachineWorld(50_000 + seed, level=1).run()


def test_one_seed_is_one_life() -> None:
    assert MachineWorld(7).run().history.reads == MachineWorld(7).run().history.reads


def test_much_happens_in_a_life() -> None:
    worlds = [MachineWorld(seed).run() for seed in range(10)]
    fates = [unit.fate for world in worlds for unit in world.history.units]
    assert fates.count(Fate.COMMITTED) > 100
    assert fates.count(Fate.ABORTED) > 100
    assert sum(world.crashes for world in worlds) > 20


def obey_late_ends(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: the broker obeys a late EndTxn of the older protocol.

    Apache Kafka does so, too (KAFKA-17754).
    """
    obey = TransactionCoordinator.end

    def end(self: TransactionCoordinator, *what: Any, connection: int = -1, **more: Any) -> None:
        obey(self, *what, **more)

    patch.setattr(TransactionCoordinator, "end", end)


def test_a_late_end_does_no_harm_where_the_broker_obeys_it(monkeypatch: pytest.MonkeyPatch) -> None:
    obey_late_ends(monkeypatch)
    for seed in range(30):
        MachineWorld(60_000 + seed, level=1).run()


def no_new_epoch_after_doubt(patch: pytest.MonkeyPatch) -> None:
    obey_late_ends(patch)
    end = TransactionMachine._end

    def without_doubt(self: TransactionMachine, owner: ProducerId) -> None:
        self._is_in_doubt = False
        end(self, owner)

    patch.setattr(TransactionMachine, "_end", without_doubt)


def a_lost_batch_is_no_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionMachine, "batch_failed", lambda self, error, *, is_numbered: None)


def a_commit_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MachineClient, "may_end", lambda self: True)


def an_abort_drops_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Accumulator, "drop_unsent", lambda self, error: None)


def a_refused_commit_counts(patch: pytest.MonkeyPatch) -> None:
    def judge(step: Step, code: int) -> Verdict:
        return Verdict.DONE if isinstance(step, End) and code in FENCING else judge_step(step, code)

    patch.setattr(machine, "judge_step", judge)


@pytest.mark.parametrize(
    "mistake",
    [
        no_new_epoch_after_doubt,
        a_lost_batch_is_no_matter,
        a_commit_does_not_wait,
        an_abort_drops_nothing,
        a_refused_commit_counts,
    ],
)
def test_mistakes_are_found(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(AssertionError, match=r"lost write|aborted read|torn|stuck|non-monotonic"):
        live_many(150)


def live_many(seeds: int) -> None:
    for seed in range(seeds):
        MachineWorld(seed, level=1 + seed % 2).run()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_producers_for_long() -> None:
    for seed in range(200_000, 200_000 + SOAK_SEEDS):
        MachineWorld(seed, level=1 + seed % 2).run()
