"""Tests that run thousands of simulated classic groups, one per seed.

A seed that has failed once stays in the list `FAILED_ONCE`.
"""

from __future__ import annotations

import os

import pytest

from broker.groups.simulation import World

SEEDS = 50
"""The number of seeds that a normal test run simulates.

Of the seeds that have ever failed, three are below 13 and the next is 464.
"""
SOAK_SEEDS = int(os.environ.get("PENSTOCK_SOAK_SEEDS", "4000"))

FAILED_ONCE = [1, 5, 12, 464, 518, 1482, 2934, 5235, 21443]
"""Seeds that failed once, and are repeated in every test run.

1 and 5: a member that joined twice left its first request waiting for ever. 21443: a generation that was not
stored before a restart had its number reused. The others showed how static members may affect each other,
which the simulation now allows.
"""


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_groups_settle(first: int) -> None:
    for seed in range(first, first + 25):
        World(seed).run()


@pytest.mark.parametrize("seed", FAILED_ONCE)
def test_seeds_that_failed_once(seed: int) -> None:
    World(seed, one_stream=True).run()


def test_draws_of_one_kind_leave_the_others_as_they_were() -> None:
    first, second = World(7), World(7)
    for _ in range(100):
        second.dice("losses").random()
    assert [first.dice("delays").random() for _ in range(9)] == [
        second.dice("delays").random() for _ in range(9)
    ]


def test_one_seed_is_one_life() -> None:
    first, second = World(7).run(), World(7).run()
    assert first.owners == second.owners
    assert first.owners


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_groups_settle_for_long() -> None:
    for seed in range(10_000, 10_000 + SOAK_SEEDS):
        World(seed).run()
