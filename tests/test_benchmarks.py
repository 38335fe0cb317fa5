"""What benchmarks measure: the CPU of processes that have ended counts, and noise is no change."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
TOOLS = BENCHMARKS.with_name("tools")

WORK = "import time\nwhile time.process_time() < 0.2: pass\n"

PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {WORK!r}], check=True)
print("done", flush=True)
sys.stdin.read()
"""


def test_the_cpu_of_a_grandchild_that_has_ended_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psutil")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from process_trees import tree_cpu

    before = tree_cpu()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == "done\n"
        alive = tree_cpu() - before
        parent.communicate()
    assert alive > 0.15  # clocks of the system tick each hundredth of a second
    # The parent has ended as well, and what it had is counted once.
    assert alive - 0.02 <= tree_cpu() - before < alive + 0.19


def times(seed: int, factor: float, spread: float, rounds: int = 9) -> list[float]:
    """CPU seconds of a case that takes `factor` seconds and up to a part `spread` more."""
    dice = random.Random(seed)
    return [factor * (1 + dice.random() * spread) for _ in range(rounds)]


@pytest.mark.parametrize(
    ("factor", "spread", "word"),
    [
        *[(1.0, 0.0, ""), (1.0, 0.3, ""), (1.04, 0.01, "")],
        *[(1.1, 0.01, "slower"), (1.5, 0.3, "slower"), (2.0, 1.0, "slower")],
        *[(0.9, 0.01, "faster"), (0.5, 0.3, "faster")],
    ],
)
def test_what_is_more_than_noise_is_a_change(
    monkeypatch: pytest.MonkeyPatch, factor: float, spread: float, word: str
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    from bench_check import verdict

    for seed in range(50):
        found = verdict(
            "a case",
            times(seed, 1.0, spread),
            times(seed + 50, 1.0, spread),
            times(seed + 100, factor, spread),
        )
        assert found.word == word, (seed, found)


def test_a_case_is_measured() -> None:
    environment = {**os.environ, "PYTHONPATH": str(TOOLS.parent / "src")}
    done = subprocess.run(
        [sys.executable, str(TOOLS / "bench_cases.py"), "Metadata"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    (took,) = json.loads(done.stdout).values()
    assert 0 < took < 60
