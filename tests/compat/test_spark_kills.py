"""Spark writes to a topic exactly once even if its driver, its workers or the broker are killed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_sink_kills import BrokerProcess, Chaos, kill_somewhere

PATIENCE_S = 900
"""Seconds that a restarted query may take; on an idle machine it takes half a minute."""

NOTHING = {"missing": [], "repeated": [], "strange": []}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / "broker")
    yield process
    process.kill()


@pytest.mark.compat
@pytest.mark.spark
@pytest.mark.timeout(2 * PATIENCE_S)
def test_driver_workers_and_broker_are_killed_once_each(broker: BrokerProcess, tmp_path: Path) -> None:
    dice = random.Random(3)
    chaos = Chaos(tmp_path, broker.bootstrap_servers, rows=2_000, rows_per_batch=500)
    try:
        chaos.start()
        for what in ("workers", "broker", "driver"):
            kill_somewhere(chaos, broker, dice, what)
        chaos.finish(PATIENCE_S)
        assert chaos.wrong(PATIENCE_S) == NOTHING, chaos.told()
    finally:
        chaos.close()


@pytest.mark.soak
@pytest.mark.spark
def test_fifty_kills(broker: BrokerProcess, tmp_path: Path) -> None:
    kills = int(os.environ.get("PENSTOCK_SPARK_KILLS", "50"))
    seed = int(os.environ.get("PENSTOCK_SEED", "1"))
    dice = random.Random(seed)
    chaos = Chaos(tmp_path, broker.bootstrap_servers, rows=kills * 8_000, rows_per_batch=250)
    done: list[str] = []
    try:
        while len(done) < kills:
            if not chaos.is_running:
                chaos.start()
            killed = kill_somewhere(chaos, broker, dice, dice.choice(("driver", "workers", "broker")))
            if killed is None:
                assert chaos.is_unfinished, "all rows were written before the last kill: take more rows"
            else:
                done.append(killed)
        chaos.finish(1_800)
        assert chaos.wrong(PATIENCE_S) == NOTHING, (seed, chaos.told())
        print(sorted((what, done.count(what)) for what in set(done)))
    finally:
        chaos.close()
