"""Run the benchmarks that docs/reference/speed.md names, and write their tables into that page.

    python tools/write_speed.py [WORD ...]

In the page a comment names each run: `<!-- run: broker.py --rounds 3 -->`. Between this comment and `<!-- end
-->` are a line with the run's command, day and machine, and its tables. Without WORDs all runs are repeated;
with WORDs, those whose command contains one of them. If other programs used more than 5 % of the processors'
time before or after a run, the page keeps its former tables.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "reference" / "speed.md"
RUN = re.compile(r"<!-- run: (?P<command>[^\n]+?) -->\n(?P<tables>.*?)<!-- end -->", re.DOTALL)
OTHERS_MAX = 0.05
"""The largest share of all processors that other programs may take before and after a published run."""
LOOKS, LOOK_S = 3, 2.0
"""How often, and for how many seconds each time, the processors are observed before and after a run."""


@dataclass(frozen=True)
class Result:
    """The tables of one benchmark run, with the machine and the time of the run."""

    tables: list[dict[str, Any]]
    others: float
    """The share of all processors that other programs took right before or after the run, from 0 to 1."""
    machine: str
    day: datetime


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks and update the page after each.

    Returns 1 if a benchmark failed, or if other programs took too much of the processors.
    """
    parser = argparse.ArgumentParser(description="Write the page of measurements.")
    parser.add_argument("words", nargs="*", help="parts of commands: without one, all runs are made")
    words = parser.parse_args(arguments).words
    refused = []
    for command in [found["command"] for found in RUN.finditer(PAGE.read_text("utf-8"))]:
        if words and not any(word in command for word in words):
            continue
        print(f"== {command}", flush=True)
        result = measured(command)
        if result is None or result.others > OTHERS_MAX:
            why = "it failed" if result is None else f"other programs took {result.others:.0%}"
            refused.append(f"{command} is not published: {why}")
        else:
            text = shown(command, result)
            PAGE.write_text(with_tables(PAGE.read_text("utf-8"), command, text), encoding="utf-8")
    print("\n".join(refused), file=sys.stderr)
    return 1 if refused else 0


def measured(command: str) -> Result | None:
    """Run a benchmark and return its result; None if it failed or printed no table."""
    *settings, program, words = re.split(r" (?=[a-z_]+\.py)|(?<=\.py) ?", command, maxsplit=2)
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder, "tables")
        environment = dict(os.environ, PENSTOCK_BENCH_TABLES=str(tables))
        environment.update(setting.split("=", 1) for setting in settings)
        before = others_share()
        done = subprocess.run([sys.executable, str(BENCHMARKS / program), *words.split()], env=environment)
        others = max(before, others_share())
        if done.returncode or not tables.exists():
            return None
        lines = tables.read_text("utf-8").splitlines()
    return Result([json.loads(line) for line in lines], others, machine(), datetime.now(UTC))


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def machine() -> str:
    """Return processor, number of cores, system and Python in a few words."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{model}, {cores()} cores, {platform.system()}, Python {platform.python_version()}"


def busy_s() -> float:
    """Return the seconds for which all processors have been busy so far.

    They include time that a hypervisor gave to other virtual machines.
    """
    user, nice, system, _, _, irq, softirq, steal = Path("/proc/stat").read_text("utf-8").split()[1:9]
    ticks = sum(map(int, (user, nice, system, irq, softirq, steal)))
    return ticks / os.sysconf("SC_CLK_TCK")


def others_share() -> float:
    """Return the smallest share of the processors that was busy in one of several short times, 0 to 1.

    No benchmark runs meanwhile, so that this is the share of other programs. The times are several, because
    a JVM may need some seconds to end.
    """
    shares = []
    for _ in range(LOOKS):
        before, start = busy_s(), time.monotonic()
        time.sleep(LOOK_S)
        shares.append((busy_s() - before) / ((time.monotonic() - start) * cores()))
    return min(shares)


def with_tables(page: str, command: str, text: str) -> str:
    """Return the page with `text` between the two comments that enclose the tables of a run."""

    def replaced(found: re.Match[str]) -> str:
        return f"<!-- run: {command} -->\n{text}<!-- end -->" if found["command"] == command else found[0]

    return RUN.sub(replaced, page)


def shown(command: str, result: Result) -> str:
    """Return a line with command, day and machine of a run, followed by its tables in Markdown."""
    others = f"{result.others * 100:.1f} %"
    day = f"{result.day.day} {result.day:%B %Y}"
    line = f"`{command}`, {day}, {result.machine}; other programs took {others}.\n"
    return "\n".join([line, *map(table, result.tables), ""])


def table(content: dict[str, Any]) -> str:
    """Return a Markdown table.

    Its title is in the first cell of the head, and the columns after the first are right-aligned. Columns
    without any content are left out.
    """
    first, *others = content["head"]
    head = [": ".join(filter(None, (content["title"], first))), *others]
    columns = [0, *(n for n in range(1, len(head)) if any(row[n] != "" for row in content["rows"]))]
    lines = [head, ["---", *["---:"] * len(others)], *content["rows"]]
    cells = [[str(line[n]).replace("|", "\\|") for n in columns] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


if __name__ == "__main__":
    raise SystemExit(main())
