"""Apache Kafka's own tests, from its jars, run against Penstock: a test that passed before must pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

from compat.peers import kerberos_library, need
from compat.verdicts import page as verdicts
from compat.verdicts.judging import judge
from compat.verdicts.run import tell

pytestmark = pytest.mark.compat

ATTEMPTS = 5
"""The maximum number of runs of a test, of which one must pass.

The second run has no other JVMs running beside it; later runs have a JVM for each test. Some tests depend on
timing, and one on a JVM that has not yet compiled anything.
"""

ALL_JOBS = 7
"""The number of JVMs that run at the same time.

The longest tests, those of MirrorMaker, spend four fifths of their time waiting.
"""


def run(names: Iterable[str], log: Path, *, jobs: int) -> dict[str, str]:
    """Run tests with `jobs` JVMs at a time, the longest class first.

    Returns a dict from each test's name to its verdict.
    """
    for tool in ("java", "javac", "mvn"):
        need(tool)
    kerberos_library()
    known = {each.name: each for each in verdicts.results().values()}
    chosen: defaultdict[str, list[verdicts.Result]] = defaultdict(list)
    for name in sorted(names):
        chosen[known[name].test_class].append(known[name])
    longest_first = sorted(chosen, key=lambda each: sum(test.ms for test in chosen[each]), reverse=True)
    work = [(each, [result.test for result in chosen[each]]) for each in longest_first]
    found = verdicts.counted(chain.from_iterable(judge(work, patience_s=300, jobs=jobs, log=log, tell=tell)))
    return {each.name: f"{each.verdict} {each.said}".strip() for each in found.values()}


def failures(names: Iterable[str], log: Path, *, jobs: int = 2) -> dict[str, str]:
    """Return the verdicts of the tests that passed in none of ATTEMPTS runs."""
    left = dict.fromkeys(names, "was not run")
    for attempt in range(ATTEMPTS):
        if left:
            parts = [[name] for name in left] if attempt > 1 else [list(left)]
            found: dict[str, str] = {}
            for part in parts:
                found |= run(part, log, jobs=1 if attempt else jobs)
            left = {name: found.get(name, said) for name, said in left.items()}
            left = {name: said for name, said in left.items() if said != "passes"}
    return left


@pytest.mark.alone
@pytest.mark.timeout(1_800)
def test_the_quick_third_passes(tmp_path: Path) -> None:
    assert failures(verdicts.quick_third(), tmp_path / "log") == {}


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_all_that_have_passed_pass(tmp_path: Path) -> None:
    assert failures(verdicts.passing(), tmp_path / "log", jobs=ALL_JOBS) == {}
