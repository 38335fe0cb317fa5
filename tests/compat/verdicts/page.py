"""Files with the verdicts of Apache Kafka's tests: results, reasons, allow list, and the generated page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from compat.suites import RUN_BY_HAND, SUITES
from compat.verdicts.judging import Verdict

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.tsv"
REASONS = HERE / "reasons.md"
CLASSES = HERE / "classes.txt"
PASSING = HERE.parent / "kafka-own-passing.txt"
PAGE = HERE.parents[2] / "docs" / "reference" / "verdicts.md"

HEAD = "class\ttest\tpassed\tfailed\tnot judged\tms\tsaid"


@dataclass
class Result:
    """The counted runs of one test; a test may run on several kinds of cluster."""

    test_class: str
    test: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    ms: int = 0
    said: str = ""

    @property
    def name(self) -> str:
        """The test's class without its package, and its method: ``Class.test``."""
        return f"{self.test_class.rpartition('.')[2]}.{self.test}"

    @property
    def verdict(self) -> str:
        """The verdict of all runs: one failed run makes the test fail."""
        return "fails" if self.failed else "passes" if self.passed else "not judged"

    def take(self, verdict: Verdict) -> None:
        """Add one run to the counts."""
        self.passed += verdict.verdict == "PASS"
        self.failed += verdict.verdict == "FAIL"
        self.skipped += verdict.verdict == "SKIP"
        self.ms += verdict.ms
        if verdict.verdict == "FAIL" or (verdict.verdict == "SKIP" and not self.failed):
            self.said = verdict.reason[:160]


def counted(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], Result]:
    """Return the counted results of runs, keyed by class and test."""
    found: dict[tuple[str, str], Result] = {}
    for each in verdicts:
        key = each.test_class, each.method
        found.setdefault(key, Result(*key)).take(each)
    return found


def results() -> dict[tuple[str, str], Result]:
    """Return the results stored in the results file, keyed by class and test."""
    found = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines()[1:]:
        name, test, passed, failed, skipped, ms, said = line.split("\t")
        found[name, test] = Result(name, test, int(passed), int(failed), int(skipped), int(ms), said)
    return found


def save(found: dict[tuple[str, str], Result]) -> None:
    """Write the results file, sorted by class and test."""
    rows = [
        "\t".join(map(str, (*key, each.passed, each.failed, each.skipped, each.ms, each.said)))
        for key, each in sorted(found.items())
    ]
    RESULTS.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")


def reasons() -> dict[str, str]:
    """Return the reasons in `reasons.md` (its headings), keyed by the tests or classes listed below them."""
    found: dict[str, str] = {}
    reason = ""
    for line in REASONS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            reason = line[3:]
        elif line.startswith("* "):
            name = line[2:].strip("`")
            if name in found:
                raise ValueError(f"{name} has two reasons in {REASONS.name}")
            found[name] = reason
    return found


def reason_of(result: Result, known: dict[str, str]) -> str | None:
    """Return the reason for which a test fails or is not run; None if there is no recorded reason."""
    listed = known.get(result.name) or known.get(result.test_class.rpartition(".")[2])
    if listed is not None or result.failed:
        return listed
    return f"the test asks for {result.said}" if result.said else None


def passing() -> set[str]:
    """Return the names of the tests that have passed before and must pass: the allow list."""
    lines = PASSING.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def quick_third() -> list[str]:
    """Return the third of the allow list with the shortest recorded times, the quickest first."""
    ms = {each.name: each.ms for each in results().values()}
    names = sorted(passing(), key=lambda name: (ms[name], name))
    return names[: len(names) // 3]


def save_passing(names: Iterable[str]) -> None:
    """Add tests to the allow list; tests are never removed from it."""
    head = "# Tests of Apache Kafka that pass. `make verdicts` adds to it; nothing is taken away."
    PASSING.write_text("\n".join([head, *sorted(passing() | set(names))]) + "\n", encoding="utf-8")


def classes() -> list[str]:
    """Return the full names of all classes that can be run, as of the last run."""
    return CLASSES.read_text(encoding="utf-8").split()


def save_classes(names: Iterable[str]) -> None:
    """Record the classes that can be run, so that the page can list those that never ran."""
    CLASSES.write_text("\n".join(names) + "\n", encoding="utf-8")


def never_run(found: dict[tuple[str, str], Result], names: Iterable[str]) -> list[str]:
    """Return the classes in `names` that have no result, in the order of `names`."""
    ran = {name for name, _ in found}
    return [each for each in names if each not in ran]


def page(
    found: dict[tuple[str, str], Result], known: dict[str, str], release: str, names: Iterable[str]
) -> str:
    """Return the text of the page. `names` are all classes that can be run."""
    ordered = [each for _, each in sorted(found.items(), key=lambda item: item[1].name)]
    counts = [sum(getattr(each, name) for each in ordered) for name in ("passed", "failed", "skipped")]
    tests = [sum(each.verdict == name for each in ordered) for name in ("passes", "fails", "not judged")]
    classes: defaultdict[str, list[Result]] = defaultdict(list)
    for each in ordered:
        classes[each.test_class.rpartition(".")[2]].append(each)
    lines = [
        "# Verdicts of strangers",
        "",
        f"`make verdicts` runs the integration tests of Apache Kafka {release}, from the jars that Kafka",
        "publishes, against Penstock, and writes this page. Stand-ins for five classes of Kafka's harness",
        "start Penstock's brokers for each test, with `--as-version` of that release; one more has Connect",
        "find plugins by their manifests alone, without a scan of all classes by each worker.",
        "",
        f"Of {len(ordered)} tests in {len(classes)} classes, **{tests[0]} pass**, {tests[1]} fail, and",
        f"{tests[2]} cannot be judged from outside Kafka's JVM. A test may run for several kinds of cluster:",
        f"{counts[0]} runs passed, {counts[1]} failed, {counts[2]} were not judged.",
        "",
        "## What fails, and what is not judged",
        "",
        "| Test | Verdict | Reason |",
        "|---|---|---|",
    ]
    lines += [
        f"| {each.name} | {each.verdict} | {reason_of(each, known) or '?'} |"
        for each in ordered
        if each.verdict != "passes"
    ]
    lines += ["", "## What passes", "", "| Class | Passes | Of | Tests that pass |", "|---|---|---|---|"]
    for name, some in sorted(classes.items()):
        good = [each.test for each in some if each.verdict == "passes"]
        if good:
            lines.append(f"| {name} | {len(good)} | {len(some)} | {', '.join(good)} |")
    never = [each.rpartition(".")[2] for each in never_run(found, names)]
    if never:
        lines += [
            "",
            "## What was never run",
            "",
            f"{len(never)} classes were never run as a whole, for want of processor time: most are of",
            "Connect and of the older harness of Kafka's core. `make verdicts ARGS=--unrun` runs them.",
            "",
            ", ".join(never) + ".",
        ]
    lines += [
        "",
        "## Suites written for Testcontainers",
        "",
        "Suites of others that use testcontainers-python's Kafka, unchanged, run with",
        "`--penstock-containers` (`tests/compat/test_public_suites.py`). A container starts in 3 to 30 ms;",
        "users report 30 to 60 s of Docker's. kafka-python's own tests run at a broker.",
        "",
        "| Suite | Passes | Left out |",
        "|---|---|---|",
    ]
    for suite in SUITES:
        left_out = "; ".join(f"`{name}`: {reason}" for name, reason in suite.left_out) or "nothing"
        url = f"https://github.com/{suite.repository}"
        lines.append(f"| [{suite.repository}]({url}) | {suite.passes} | {left_out} |")
    lines += [
        "",
        "## Tests of clients, run by hand",
        "",
        "Clients' own integration tests, unchanged but for ports, in November 2026 at a broker, or at three.",
        "",
        "| Client | At | Passes | What does not |",
        "|---|---|---|---|",
    ]
    for client in RUN_BY_HAND:
        url = f"https://github.com/{client.repository}"
        lines.append(
            f"| [{client.repository}]({url}) | `{client.commit}` | {client.passes} | {client.rest} |"
        )
    lines += [
        "",
        "## Run it",
        "",
        "```sh no-run: takes an hour, and fetches jars from Maven Central",
        "make verdicts",
        'make verdicts ARGS="--jobs 1 TopicCommandTest JoinGroup"',
        "```",
        "",
        "It takes Java 17 and Maven. Words are regular expressions, looked for in the names of classes.",
        "",
        f"`.ci/run` holds every change to the {tests[0] // 3} tests that pass in the least time, a",
        "third of all that pass; `make compat` to all of them. A test has three attempts.",
    ]
    return "\n".join(lines) + "\n"
