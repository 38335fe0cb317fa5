"""Tests that run hundreds of simulated share partitions, one per seed, and find deliberate bugs."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from broker.sharing.simulation import World
from penstock.broker.sharing import share_partition
from penstock.broker.sharing.dead_records import REJECTED, DeadRange
from penstock.broker.sharing.runs import (
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DONE,
    DeliveryRun,
    RunWindow,
)
from penstock.broker.sharing.share_partition import SharePartition

SEEDS = 150
SOAK_SEEDS = int(os.environ.get("PENSTOCK_SOAK_SEEDS", "5000"))


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_nothing_is_lost_or_delivered_again(first: int) -> None:
    for seed in range(first, first + 50):
        try:
            World(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_one_seed_is_one_life() -> None:
    first, second = World(3), World(3)
    first.run()
    second.run()
    assert first.log == second.log


@pytest.mark.soak
def test_thousands_of_lives() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        World(seed).run()


def _acquires_what_is_acquired(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeliveryRun, "is_free", property(lambda run: run.state not in DONE))


def _forgets_changes_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeliveryRun, "is_free", property(lambda run: run.state is not ACKNOWLEDGED))


def _does_not_free_what_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "expire", lambda *_: False)


def _moves_over_what_is_free(patch: pytest.MonkeyPatch) -> None:
    move = RunWindow.move_start

    def moved(window: RunWindow, to: int = -1) -> bool:
        if window.runs and window.runs[0].state is AVAILABLE and window.runs[0].deliveries > 1:
            to = max(to, window.runs[0].last + 1)
        return move(window, to)

    patch.setattr(RunWindow, "move_start", moved)


def _stores_a_start_too_far(patch: pytest.MonkeyPatch) -> None:
    after = SharePartition._after
    patch.setattr(SharePartition, "_after", lambda *args: (after(*args)[0] + 1, after(*args)[1]))


def _takes_over_what_was_done(patch: pytest.MonkeyPatch) -> None:
    restore = SharePartition._restore
    patch.setattr(
        SharePartition, "_restore", lambda self, each: restore(self, each._replace(state=AVAILABLE))
    )


def _lets_others_acknowledge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "_let_go", lambda *_: None)


def _delivers_without_a_limit(patch: pytest.MonkeyPatch) -> None:
    after = share_partition._after

    def unlimited(type_: object, deliveries: int, settings: object) -> object:
        return after(type_, min(deliveries, 1), settings)  # type: ignore[arg-type]

    patch.setattr(share_partition, "_after", unlimited)


def _frees_what_is_answered_with_an_error(patch: pytest.MonkeyPatch) -> None:
    written = SharePartition.written
    patch.setattr(SharePartition, "written", lambda self, write, _: written(self, write, 0))


def _archives_without_a_dead_letter(patch: pytest.MonkeyPatch) -> None:
    after = share_partition._after

    def archived(*of: object) -> object:
        state = after(*of)  # type: ignore[arg-type]
        return ARCHIVED if state is ARCHIVING else state

    patch.setattr(share_partition, "_after", archived)


def _forgets_dead_letters_of_the_leader_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "resume_dead", lambda *_: None)


def _writes_dead_letters_of_what_is_not_stored(patch: pytest.MonkeyPatch) -> None:
    queue = SharePartition.next_write

    def hasty(self: SharePartition) -> object:
        write = queue(self)
        for change in write.changes if write is not None else ():
            self._dead += [DeadRange(each.first, each.last, 1, REJECTED) for each in change.states]
        return write

    patch.setattr(SharePartition, "next_write", hasty)


MUTATIONS = [
    _archives_without_a_dead_letter,
    _forgets_dead_letters_of_the_leader_before,
    _writes_dead_letters_of_what_is_not_stored,
    _acquires_what_is_acquired,
    _forgets_changes_under_way,
    _does_not_free_what_expires,
    _moves_over_what_is_free,
    _stores_a_start_too_far,
    _takes_over_what_was_done,
    _lets_others_acknowledge,
    _delivers_without_a_limit,
    _frees_what_is_answered_with_an_error,
]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda each: each.__name__.strip("_"))
def test_a_share_partition_that_does_wrong_is_found_out(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError):  # noqa: PT012
        for seed in range(SEEDS):
            World(seed).run()
