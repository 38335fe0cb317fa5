"""What the benchmarks share: interleaved rounds, medians, rate and CPU, one table.

Two figures are compared only when they come from one run: `measure` runs every contestant once per
round, in turn, so that whatever else the machine does hits all of them alike. CPU seconds are this
process's, all threads, children not included; a contestant may report the CPU of others by returning
it (see `Outcome`).
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """What one run did, where that is not known beforehand."""

    units: float
    bytes: float = 0.0
    cpu_seconds: float = 0.0
    """CPU spent elsewhere on behalf of this run, to be added."""


@dataclass(slots=True)
class Contestant:
    """One way to do the work. `run` does all of it once."""

    name: str
    run: Callable[[], Outcome | object]
    units: float = 0.0
    """Records (or requests, ...) per run."""
    bytes: float = 0.0
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    prepare: Callable[[], object] | None = None
    """Called before every run, and not measured."""

    @property
    def median_seconds(self) -> float:
        return statistics.median(self.seconds)

    @property
    def median_cpu_seconds(self) -> float:
        return statistics.median(self.cpu_seconds)

    @property
    def rate(self) -> float:
        """Units per second, median."""
        return self.units / self.median_seconds


def measure(
    contestants: Sequence[Contestant], rounds: int, *, warm_up: bool = True, least_seconds: float = 0.0
) -> None:
    """Run everybody once per round, in turn, after one run each that does not count.

    A run shorter than `least_seconds` is repeated until it is as long: what takes microseconds is
    otherwise measured with cold caches.
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
    """Print rates and CPU, and how everybody compares with contestant number `against`.

    "Times" says how many times as many units per second, "by CPU" how many times as many per second
    of CPU: the steadier figure where the machine has other things to do.
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
    """Print rows under a title: the first column to the left, the others to the right."""
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
    """Parse what every benchmark understands: ``--rounds N`` and ``--quick`` (fewer rounds, less data)."""
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
