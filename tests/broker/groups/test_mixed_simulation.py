"""Tests that simulate groups whose members change between the classic protocol and KIP-848, one per seed."""

from __future__ import annotations

import os

import pytest

from broker.groups.mixed_simulation import MixedWorld

SEEDS = 12
SOAK_SEEDS = int(os.environ.get("PENSTOCK_SOAK_SEEDS", "4000")) // 4


@pytest.mark.parametrize("first", range(0, SEEDS, 4))
def test_no_partition_has_two_owners_and_groups_settle(first: int) -> None:
    kinds: set[str] = set()
    for seed in range(first, first + 4):
        world = MixedWorld(seed)
        world.run()
        kinds.update(world.kinds_seen)
    assert kinds == {"classic", "consumer"}


@pytest.mark.soak
def test_many_lives() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        MixedWorld(seed).run()
