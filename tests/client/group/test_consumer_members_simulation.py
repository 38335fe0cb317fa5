"""Tests that simulate hundreds of consumer groups of the client's members (KIP-848), one per seed."""

from __future__ import annotations

import os

import pytest

from client.group.consumer_members_simulation import MembersWorld

SEEDS = 30
SOAK_SEEDS = int(os.environ.get("PENSTOCK_SOAK_SEEDS", "4000"))


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_no_partition_has_two_owners_and_groups_settle(first: int) -> None:
    for seed in range(first, first + 10):
        MembersWorld(seed).run()


def test_one_seed_is_one_life() -> None:
    first, second = MembersWorld(5), MembersWorld(5)
    first.run()
    second.run()
    assert first.log == second.log


@pytest.mark.soak
def test_thousands_of_lives() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        MembersWorld(seed).run()
