"""Tests of the benchmarks' measurements: CPU of ended processes is counted, and noise is not a change."""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

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
    """Return random CPU seconds of a case: at least `factor`, and at most `factor` * (1 + `spread`)."""
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


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the tool that writes the page of measurements, with a page for two benchmark runs."""
    monkeypatch.syspath_prepend(str(TOOLS))
    tool = importlib.import_module("write_speed")
    page = tmp_path / "speed.md"
    page.write_text(
        "# A page\n\n<!-- run: one.py -->\nold\n<!-- end -->\n\n<!-- run: two.py --quick -->\n<!-- end -->\n"
    )
    monkeypatch.setattr(tool, "PAGE", page)
    return tool


def result(writer: ModuleType, others: float) -> object:
    """Return a benchmark's result with one table; `others` is the CPU share of other programs."""
    table = {"title": "Start-up", "head": ["", "ms"], "rows": [["a | b", "3"]]}
    return writer.Result([table], others, "two cores", datetime(2026, 12, 1, tzinfo=UTC))


def test_tables_of_a_run_replace_those_of_its_last_run(
    writer: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "measured", lambda command: result(writer, 0.004))
    assert writer.main(["one"]) == 0
    assert writer.PAGE.read_text() == (
        "# A page\n\n<!-- run: one.py -->\n"
        "`one.py`, 1 December 2026, two cores; other programs took 0.4 %.\n\n"
        "| Start-up | ms |\n| --- | ---: |\n| a \\| b | 3 |\n\n"
        "<!-- end -->\n\n<!-- run: two.py --quick -->\n<!-- end -->\n"
    )


@pytest.mark.parametrize("others", [None, 0.06])
def test_figures_of_a_failed_run_or_a_busy_machine_are_not_published(
    writer: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    others: float | None,
) -> None:
    before = writer.PAGE.read_text()
    monkeypatch.setattr(
        writer, "measured", lambda command: None if others is None else result(writer, others)
    )
    assert writer.main(["one"]) == 1
    assert writer.PAGE.read_text() == before
    why = "it failed" if others is None else "other programs took 6%"
    assert f"one.py is not published: {why}" in capsys.readouterr().err


PRINTS = "from harness import print_table; print_table('t', ('', 'n'), [(os.environ['A'], sys.argv[1])])"


@pytest.mark.parametrize(
    ("code", "tables"),
    [
        (PRINTS, [{"title": "t", "head": ["", "n"], "rows": [["b", "--quick"]]}]),
        ("raise SystemExit(1)", None),
    ],
)
def test_a_run_is_measured_with_its_settings_and_the_tables_that_it_prints(
    writer: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, tables: object
) -> None:
    """A benchmark that fails has no result."""
    monkeypatch.setattr(writer, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(writer, "LOOK_S", 0.01)
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS))
    (tmp_path / "three.py").write_text(f"import os, sys\n{code}\n")
    made = writer.measured("A=b three.py --quick")
    assert (made and made.tables) == tables


def test_the_page_of_measurements_has_every_benchmark() -> None:
    """`scale.py` has a page of its own.

    A module without arguments of a benchmark is only a part of others.
    """
    page = (BENCHMARKS.parent / "docs" / "reference" / "speed.md").read_text("utf-8")
    named = set(re.findall(r"<!-- run: (?:\S+=\S+ )?(\w+\.py)", page))
    there = {path.name for path in BENCHMARKS.glob("*.py") if " = arguments(" in path.read_text("utf-8")}
    assert there - named <= {"heartbeat_groups.py", "scale.py"}
    assert all((BENCHMARKS / name).exists() for name in named)
