"""Run Apache Kafka's own integration tests against Penstock, and update results, allow list and page.

    make verdicts ARGS="[--jobs 2] [--patience 180] [--log FILE] [--failed|--unrun] [PATTERN ...]"

Without PATTERNs all classes run, else those whose names contain a pattern. `--failed` selects classes with a
test that has not passed, `--unrun` classes without a result. The program prints a line for each run of a
test. When a class ends, its results replace the former ones, its passed tests are added to the allow list,
and docs/reference/verdicts.md is written. The exit code is 1 if a test in the allow list did not pass.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from compat.verdicts import judging
from compat.verdicts import page as verdicts


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2, help="JVMs at a time")
    parser.add_argument("--patience", type=int, default=180, help="seconds that one run of a test may take")
    parser.add_argument("--log", type=Path, help="traces of what failed, and what brokers have logged")
    parser.add_argument("--failed", action="store_true", help="only classes that have not passed as a whole")
    parser.add_argument("--unrun", action="store_true", help="only classes that were never run")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    given = parser.parse_args(words)
    classes = every = judging.judged_classes()
    if given.patterns:
        classes = [each for each in classes if any(re.search(word, each) for word in given.patterns)]
    if given.failed:
        good = {name for (name, _), each in verdicts.results().items() if each.verdict == "passes"}
        bad = {name for (name, _), each in verdicts.results().items() if each.verdict != "passes"}
        classes = [each for each in classes if each in bad or each not in good]
    if given.unrun:
        classes = verdicts.never_run(verdicts.results(), classes)
    if not classes:
        print("no class matches", file=sys.stderr)
        return 2
    began = time.monotonic()
    reached: list[judging.Verdict] = []
    worse: set[str] = set()
    verdicts.save_classes(every)
    work = [(each, ()) for each in classes]
    for found in judging.judge(work, patience_s=given.patience, tell=tell, jobs=given.jobs, log=given.log):
        reached += found
        new = verdicts.counted(found)
        worse |= {each.name for each in new.values() if each.verdict != "passes"} & verdicts.passing()
        _save(new, every)
    counts = [sum(each.verdict == name for each in reached) for name in ("PASS", "FAIL", "SKIP")]
    print("{} passed, {} failed, {} not judged".format(*counts), f"in {time.monotonic() - began:.0f} s")
    for name in sorted(worse):
        print(f"passed before: {name}", file=sys.stderr)
    return int(bool(worse))


def tell(verdict: judging.Verdict) -> None:
    """Print a line for one run of a test."""
    name = f"{verdict.test_class.rpartition('.')[2]}.{verdict.method}"
    print(f"{verdict.verdict} {name} {verdict.ms / 1000:.1f} s {verdict.reason}".rstrip(), flush=True)


def _save(new: dict[tuple[str, str], verdicts.Result], every: Sequence[str]) -> None:
    """Store the new results of the classes in `new`, extend the allow list, and write the page."""
    ran = {name for name, _ in new}
    kept = {key: each for key, each in verdicts.results().items() if key[0] not in ran}
    verdicts.save(kept | new)
    verdicts.save_passing(each.name for each in new.values() if each.verdict == "passes")
    text = verdicts.page(kept | new, verdicts.reasons(), judging.release(), every)
    verdicts.PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
