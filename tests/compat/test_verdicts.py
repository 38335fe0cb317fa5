"""Apache Kafka's own tests, from its jars, against Penstock: what passed once passes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

from compat.peers import need
from compat.verdicts import page as verdicts
from compat.verdicts.judging import judge, judged_classes

pytestmark = pytest.mark.compat

QUICK = {
    "TopicCommandTest": (
        "testCreateWithConfigs",
        "testCreateWithDefaultPartitions",
        "testDeleteInternalTopic",
        "testDescribe",
        "testInvalidTopicLevelConfig",
        "testTopicDeletion",
    ),
}
"""Some that take a second or less, by the class."""


def run(chosen: dict[str, Iterable[str]], log: Path, jobs: int) -> dict[str, str]:
    """Run tests; return what each came to, by its name."""
    for tool in ("java", "javac", "mvn"):
        need(tool)
    full = {each.rpartition(".")[2]: each for each in judged_classes()}
    work = [(full[name], tuple(tests)) for name, tests in chosen.items()]
    found = verdicts.counted(chain.from_iterable(judge(work, patience_s=300, jobs=jobs, log=log)))
    return {each.name: f"{each.verdict} {each.said}".strip() for each in found.values()}


def test_some_that_are_quick(tmp_path: Path) -> None:
    found = run(dict(QUICK), tmp_path / "log", 1)
    assert found == {f"{name}.{test}": "passes" for name, tests in QUICK.items() for test in tests}
    assert set(found) <= verdicts.passing()


@pytest.mark.soak
@pytest.mark.timeout(10_800)
def test_all_that_have_passed_pass(tmp_path: Path) -> None:
    chosen: defaultdict[str, list[str]] = defaultdict(list)
    for each in sorted(verdicts.passing()):
        name, _, test = each.partition(".")
        chosen[name].append(test)
    found = run(dict(chosen), tmp_path / "log", 2)
    assert {name: verdict for name, verdict in found.items() if verdict != "passes"} == {}
    assert set(found) == verdicts.passing()
