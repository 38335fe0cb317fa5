"""Apache Kafka's own tests, from its jars, against Penstock: what passed once passes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

from compat.peers import kerberos_library, need
from compat.verdicts import page as verdicts
from compat.verdicts.judging import judge

pytestmark = pytest.mark.compat

ATTEMPTS = 3
"""A test that fails is run again, by one JVM with nothing beside it: some count on seconds."""


def run(names: Iterable[str], log: Path, *, jobs: int) -> dict[str, str]:
    """Run tests, `jobs` JVMs at a time; return what each came to, by its name."""
    for tool in ("java", "javac", "mvn"):
        need(tool)
    kerberos_library()
    full = {each.name: key for key, each in verdicts.results().items()}
    chosen: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        test_class, test = full[name]
        chosen[test_class].append(test)
    found = verdicts.counted(
        chain.from_iterable(judge(list(chosen.items()), patience_s=300, jobs=jobs, log=log))
    )
    return {each.name: f"{each.verdict} {each.said}".strip() for each in found.values()}


def failures(names: Iterable[str], log: Path) -> dict[str, str]:
    """Return what those tests came to that passed in none of ATTEMPTS runs."""
    left = dict.fromkeys(names, "was not run")
    for attempt in range(ATTEMPTS):
        if left:
            found = run(left, log, jobs=1 if attempt else 2)
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
    assert failures(verdicts.passing(), tmp_path / "log") == {}
