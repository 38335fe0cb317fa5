"""Functions that all benchmarks use: interleaved rounds, medians, rates, CPU times, and tables.

Only figures of one run can be compared: `measure` runs every contestant once per round, in turn, so that
other load on the machine affects all of them alike. CPU seconds are those of all threads of this process,
without child processes. A contestant can report the CPU of other processes by returning it (see `Outcome`).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """The result of one run, for a contestant whose units, bytes or CPU are known only afterwards."""

    units: float
    bytes: float = 0.0
    cpu_seconds: float = 0.0
    """CPU seconds that other processes used for this run; they are added to this process's."""


@dataclass(slots=True)
class Contestant:
    """One of the compared ways to do the same work. `run` does the whole work once."""

    name: str
    run: Callable[[], Outcome | object]
    units: float = 0.0
    """The number of units of work (records or requests) per run."""
    bytes: float = 0.0
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    prepare: Callable[[], object] | None = None
    """A function that is called before every run and not measured; None for none."""

    @property
    def median_seconds(self) -> float:
        return statistics.median(self.seconds)

    @property
    def median_cpu_seconds(self) -> float:
        return statistics.median(self.cpu_seconds)

    @property
    def rate(self) -> float:
        """The units of work per second, in the run of median duration."""
        return self.units / self.median_seconds


def measure(
    contestants: Sequence[Contestant], rounds: int, *, warm_up: bool = True, least_seconds: float = 0.0
) -> None:
    """Run each contestant once per round, in turn, after a first run that does not count.

    A run shorter than `least_seconds` is repeated until it takes that long, since very short runs would be
    measured with cold caches.
    """
    repeats = [1] * len(contestants)
    if warm_up:
        for index, contestant in enumerate(contestants):
            if contestant.prepare is not None:
                contestant.prepare()
            contestant.run()
            start = time.perf_counter()
            if least_seconds:
                contestant.run()
                repeats[index] += int(least_seconds / max(time.perf_counter() - start, 1e-6))
    collects = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds):
            order = list(zip(contestants, repeats, strict=True))
            for contestant, times in order if number % 2 == 0 else reversed(order):
                if contestant.prepare is not None:
                    contestant.prepare()
                gc.collect()
                cpu, start = time.process_time(), time.perf_counter()
                for _ in range(times):
                    outcome = contestant.run()
                seconds = (time.perf_counter() - start) / times
                cpu_seconds = (time.process_time() - cpu) / times
                if isinstance(outcome, Outcome):
                    contestant.units = outcome.units
                    contestant.bytes = outcome.bytes or contestant.bytes
                    cpu_seconds += outcome.cpu_seconds
                contestant.seconds.append(seconds)
                contestant.cpu_seconds.append(cpu_seconds)
    finally:
        if collects:
            gc.enable()


def report(title: str, contestants: Sequence[Contestant], *, unit: str = "records", against: int = 0) -> None:
    """Print rates and CPU, and the ratio of each contestant to contestant number `against`.

    The column "Times" compares units per second, "by CPU" units per second of CPU. The latter is steadier
    on a machine with other load.
    """
    base = contestants[against]
    base_cpu = base.units / base.median_cpu_seconds
    rows = [
        (
            contestant.name,
            _short(contestant.rate),
            f"{contestant.bytes / contestant.median_seconds / 1e6:,.0f}" if contestant.bytes else "",
            f"{contestant.median_cpu_seconds / contestant.units * 1e6:.3f}",
            f"{contestant.median_cpu_seconds / contestant.bytes * 1e9:.2f}" if contestant.bytes else "",
            f"{contestant.rate / base.rate:.2f}",
            f"{contestant.units / contestant.median_cpu_seconds / base_cpu:.2f}",
        )
        for contestant in contestants
    ]
    print_table(
        title,
        ("", f"{unit}/s", "MB/s", f"CPU µs/{unit.removesuffix('s')}", "CPU s/GB", "times", "by CPU"),
        rows,
    )


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a title: the first column left-aligned, the others right-aligned.

    Append the table as a line of JSON to the file that `PENSTOCK_BENCH_TABLES` names, if it is set: from such
    lines `tools/write_speed.py` makes the page of measurements.
    """
    if tables := os.environ.get("PENSTOCK_BENCH_TABLES"):
        table = {"title": title, "head": list(head), "rows": [list(row) for row in rows]}
        with open(tables, "a", encoding="utf-8") as file:
            file.write(json.dumps(table) + "\n")
    widths = [max(len(str(row[index])) for row in [head, *rows]) for index in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [
            str(row[0]).ljust(widths[0]),
            *(str(c).rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        return "  ".join(cells).rstrip()

    print(f"\n{title}\n{line(head)}\n{'  '.join('-' * width for width in widths)}")
    for row in rows:
        print(line(row))
    sys.stdout.flush()


def _short(number: float) -> str:
    for limit, divisor, suffix in ((1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if number >= limit:
            return f"{number / divisor:,.2f}{suffix}"
    return f"{number:,.1f}"


def arguments(description: str, *, rounds: int, quick_rounds: int = 3) -> argparse.Namespace:
    """Parse the options of every benchmark: ``--rounds N`` and ``--quick`` (fewer rounds, less data)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds over less data: does it still work?"
    )
    parser.add_argument(
        "--rounds", type=int, default=None, help=f"default {rounds}, with --quick {quick_rounds}"
    )
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = quick_rounds if options.quick else rounds
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{description}: {options.rounds} rounds, {cores} cores, Python {platform.python_version()}")
    return options


if __name__ == "__main__":
    print(__doc__)
