"""Tests of the documentation about chaos: its example gives the shown report, and its tables are complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from penstock.testing.chaos import FAULTS, findings
from penstock.testing.chaos.plan import DEFAULT_FAULTS
from penstock.testing.chaos.runs import OPTIONS, PROMISES

DOCS = Path(__file__).resolve().parents[3] / "docs"
HOW_TO = (DOCS / "how-to" / "chaos.md").read_text("utf-8")
REFERENCE = (DOCS / "reference" / "chaos.md").read_text("utf-8")


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table below a heading, without its header."""
    text = REFERENCE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def test_the_test_module_reports_what_the_page_shows(tmp_path: Path) -> None:
    (module,) = re.findall(
        r"^```python no-run: a test module that fails;[^\n]*\n(.*?)^```", HOW_TO, re.M | re.S
    )
    (tmp_path / "test_payments.py").write_text(module)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "test_payments.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    shown = HOW_TO[HOW_TO.index("run 0 of seed 7") :].partition("```")[0].strip().splitlines()
    assert len(shown) == 4
    for line in shown:
        assert line in done.stdout


def test_the_table_of_faults() -> None:
    rows = {row[0].strip("`"): row[1] for row in table("Faults")}
    assert tuple(rows) == FAULTS
    assert tuple(name for name, default in rows.items() if default == "yes") == DEFAULT_FAULTS


def test_the_table_of_findings_has_their_order() -> None:
    assert [row[0].strip("`") for row in table("Findings")] == [kind.__name__ for kind in findings.GRAVITY]


def test_the_table_of_arguments() -> None:
    named = {name for row in table("Arguments") for name in re.findall(r"`(\w+)`", row[0])}
    assert named >= {*OPTIONS, *PROMISES, "settings"}
