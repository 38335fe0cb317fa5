"""Tests that run hundreds of simulated consumer groups (KIP-848), each from its own seed."""

from __future__ import annotations

import os

import pytest

from broker.groups.consumer_simulation import ConsumerWorld

SEEDS = 30
SOAK_SEEDS = int(os.environ.get("PENSTOCK_SOAK_SEEDS", "4000"))


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_no_partition_has_two_owners_and_groups_settle(first: int) -> None:
    for seed in range(first, first + 10):
        ConsumerWorld(seed).run()


def test_one_seed_is_one_life() -> None:
    first, second = ConsumerWorld(3), ConsumerWorld(3)
    first.run()
    second.run()
    assert first.log == second.log


@pytest.mark.soak
def test_thousands_of_lives() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        ConsumerWorld(seed).run()
