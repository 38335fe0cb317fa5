"""Compare this tree's CPU seconds with a commit's, and report the cases that became slower.

    python tools/bench_check.py [--against REVISION] [--rounds N] [CASE ...]

Each round runs three processes in random order: the commit, this tree, and the commit again. The difference
between the commit's two runs is the noise. A case became slower if this tree's excess over the commit is more
than 5 % and more than 1.5 times the noise, both in the minimum and in the median of all rounds. The program
then exits with 1. CPU seconds exclude other programs' work, but shared caches and clock rates still affect
them: use more rounds on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tools" / "bench_cases.py"
BASE = ROOT / "build" / "bench-base"
LEAST_CHANGE = 0.05
"""The smallest relative difference that counts as a change, whatever the noise."""

Times = dict[str, list[float]]


class Verdict(NamedTuple):
    """The result of one case: CPU seconds of commit and tree, their ratio, the noise, and the verdict."""

    name: str
    base_s: float
    now_s: float
    ratio: float
    noise: float
    word: str


def verdict(name: str, base: Sequence[float], again: Sequence[float], now: Sequence[float]) -> Verdict:
    """Compare the times of one case: the commit's first runs, its second runs, and this tree's."""
    both = [*base, *again]
    least, median = min(now) / min(both), statistics.median(now) / statistics.median(both)
    spread = max(abs(min(base) / min(again) - 1), abs(statistics.median(base) / statistics.median(again) - 1))
    allowed = max(LEAST_CHANGE, 1.5 * spread)
    word = ""
    if min(least, median) > 1 + allowed:
        word = "slower"
    elif max(least, median) < 1 - allowed:
        word = "faster"
    return Verdict(name, min(both), min(now), least, spread, word)


def checked_out(revision: str) -> str:
    """Check out a revision at `BASE` and compile its kernels; return its short commit id."""
    commit = _git("rev-parse", "--short", f"{revision}^{{commit}}")
    removed()
    _git("worktree", "add", "--detach", str(BASE), commit)
    subprocess.run([sys.executable, str(BASE / "native" / "hatch_build.py")], check=True)
    return commit


def removed() -> None:
    """Remove the tree at `BASE`, if there is one."""
    shutil.rmtree(BASE, ignore_errors=True)
    _git("worktree", "prune")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench-check: git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def measured(tree: Path, names: Sequence[str]) -> dict[str, float]:
    """Run the cases once with the package of `tree`; return the CPU seconds keyed by case."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled modules are part of an installation
    done = subprocess.run(
        [sys.executable, str(CASES), *names], env=environment, cwd=tree, capture_output=True, text=True
    )
    if done.returncode or not done.stdout.strip():
        raise SystemExit(f"bench-check: the cases failed in {tree}:\n{done.stderr}")
    sys.stderr.write(done.stderr)
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def all_rounds(rounds: int, names: Sequence[str], seed: int) -> dict[str, Times]:
    """Run all rounds; return the times of each side, keyed by case.

    A first round is run but not counted.
    """
    sides = {"base": BASE, "again": BASE, "now": ROOT}
    times: dict[str, Times] = {side: {} for side in sides}
    dice = random.Random(seed)
    for number in range(rounds + 1):
        for side in dice.sample(list(sides), len(sides)):
            for name, took in measured(sides[side], names).items():
                if number:
                    times[side].setdefault(name, []).append(took)
        print(f"round {number} of {rounds} is done", file=sys.stderr)
    return times


def report(verdicts: Sequence[Verdict], commit: str) -> None:
    """Print a table of all cases."""
    width = max(len(each.name) for each in verdicts)
    print(f"{'CPU ms, the least of all rounds':{width}} {commit:>9} {'now':>9} {'now/then':>9} {'noise':>7}")
    for each in verdicts:
        figures = f"{each.base_s * 1e3:9.1f} {each.now_s * 1e3:9.1f} {each.ratio:9.2f} {each.noise:7.0%}"
        print(f"{each.name:{width}} {figures}  {each.word}".rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the speed of this tree with that of a commit.")
    parser.add_argument("--against", default="HEAD~1", metavar="REVISION", help="default HEAD~1")
    parser.add_argument("--rounds", type=int, default=7, help="default 7")
    parser.add_argument("--seed", type=int, default=0, help="of the order of sides; default 0")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default all")
    options = parser.parse_args()
    if options.rounds < 3:
        parser.error("fewer than three rounds have no median worth the name")
    commit = checked_out(options.against)
    try:
        times = all_rounds(options.rounds, options.cases, options.seed)
    finally:
        removed()
    names = [name for name in times["now"] if name in times["base"]]
    if not names:
        raise SystemExit("bench-check: no case runs on both sides; see tools/bench_cases.py for their names")
    verdicts = [verdict(name, *(times[side][name] for side in ("base", "again", "now"))) for name in names]
    report(verdicts, commit)
    slower = [each.name for each in verdicts if each.word == "slower"]
    if slower:
        print(f"slower than {commit} by more than noise: {', '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
