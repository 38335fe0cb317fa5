"""Tests that simulate share groups under many seeds, with every kind of fault."""

from __future__ import annotations

import pytest

from broker.groups.share_simulation import ShareWorld


@pytest.mark.parametrize("seed", range(6))
def test_a_life(seed: int) -> None:
    ShareWorld(seed).run()


@pytest.mark.soak
def test_many_lives() -> None:
    for seed in range(1000, 1600):
        ShareWorld(seed).run()
