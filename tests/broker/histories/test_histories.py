"""Tests that concurrent clients under injected faults record histories without violations."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.histories.chaos import TROUBLES, Chaos
from broker.histories.checker import violations
from penstock.testing import KafkaBroker


def run(data_dir: Path | None, seed: int, troubles: int) -> None:
    with KafkaBroker(data_dir) as broker:
        history = Chaos(broker, seed).run(troubles)
    assert violations(history) == []
    acknowledged = [write for write in history.writes if write.offset is not None]
    assert len(acknowledged) > 50
    assert len(history.reads) > 50


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_bad_day(tmp_path: Path, on_disk: bool) -> None:
    run(tmp_path if on_disk else None, seed=1, troubles=2 * len(TROUBLES))


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(10))
def test_a_bad_year(tmp_path: Path, seed: int) -> None:
    run(tmp_path if seed % 2 else None, seed, troubles=300)
