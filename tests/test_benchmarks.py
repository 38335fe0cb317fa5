"""What benchmarks measure: the CPU of processes that have ended counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

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
